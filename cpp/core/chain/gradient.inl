// The likelihood of a range of sequences: its value, its gradient, and the diagonal of its Hessian. Included by the
// files that define a table of kernels, after inference.inl.

// Adds a row of states (zero in the padding) to the gradient of what scores at t.
template <class Width>
CRFKIT_INLINE void add_states(const ChainPlan& data, const Weights& w, const Gradient& g, int64_t t, bool,
                              const Lattice<LabelStates<Width>>& a, const Real* row) {
    add_residual(data, w, g, a.shape.width, t, row);
}

static void add_states(const ChainPlan& data, const Weights& w, const Gradient& g, int64_t t, bool start,
                       const Lattice<LabelPairStates>& a, const Real* row) {
    const int64_t width = w.width, n = w.n_labels;
    Real* labels = a.square + 2 * n * width;
    for (int64_t j = 0; j < width; ++j) labels[j] = row[n * width + j];
    for (int64_t i = 0; i < n; ++i) add_row(labels, row + i * width, width);
    add_residual(data, w, g, width, t, labels);
    if (start) return;
    add_row(g.transitions, row, n * width);
    if (data.pair_offsets) add_pair_residual(data, w, g, t, row);
}

// Score of the labels in the filled lattice.
template <class Shape>
CRFKIT_INLINE double score_of(const Weights& w, const Lattice<Shape>& a, const int32_t* y) {
    const auto span = a.shape.span();
    double score = 0.0;
    for (int64_t t = 0; t < a.length; ++t) {
        score += a.u[t * span + a.shape.state(y, t)];
        if (t > 0) score += jumps_to(w, a, t)[a.shape.state(y, t - 1) * a.shape.width + y[t]];
    }
    return score;
}

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

#include "weak.inl"

#include "batch_gradient.inl"

double value_gradient(const ChainPlan& data, const Weights& w, const Gradient& g, const Cache* cache,
                      const ChainRange& range) {
    if (double value; batched_value_gradient(data, w, g, cache, range, value)) return value;
    return with_shape(w.n_labels, w.order, [&](const auto& shape) {
        return is_weak(data) ? weak_value_gradient(data, w, g, range, shape)
                             : value_gradient_of(data, w, g, cache, range, shape);
    });
}

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

void hessian_diagonal(const ChainPlan& data, const ChainPlan& squared, const Weights& w, const Gradient& g,
                      Real* squares, const ChainRange& range) {
    with_shape(w.n_labels, w.order,
               [&](const auto& shape) { hessian_diagonal_of(data, squared, w, g, squares, range, shape); });
}
