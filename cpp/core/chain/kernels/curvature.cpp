// The Hessian of the likelihood of known labels: its diagonal, and its products with vectors.
#include "entries.hpp"

namespace crfkit::CRFKIT_SPACE {
namespace {

// out = weight * x (1 - x)
CRFKIT_INLINE void variances(const Real* x, int64_t n, double weight, Real* out) {
    const V factor = splat(static_cast<Real>(weight));
    for (int64_t j = 0; j < n; j += kLanes) store(out + j, factor * load(x + j) * (splat(1) - load(x + j)));
}

template <class Shape>
void hessian_diagonal_of(const ChainPlan& data, const ChainPlan& squared, const Weights& w, const Gradient& g,
                         Real* squares, const ChainRange& range, const Shape& shape) {
    const auto span = shape.span();
    const auto width = shape.width;
    const int64_t n_labels = shape.n_labels, square = n_labels * width;
    for (int64_t n = range.begin; n < range.end; ++n) {
        const int64_t first = data.starts[n];
        const double weight = weight_of(data, n);
        const Lattice<Shape> a = filled_lattice(data, w, range, n, shape);
        if (a.length == 0) continue;
        const Inference found = infer(w, a);
        Real* labels = a.square + 2 * square;
        for (int64_t t = 0; t < a.length; ++t) {
            const Real* node = a.node + t * span;
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

#ifndef CRFKIT_SINGLE
#include "tangent.inl"

template <class Shape>
void hessian_product_of(const ChainPlan& data, const ChainWeights& w, const ChainTangent& v, const ChainGradient& g,
                        double* point_outer, const ChainCache* cache, const ChainRange& range, const Shape& shape) {
    const auto span = shape.span();
    ChainPlan without_cost = data;
    without_cost.cost = nullptr;  // it does not depend on the weights
    for (int64_t n = range.begin; n < range.end; ++n) {
        const int64_t first = data.starts[n];
        const double weight = weight_of(data, n);
        Lattice<Shape> a = lattice_of(data, range, n, shape, w.order == 1);
        if (a.length == 0) continue;
        const TangentRows d = make_tangent(
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
        fill_scores(without_cost, *v.direction, n, of_v, false);
        if (found.in_log_space) {
            log_tangent(data, w, v, g, first, weight, found, plain(a), d);
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
                    const Jumps jumps = jumps_at(data, w, v, a, d, first, t);
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

#endif

}  // namespace

void hessian_diagonal(const ChainPlan& data, const ChainPlan& squared, const Weights& w, const Gradient& g,
                      Real* squares, const ChainRange& range) {
    with_plain_shape(w.n_labels, w.order,
                     [&](const auto& shape) { hessian_diagonal_of(data, squared, w, g, squares, range, shape); });
}

#ifndef CRFKIT_SINGLE
void hessian_product(const ChainPlan& data, const ChainWeights& w, const ChainTangent& v, const ChainGradient& g,
                     double* point_outer, const ChainCache* cache, const ChainRange& range) {
    with_shape(w.n_labels, w.order,
               [&](const auto& shape) { hessian_product_of(data, w, v, g, point_outer, cache, range, shape); });
}
#endif

}  // namespace crfkit::CRFKIT_SPACE
