// Derivatives of the beliefs of dense.cpp along a direction: products with the covariance of what they count.
#include "entries.hpp"

namespace crfkit::CRFKIT_SPACE {
namespace {

#include "dense.inl"
#include "tangent.inl"

// Sums over time, and the direction's jumps of one sequence: [L][P] each.
struct JumpRows {
    double *jumps, *tilted, *tilted_transposed, *outer, *point_outer, *total;
};

constexpr int64_t kJumpRows = 6;

CRFKIT_INLINE JumpRows make_jump_rows(double* scratch, int64_t square) {
    return {scratch,
            scratch + square,
            scratch + 2 * square,
            scratch + 3 * square,
            scratch + 4 * square,
            scratch + 5 * square};
}

// The direction's jumps d_jumps[L][L], and zeros for the sums.
inline void fill_jump_rows(const ChainWeights& w, const double* d_jumps, const JumpRows& rows) {
    const int64_t n = w.n_labels, width = w.width;
    for (int64_t i = 0; i < kJumpRows * n * width; ++i) rows.jumps[i] = 0.0;
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) {
            const int64_t k = i * width + j;
            rows.jumps[k] = d_jumps[i * n + j];
            rows.tilted[k] = rows.tilted_transposed[j * width + i] = w.exp_jumps[k] * rows.jumps[k];
        }
}

template <class Shape>
void covariances_of(const ChainDenseOf<double>& data, const ChainWeights& w, const ChainDenseDirection& along,
                    double* node, double* edge, const ChainRange& range, const Shape& shape) {
    const auto span = shape.span();
    const int64_t n_labels = shape.n_labels, square = n_labels * w.width;
    const ChainPlan nothing{};
    for (int64_t n = range.begin; n < range.end; ++n) {
        const Lattice<Shape> a = dense_lattice(data, range, n, shape);
        double* scratch = static_cast<double*>(range.scratch) + lattice_size(shape, a.length, false);
        const TangentRows d = make_tangent(scratch, a.length, shape);
        const JumpRows rows = make_jump_rows(scratch + further_size(shape, a.length), square);
        fill_jump_rows(w, along.jumps + n * n_labels * n_labels, rows);
        ChainWeights direction{};
        direction.jumps = rows.jumps;
        const ChainTangent v{&direction, rows.tilted, rows.tilted_transposed};
        for (int64_t t = 0; t < a.length; ++t)
            for (int64_t j = 0; j < span; ++j)
                d.u[t * span + j] = j < n_labels ? along.u[(n * data.n_steps + t) * n_labels + j] : 0.0;

        const Inference found = a.length > 0 ? infer(w, a, d.kept) : Inference{0.0, true};
        if (a.length > 0 && found.in_log_space) {
            ChainGradient g{};
            g.jumps = rows.total;
            log_tangent(nothing, w, v, g, 0, 1.0, found, plain(a), d);
        } else if (a.length > 0) {
            const KeptRows<Shape> kept{shape, a.length, d.kept};
            scaled_tangent(nothing, w, v, 0, a, kept, d);
            shape.outer(d.alpha, d.point_b + span, a.length - 1, rows.outer);
            shape.outer(kept.alpha(0), d.b + span, a.length - 1, rows.outer);
            shape.outer(kept.alpha(0), d.point_b + span, a.length - 1, rows.point_outer);
            for (int64_t i = 0; i < square; ++i)
                rows.total[i] = rows.outer[i] * w.exp_jumps[i] + rows.point_outer[i] * rows.tilted[i];
        }
        double* nodes = node + n * data.n_steps * n_labels;
        for (int64_t t = 0; t < data.n_steps; ++t)
            for (int64_t j = 0; j < n_labels; ++j) nodes[t * n_labels + j] = t < a.length ? d.node[t * span + j] : 0.0;
        for (int64_t i = 0; i < n_labels; ++i)
            for (int64_t j = 0; j < n_labels; ++j)
                edge[(n * n_labels + i) * n_labels + j] = rows.total[i * w.width + j];
        range.check(range.check_state, range.thread);
    }
}

}  // namespace

int64_t dense_curvature_scratch(int64_t longest, int64_t n_labels) {
    return with_plain_shape(n_labels, 1, [&](const auto& shape) {
        return lattice_size(shape, longest, false) + further_size(shape, longest) +
               kJumpRows * n_labels * padded<Real>(n_labels);
    });
}

void dense_covariances(const ChainDenseOf<double>& data, const ChainWeights& w, const ChainDenseDirection& along,
                       double* node, double* edge, const ChainRange& range) {
    with_shape(w.n_labels, 1, [&]<class Shape>(const Shape& shape) {
        if constexpr (!std::is_same_v<Shape, LabelPairStates>) covariances_of(data, w, along, node, edge, range, shape);
    });
}

}  // namespace crfkit::CRFKIT_SPACE
