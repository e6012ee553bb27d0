// The chain kernels in double precision, compiled once per instruction set: the including file defines CRFKIT_KERNELS
// (the function that returns the table), CRFKIT_SINGLE_KERNELS (that of the table in single precision), CRFKIT_NAME,
// CRFKIT_LANES (doubles in a register) and CRFKIT_OUTER_VECTORS (registers that the sum of outer products may hold).
#include <limits>

#include "../support/simd.hpp"
#include "kernels.hpp"

namespace crfkit {
namespace {

using Weights = ChainWeights;
using Gradient = ChainGradient;
using Cache = ChainCache;

#include "inference.inl"

#include "gradient.inl"

#include "tangent.inl"

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
        const TangentRows<Shape> d = make_tangent(
            static_cast<double*>(range.scratch) + lattice_size(shape, a.length, a.scores != nullptr), a.length, shape);
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
    static const ChainKernels table{{scratch_size, exponentiate, value_gradient, hessian_diagonal},
                                    CRFKIT_NAME,
                                    &CRFKIT_SINGLE_KERNELS(),
                                    hessian_product,
                                    hinge,
                                    marginals,
                                    viterbi,
                                    best_scores,
                                    span_probabilities,
                                    entropies,
                                    sample};
    return table;
}

}  // namespace crfkit
