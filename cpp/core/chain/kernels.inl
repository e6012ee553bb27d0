// The chain kernels, compiled once per instruction set: the including file defines CRFKIT_KERNELS
// (the function that returns the table), CRFKIT_NAME, CRFKIT_LANES (doubles in a register) and
// CRFKIT_OUTER_VECTORS (registers that the sum of outer products may hold).
#include "../support/simd.hpp"
#include "kernels.hpp"

namespace crfkit {
namespace {

#include "scores.inl"

#include "shapes.inl"

#include "recursions.inl"

#include "tangent.inl"

void exponentiate(const double* x, double shift, double* out, int64_t n) {
    for (int64_t i = 0; i < n; i += kLanes) store(out + i, exp_nonpositive(load(x + i) - splat(shift)));
}

// Calls work(shape) with the common widths of order 1 as constants, so that the loops over a row are unrolled.
template <class Work>
CRFKIT_INLINE auto with_shape(int64_t n_labels, int64_t order, const Work& work) {
    const int64_t width = padded(n_labels);
    if (order == 2) return work(LabelPairStates{n_labels, width});
    switch (width) {
        case 8: return work(LabelStates<Fixed<8>>{n_labels, {}});
        case 16: return work(LabelStates<Fixed<16>>{n_labels, {}});
        case 24: return work(LabelStates<Fixed<24>>{n_labels, {}});
        case 32: return work(LabelStates<Fixed<32>>{n_labels, {}});
        case 40: return work(LabelStates<Fixed<40>>{n_labels, {}});
        case 48: return work(LabelStates<Fixed<48>>{n_labels, {}});
        default: return work(LabelStates<int64_t>{n_labels, width});
    }
}

// The same for what is called once per run or decodes: order 1 with one width for all.
template <class Work>
CRFKIT_INLINE auto with_plain_shape(int64_t n_labels, int64_t order, const Work& work) {
    const int64_t width = padded(n_labels);
    return order == 2 ? work(LabelPairStates{n_labels, width}) : work(LabelStates<int64_t>{n_labels, width});
}

int64_t scratch_size(int64_t longest, int64_t n_labels, int64_t order, bool pairs, bool tangent) {
    return with_plain_shape(n_labels, order, [&](const auto& shape) {
        return lattice_size(shape, longest, pairs && order == 1) + (tangent ? tangent_size(shape, longest) : 0);
    });
}

template <class Shape>
CRFKIT_INLINE Lattice<Shape> lattice_of(const ChainPlan& data, const ChainRange& range, int64_t n, const Shape& shape,
                                        bool order_1) {
    const int64_t length = data.starts[n + 1] - data.starts[n];
    const bool pairs =
        order_1 && data.pair_offsets && data.pair_offsets[data.starts[n + 1]] > data.pair_offsets[data.starts[n]];
    Lattice<Shape> a = make_lattice(range.scratch, length, shape, pairs);
    a.limited = data.allowed != nullptr;
    return a;
}

template <class Shape>
CRFKIT_INLINE Lattice<Shape> filled_lattice(const ChainPlan& data, const ChainWeights& w, const ChainRange& range,
                                            int64_t n, const Shape& shape) {
    const Lattice<Shape> a = lattice_of(data, range, n, shape, w.order == 1);
    fill_scores(data, w, n, a);
    return a;
}

CRFKIT_INLINE double weight_of(const ChainPlan& data, int64_t n) { return data.weights ? data.weights[n] : 1.0; }

// Adds a row of states (zero in the padding) to the gradient of what scores at t.
template <class Width>
CRFKIT_INLINE void add_states(const ChainPlan& data, const ChainWeights& w, const ChainGradient& g, int64_t t, bool,
                              const Lattice<LabelStates<Width>>& a, const double* row) {
    add_residual(data, w, g, a.shape.width, t, row);
}

static void add_states(const ChainPlan& data, const ChainWeights& w, const ChainGradient& g, int64_t t, bool start,
                       const Lattice<LabelPairStates>& a, const double* row) {
    const int64_t width = w.width, n = w.n_labels;
    double* labels = a.square + 2 * n * width;
    for (int64_t j = 0; j < width; ++j) labels[j] = row[n * width + j];
    for (int64_t i = 0; i < n; ++i) add_row(labels, row + i * width, width);
    add_residual(data, w, g, width, t, labels);
    if (start) return;
    add_row(g.transitions, row, n * width);
    if (data.pair_offsets) add_pair_residual(data, w, g, t, row);
}

// Score of the labels in the filled lattice.
template <class Shape>
CRFKIT_INLINE double score_of(const ChainWeights& w, const Lattice<Shape>& a, const int32_t* y) {
    const auto span = a.shape.span();
    double score = 0.0;
    for (int64_t t = 0; t < a.length; ++t) {
        score += a.u[t * span + a.shape.state(y, t)];
        if (t > 0) score += jumps_to(w, a, t)[a.shape.state(y, t - 1) * a.shape.width + y[t]];
    }
    return score;
}

template <class Shape>
double value_gradient_of(const ChainPlan& data, const ChainWeights& w, const ChainGradient& g, const ChainCache* cache,
                         const ChainRange& range, const Shape& shape) {
    const auto span = shape.span();
    const int64_t width = shape.width;
    double value = 0.0;
    for (int64_t n = range.begin; n < range.end; ++n) {
        const int64_t first = data.starts[n];
        const double weight = weight_of(data, n);
        const Lattice<Shape> a = filled_lattice(data, w, range, n, shape);
        if (a.length == 0) continue;
        const int32_t* y = data.labels + first;
        const double score = score_of(w, a, y);
        const Inference found = infer(w, a, cache && !a.scores ? cache->rows + 3 * first * span : nullptr);
        if (cache) cache->filled[n] = !a.scores && !found.in_log_space;
        value += weight * (found.log_z - score);

        // Residuals of all positions first: loading a row right after storing one of its elements would stall.
        for (int64_t t = 0; t < a.length; ++t) a.node[t * span + shape.state(y, t)] -= 1.0;
        for (int64_t t = 0; t < a.length; ++t) {
            if (weight != 1.0) scale_row(a.node + t * span, span, weight);
            add_states(data, w, g, first + t, t == 0, a, a.node + t * span);
        }
        if (!a.scores && !found.in_log_space) {
            if (weight != 1.0)
                for (int64_t t = 1; t < a.length; ++t) scale_row(a.e + t * span, span, weight);
            shape.outer(a.alpha, a.e + span, a.length - 1, g.outer);
            for (int64_t t = 1; t < a.length; ++t) g.jumps[shape.state(y, t - 1) * width + y[t]] -= weight;
        } else {
            for (int64_t t = 1; t < a.length; ++t) {
                edge_marginal(w, a, found, t);
                a.edge[shape.state(y, t - 1) * width + y[t]] -= 1.0;
                scale_row(a.edge, shape.jump_rows() * width, weight);
                add_row(g.jumps, a.edge, shape.jump_rows() * width);
                if (a.scores) add_pair_residual(data, w, g, first + t, a.edge);
            }
        }
        range.check(range.check_state, range.thread);
    }
    return value;
}

#include "weak.inl"

double value_gradient(const ChainPlan& data, const ChainWeights& w, const ChainGradient& g, const ChainCache* cache,
                      const ChainRange& range) {
    return with_shape(w.n_labels, w.order, [&](const auto& shape) {
        return is_weak(data) ? weak_value_gradient(data, w, g, range, shape)
                             : value_gradient_of(data, w, g, cache, range, shape);
    });
}

template <class Shape>
void hessian_product_of(const ChainPlan& data, const ChainWeights& w, const ChainTangent& v, const ChainGradient& g,
                        double* point_outer, const ChainCache* cache, const ChainRange& range, const Shape& shape) {
    const auto span = shape.span();
    ChainPlan plain = data;
    plain.cost = nullptr;  // it does not depend on the weights
    for (int64_t n = range.begin; n < range.end; ++n) {
        const int64_t first = data.starts[n];
        const double weight = weight_of(data, n);
        Lattice<Shape> a = lattice_of(data, range, n, shape, w.order == 1);
        if (a.length == 0) continue;
        const TangentRows<Shape> d =
            make_tangent(range.scratch + lattice_size(shape, a.length, a.scores != nullptr), a.length, shape);
        const bool cached = cache && cache->filled[n];
        Inference found{0.0, false};
        if (!cached) {
            fill_scores(data, w, n, a);
            found = infer(w, a, d.kept);
        }
        // v's scores, in the rows of the direction; its pair scores are made where they are used
        Lattice<Shape> of_v = a;
        of_v.u = d.u;
        of_v.scores = nullptr;
        fill_scores(plain, *v.direction, n, of_v, false);
        if (found.in_log_space) {
            log_tangent(data, w, v, g, first, weight, found, a, d);
        } else {
            const KeptRows<Shape> kept{shape, a.length, cached ? cache->rows + 3 * first * span : d.kept};
            scaled_tangent(data, w, v, first, a, kept, d);
            if (weight != 1.0)
                for (int64_t t = 1; t < a.length; ++t) {
                    scale_row(d.b + t * span, span, weight);
                    scale_row(d.point_b + t * span, span, weight);
                }
            if (a.matrices) {
                const int64_t square = shape.n_labels * shape.width;
                for (int64_t t = 1; t < a.length; ++t) {
                    const Jumps<Shape> jumps = jumps_at(data, w, v, a, d, first, t);
                    const double *b = d.b + t * span, *point_b = d.point_b + t * span;
                    shape.each([&](int64_t i) {
                        const double da = d.alpha[(t - 1) * span + i], alpha = kept.alpha(t - 1)[i];
                        for (int64_t j = 0; j < shape.width; ++j) {
                            const int64_t k = i * shape.width + j;
                            a.edge[k] =
                                jumps.m[k] * (da * point_b[j] + alpha * b[j]) + jumps.tilted[k] * alpha * point_b[j];
                        }
                    });
                    add_row(g.jumps, a.edge, square);
                    add_pair_residual(data, w, g, first + t, a.edge);
                }
            } else {
                shape.outer(d.alpha, d.point_b + span, a.length - 1, g.outer);
                shape.outer(kept.alpha(0), d.b + span, a.length - 1, g.outer);
                if (!cached) shape.outer(kept.alpha(0), d.point_b + span, a.length - 1, point_outer);
            }
        }
        for (int64_t t = 0; t < a.length; ++t) {
            if (weight != 1.0) scale_row(d.node + t * span, span, weight);
            add_states(data, w, g, first + t, t == 0, a, d.node + t * span);
        }
        range.check(range.check_state, range.thread);
    }
}

void hessian_product(const ChainPlan& data, const ChainWeights& w, const ChainTangent& v, const ChainGradient& g,
                     double* point_outer, const ChainCache* cache, const ChainRange& range) {
    with_shape(w.n_labels, w.order,
               [&](const auto& shape) { hessian_product_of(data, w, v, g, point_outer, cache, range, shape); });
}

// out = weight * x (1 - x)
CRFKIT_INLINE void variances(const double* x, int64_t n, double weight, double* out) {
    for (int64_t j = 0; j < n; j += kLanes) store(out + j, splat(weight) * load(x + j) * (splat(1.0) - load(x + j)));
}

template <class Shape>
void hessian_diagonal_of(const ChainPlan& data, const ChainPlan& squared, const ChainWeights& w, const ChainGradient& g,
                         double* squares, const ChainRange& range, const Shape& shape) {
    const auto span = shape.span();
    const auto width = shape.width;
    const int64_t n_labels = shape.n_labels, square = n_labels * width;
    for (int64_t n = range.begin; n < range.end; ++n) {
        const int64_t first = data.starts[n];
        const double weight = weight_of(data, n);
        const Lattice<Shape> a = filled_lattice(data, w, range, n, shape);
        if (a.length == 0) continue;
        const Inference found = infer(w, a);
        double* labels = a.square + 2 * square;
        for (int64_t t = 0; t < a.length; ++t) {
            const double* node = a.node + t * span;
            for (int64_t j = 0; j < width; ++j) labels[j] = node[j];
            for (int64_t i = width; i < span; i += width) add_row(labels, node + i, width);
            variances(labels, width, weight, labels);
            add_residual(squared, w, g, width, first + t, labels);
            if (w.order == 1 || t == 0) continue;
            variances(node, square, weight, a.square);
            add_row(g.transitions, a.square, square);
            if (data.pair_offsets) add_pair_residual(data, w, g, first + t, a.square);
        }
        if (!a.scores && !found.in_log_space) {  // sums of q and of q^2
            if (weight == 0.0) continue;
            const double root = std::sqrt(weight);  // sqrt(weight) e, and its square weight e^2
            if (weight != 1.0) scale_row(a.e, a.length * span, weight);
            shape.outer(a.alpha, a.e + span, a.length - 1, g.outer);
            if (weight != 1.0) scale_row(a.e, a.length * span, 1.0 / root);
            multiply_rows(a.alpha, a.alpha, a.length * span, a.alpha);
            multiply_rows(a.e, a.e, a.length * span, a.e);
            shape.outer(a.alpha, a.e + span, a.length - 1, squares);
        } else {
            for (int64_t t = 1; t < a.length; ++t) {
                edge_marginal(w, a, found, t);
                variances(a.edge, shape.jump_rows() * width, weight, a.edge);
                add_row(g.jumps, a.edge, shape.jump_rows() * width);
                if (a.scores) add_pair_residual(data, w, g, first + t, a.edge);
            }
        }
        range.check(range.check_state, range.thread);
    }
}

void hessian_diagonal(const ChainPlan& data, const ChainPlan& squared, const ChainWeights& w, const ChainGradient& g,
                      double* squares, const ChainRange& range) {
    with_shape(w.n_labels, w.order,
               [&](const auto& shape) { hessian_diagonal_of(data, squared, w, g, squares, range, shape); });
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

#include "decoding.inl"

#include "beliefs.inl"

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

}  // namespace

const ChainKernels& CRFKIT_KERNELS() {
    static const ChainKernels table{CRFKIT_NAME,        scratch_size, exponentiate, value_gradient, hessian_product,
                                    hessian_diagonal,   hinge,        marginals,    viterbi,        best_scores,
                                    span_probabilities, entropies,    sample};
    return table;
}

}  // namespace crfkit
