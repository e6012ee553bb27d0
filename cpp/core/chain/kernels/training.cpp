// The likelihood of a range of sequences and its gradient.
#include "entries.hpp"

namespace crfkit::CRFKIT_SPACE {
namespace {

#include "batch.inl"

template <class Shape>
double value_gradient_of(const ChainPlan& data, const Weights& w, const Gradient& g, const Cache* cache,
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
        for (int64_t t = 0; t < a.length; ++t) a.node[t * span + shape.state(y, t)] -= 1;
        for (int64_t t = 0; t < a.length; ++t) {
            if (weight != 1.0) scale_row(a.node + t * span, span, weight);
            add_states(data, w, g, first + t, t == 0, a, a.node + t * span);
        }
        if (!a.scores && !found.in_log_space) {
            if (weight != 1.0)
                for (int64_t t = 1; t < a.length; ++t) scale_row(a.e + t * span, span, weight);
            shape.outer(a.alpha, a.e + span, a.length - 1, g.outer);
            for (int64_t t = 1; t < a.length; ++t)
                g.jumps[shape.state(y, t - 1) * width + y[t]] -= static_cast<Real>(weight);
        } else {
            for (int64_t t = 1; t < a.length; ++t) {
                edge_marginal(w, a, found, t);
                a.edge[shape.state(y, t - 1) * width + y[t]] -= 1;
                scale_row(a.edge, shape.jump_rows() * width, weight);
                add_row(g.jumps, a.edge, shape.jump_rows() * width);
                if (a.scores) add_pair_residual(data, w, g, first + t, a.edge);
            }
        }
        range.check(range.check_state, range.thread);
    }
    return value;
}

#include "batch_gradient.inl"

}  // namespace

double value_gradient(const ChainPlan& data, const Weights& w, const Gradient& g, const Cache* cache,
                      const ChainRange& range) {
    if (is_weak(data)) return weak_value_gradient(data, w, g, range);
    if (double value; batched_value_gradient(data, w, g, cache, range, value)) return value;
    return with_shape(w.n_labels, w.order,
                      [&](const auto& shape) { return value_gradient_of(data, w, g, cache, range, shape); });
}

}  // namespace crfkit::CRFKIT_SPACE
