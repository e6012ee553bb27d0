// The best labels of a sequence, the scores that a search for more of them starts from, the margin loss, and marginals.
#include "entries.hpp"

namespace crfkit::CRFKIT_SPACE {
namespace {

#include "dense.inl"

// alpha_t(s) of the filled lattice = the score of the best labelling that ends in s at t, for t > 0; returns the last
// row.
template <class Shape>
const double* maximise(const ChainWeights& w, const Lattice<Shape>& a) {
    const int64_t span = a.shape.span();
    const double* delta = a.u;
    for (int64_t t = 1; t < a.length; ++t) {
        double* next = a.alpha + t * span;
        a.shape.maximise(delta, jumps_to(w, a, t), a.u + t * span, next);
        delta = next;
    }
    return delta;
}

// The best labels y[T] of the filled lattice; returns their score.
template <class Shape>
double decode(const ChainWeights& w, const Lattice<Shape>& a, int32_t* y) {
    const Shape& shape = a.shape;
    const int64_t span = shape.span(), width = shape.width;
    const double* delta = maximise(w, a);
    int64_t best = -1;
    shape.each([&](int64_t s) {
        if (best < 0 || delta[s] > delta[best]) best = s;
    });
    const double score = delta[best];
    y[a.length - 1] = static_cast<int32_t>(shape.label(best));
    // Back pointers are recomputed along the best path only: L additions per position.
    for (int64_t t = a.length - 1; t > 0; --t) {
        const double* previous = t > 1 ? a.alpha + (t - 1) * span : a.u;
        const double* m = jumps_to(w, a, t);
        int64_t from = -1;
        double top = 0.0;
        for (int64_t i = 0; i < shape.n_before(); ++i) {
            const int64_t r = shape.before(best, i);
            const double x = previous[r] + m[r * width + shape.label(best)];
            if (from < 0 || x > top) top = x, from = r;
        }
        best = from;
        y[t - 1] = static_cast<int32_t>(shape.label(best));
    }
    return score;
}

template <class Given>
void decode_dense(const ChainDenseOf<Given>& data, const ChainWeights& w, int32_t* labels, double* scores,
                  const ChainRange& range) {
    with_shape(w.n_labels, 1, [&]<class Shape>(const Shape& shape) {
        if constexpr (!std::is_same_v<Shape, LabelPairStates>)
            for (int64_t n = range.begin; n < range.end; ++n) {
                const Lattice<Shape> a = dense_lattice(data, range, n, shape);
                int32_t* y = labels + n * data.n_steps;
                scores[n] = a.length > 0 ? decode(w, a, y) : 0.0;
                for (int64_t t = a.length; t < data.n_steps; ++t) y[t] = 0;
                range.check(range.check_state, range.thread);
            }
    });
}

}  // namespace

void viterbi(const ChainPlan& data, const ChainWeights& w, int32_t* labels, double* scores, const ChainRange& range) {
    with_plain_shape(w.n_labels, w.order, [&]<class Shape>(const Shape& shape) {
        for (int64_t n = range.begin; n < range.end; ++n) {
            const Lattice<Shape> a = filled_lattice(data, w, range, n, shape);
            scores[n] = a.length > 0 ? decode(w, a, labels + data.starts[n]) : 0.0;
            range.check(range.check_state, range.thread);
        }
    });
}

void dense_viterbi(const ChainDenseOf<double>& data, const ChainWeights& w, int32_t* labels, double* scores,
                   const ChainRange& range) {
    decode_dense(data, w, labels, scores, range);
}

void dense_viterbi_of_floats(const ChainDenseOf<float>& data, const ChainWeights& w, int32_t* labels, double* scores,
                             const ChainRange& range) {
    decode_dense(data, w, labels, scores, range);
}

ChainScores best_scores(const ChainPlan& data, const ChainWeights& w, int64_t n, const ChainRange& range) {
    return with_plain_shape(w.n_labels, w.order, [&]<class Shape>(const Shape& shape) {
        const Lattice<Shape> a = filled_lattice(data, w, range, n, shape);
        if (a.length > 0) {
            for (int64_t s = 0; s < shape.span(); ++s) a.alpha[s] = a.u[s];
            maximise(w, a);
        }
        return ChainScores{a.length, a.u, a.alpha, a.scores};
    });
}

double hinge(const ChainPlan& data, const ChainWeights& w, const ChainGradient& g, const ChainRange& range) {
    return with_plain_shape(w.n_labels, w.order, [&]<class Shape>(const Shape& shape) {
        const int64_t span = shape.span(), width = shape.width;
        double value = 0.0;
        for (int64_t n = range.begin; n < range.end; ++n) {
            const int64_t first = data.starts[n];
            const double weight = weight_of(data, n);
            const Lattice<Shape> a = filled_lattice(data, w, range, n, shape);
            if (a.length == 0) continue;
            const int32_t* y = data.labels + first;
            auto* best = reinterpret_cast<int32_t*>(a.e);  // [T] of T * span doubles that decoding leaves alone
            value += weight * (decode(w, a, best) - score_of(w, a, y));
            for (int64_t t = 0; t < a.length; ++t) {
                const int64_t up = shape.state(best, t), down = shape.state(y, t);
                if (up != down) {
                    double* row = a.node + t * span;
                    for (int64_t s = 0; s < span; ++s) row[s] = 0.0;
                    row[up] = weight;
                    row[down] = -weight;
                    add_states(data, w, g, first + t, t == 0, a, row);
                }
                if (t == 0) continue;
                const int64_t from_up = shape.state(best, t - 1), from_down = shape.state(y, t - 1);
                if (up == down && from_up == from_down) continue;
                g.jumps[from_up * width + best[t]] += weight;
                g.jumps[from_down * width + y[t]] -= weight;
                if (!a.scores) continue;
                for (int64_t i = 0; i < shape.n_labels * width; ++i) a.edge[i] = 0.0;
                a.edge[from_up * width + best[t]] += weight;
                a.edge[from_down * width + y[t]] -= weight;
                add_pair_residual(data, w, g, first + t, a.edge);
            }
            range.check(range.check_state, range.thread);
        }
        return value;
    });
}

void marginals(const ChainPlan& data, const ChainWeights& w, double* log_z, double* node, double* edge,
               const ChainRange& range) {
    const int64_t n_labels = w.n_labels, width = w.width;
    with_plain_shape(n_labels, w.order, [&]<class Shape>(const Shape& shape) {
        const int64_t span = shape.span();
        for (int64_t n = range.begin; n < range.end; ++n) {
            const int64_t first = data.starts[n];
            const Lattice<Shape> a = filled_lattice(data, w, range, n, shape);
            log_z[n] = 0.0;
            if (a.length == 0) continue;
            const Inference found = infer(w, a);
            log_z[n] = found.log_z;
            for (int64_t t = 0; node && t < a.length; ++t)
                for (int64_t j = 0; j < n_labels; ++j) {
                    double total = 0.0;
                    for (int64_t i = 0; i < span; i += width) total += a.node[t * span + i + j];
                    node[(first + t) * n_labels + j] = total;
                }
            for (int64_t t = 0; edge && t < a.length; ++t) {
                const double* pairs = a.node + t * span;
                if (w.order == 1 && t > 0) {
                    edge_marginal(w, a, found, t);
                    pairs = a.edge;
                }
                for (int64_t i = 0; i < n_labels; ++i)
                    for (int64_t j = 0; j < n_labels; ++j)
                        edge[((first + t) * n_labels + i) * n_labels + j] = t > 0 ? pairs[i * width + j] : 0.0;
            }
            range.check(range.check_state, range.thread);
        }
    });
}

}  // namespace crfkit::CRFKIT_SPACE
