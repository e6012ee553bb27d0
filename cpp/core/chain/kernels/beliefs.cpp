// What the marginals of states and jumps say about a sequence: probabilities of phrases, entropy, samples.
#include "entries.hpp"

namespace crfkit::CRFKIT_SPACE {
namespace {

// q_t(r, k), the marginal of the jump from state r at t - 1 to label k at t, of an inferred lattice.
template <class Shape>
struct JumpMarginals {
    const ChainWeights& w;
    const Lattice<Shape>& a;
    bool in_log_space;

    CRFKIT_INLINE double operator()(int64_t t, int64_t r, int64_t k) const {
        const int64_t span = a.shape.span(), at = r * a.shape.width + k;
        const double alpha = a.alpha[(t - 1) * span + r], next = a.e[t * span + a.shape.after(r, k)];
        if (in_log_space) return std::exp(alpha + jumps_to(w, a, t)[at] + next - a.factor[t]);
        return alpha * (a.matrices ? a.matrices + t * a.shape.n_labels * a.shape.width : w.exp_jumps)[at] * next;
    }
};

// The probability that x is a phrase of the labelling: with C(i, j) = 1 if a phrase goes on from label i to label j,
//   v_begin(s) = p(state s at begin, its label of the type, C(label before, label) = 0)
//   v_t(s) = sum_r v_{t-1}(r) C(r, s) q_t(r, s) / p_{t-1}(r)
//   p(x) = sum_r v_{end-1}(r) sum_k (1 - C(r, k)) q_end(r, k) / p_{end-1}(r)
template <class Shape>
double phrase_probability(const JumpMarginals<Shape>& q, const ChainPhrases& rules, const ChainSpan& x) {
    const Lattice<Shape>& a = q.a;
    const Shape& shape = a.shape;
    const int64_t n = shape.n_labels, span = shape.span();
    double *v = a.edge, *next = a.square;
    const auto goes_on = [&](int64_t i, int64_t j) { return rules.goes_on[i * n + j] != 0; };
    for (int64_t s = 0; s < span; ++s) v[s] = 0.0;
    shape.each([&](int64_t s) {
        const int64_t j = shape.label(s);
        if (rules.types[j] != x.type) return;
        if (x.begin == 0) {
            v[s] = a.node[s];
        } else if (s < n * shape.width) {  // order 2: a label comes before
            for (int64_t i = 0; i < shape.n_before(); ++i) {
                const int64_t r = shape.before(s, i);
                if (!goes_on(shape.label(r), j)) v[s] += q(x.begin, r, j);
            }
        }
    });
    for (int64_t t = x.begin + 1; t < x.end; ++t) {
        for (int64_t s = 0; s < span; ++s) next[s] = 0.0;
        shape.each([&](int64_t r) {
            if (!(v[r] > 0.0)) return;
            const double share = v[r] / a.node[(t - 1) * span + r];
            for (int64_t k = 0; k < n; ++k)
                if (goes_on(shape.label(r), k)) next[shape.after(r, k)] += share * q(t, r, k);
        });
        double* last = v;
        v = next;
        next = last;
    }
    double total = 0.0;
    shape.each([&](int64_t r) {
        if (!(v[r] > 0.0)) return;
        double ends = x.end == a.length ? a.node[(x.end - 1) * span + r] : 0.0;
        for (int64_t k = 0; x.end < a.length && k < n; ++k)
            if (!goes_on(shape.label(r), k)) ends += q(x.end, r, k);
        total += v[r] * (ends / a.node[(x.end - 1) * span + r]);
    });
    return total < 1.0 ? total : 1.0;
}

// x log(y / x), 0 where x is too small to matter or x = y but for rounding.
CRFKIT_INLINE double surprise(double x, double y) { return x > 1e-20 && y > x ? x * std::log(y / x) : 0.0; }

// The k whose share of the sum of terms holds u in [0, 1); never one of share 0.
CRFKIT_INLINE int64_t pick(const double* terms, int64_t n, double u) {
    double total = 0.0, below = 0.0;
    for (int64_t k = 0; k < n; ++k) total += terms[k];
    int64_t last = 0;
    for (int64_t k = 0; k < n; ++k) {
        if (!(terms[k] > 0.0)) continue;
        last = k;
        below += terms[k];
        if (u * total < below) break;
    }
    return last;
}

}  // namespace

double span_probabilities(const ChainPlan& data, const ChainWeights& w, const ChainPhrases& rules, int64_t n,
                          ChainSpan* spans, int64_t n_spans, const ChainRange& range) {
    return with_plain_shape(w.n_labels, w.order, [&]<class Shape>(const Shape& shape) {
        const Lattice<Shape> a = filled_lattice(data, w, range, n, shape);
        if (a.length == 0) return 0.0;
        const Inference found = infer(w, a);
        const JumpMarginals<Shape> q{w, a, found.in_log_space};
        for (int64_t k = 0; k < n_spans; ++k)
            spans[k].probability = std::isfinite(found.log_z) ? phrase_probability(q, rules, spans[k]) : 0.0;
        range.check(range.check_state, range.thread);
        return found.log_z;
    });
}

// H = H(y_0) + sum_t H(y_t | y_{t-1}): no term is negative, so that nothing cancels.
void entropies(const ChainPlan& data, const ChainWeights& w, double* log_z, double* entropy, const ChainRange& range) {
    with_plain_shape(w.n_labels, w.order, [&]<class Shape>(const Shape& shape) {
        const int64_t span = shape.span(), width = shape.width;
        for (int64_t n = range.begin; n < range.end; ++n) {
            const Lattice<Shape> a = filled_lattice(data, w, range, n, shape);
            log_z[n] = entropy[n] = 0.0;
            if (a.length == 0) continue;
            const Inference found = infer(w, a);
            log_z[n] = found.log_z;
            if (!std::isfinite(found.log_z)) continue;
            double total = 0.0;
            shape.each([&](int64_t s) { total += surprise(a.node[s], 1.0); });
            for (int64_t t = 1; t < a.length; ++t) {
                const double* before = a.node + (t - 1) * span;
                edge_marginal(w, a, found, t);
                shape.each([&](int64_t r) {
                    if (before[r] > 1e-20)
                        for (int64_t k = 0; k < shape.n_labels; ++k)
                            total += surprise(a.edge[r * width + k], before[r]);
                });
            }
            entropy[n] = total;
            range.check(range.check_state, range.thread);
        }
    });
}

// y_0 from its marginals, then y_t given the state before, with probabilities q_t(state, k) / p_{t-1}(state).
double sample(const ChainPlan& data, const ChainWeights& w, int64_t n, int64_t count, const double* uniforms,
              int32_t* labels, const ChainRange& range) {
    return with_plain_shape(w.n_labels, w.order, [&]<class Shape>(const Shape& shape) {
        const Lattice<Shape> a = filled_lattice(data, w, range, n, shape);
        if (a.length == 0) return 0.0;
        const int64_t span = shape.span(), width = shape.width, n_labels = shape.n_labels;
        const Inference found = infer(w, a);
        if (!std::isfinite(found.log_z)) return found.log_z;
        double* terms = a.square;
        for (int64_t c = 0; c < count; ++c) {
            const double* u = uniforms + c * a.length;
            int32_t* y = labels + c * a.length;
            int64_t state = pick(a.node, span, u[0]);
            y[0] = static_cast<int32_t>(shape.label(state));
            for (int64_t t = 1; t < a.length; ++t) {
                const double* next = a.e + t * span + shape.after(state, 0);
                if (found.in_log_space) {
                    const double* m = jumps_to(w, a, t) + state * width;
                    double top = -INFINITY;
                    for (int64_t k = 0; k < n_labels; ++k) top = m[k] + next[k] > top ? m[k] + next[k] : top;
                    for (int64_t k = 0; k < n_labels; ++k) terms[k] = std::exp(m[k] + next[k] - top);
                } else {
                    const double* m = (a.matrices ? a.matrices + t * n_labels * width : w.exp_jumps) + state * width;
                    for (int64_t k = 0; k < n_labels; ++k) terms[k] = m[k] * next[k];
                }
                const int64_t k = pick(terms, n_labels, u[t]);
                y[t] = static_cast<int32_t>(k);
                state = shape.after(state, k);
            }
            range.check(range.check_state, range.thread);
        }
        return found.log_z;
    });
}

}  // namespace crfkit::CRFKIT_SPACE
