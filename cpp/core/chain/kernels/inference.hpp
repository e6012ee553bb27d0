// Inference in one sequence of the data: what the kernel files of this folder share. Each of them includes it.
#pragma once

#include <limits>
#include <type_traits>

#include "../../support/simd.hpp"
#include "kernels.hpp"

namespace crfkit::CRFKIT_SPACE {

using Weights = ChainWeightsOf<Real>;
using Gradient = ChainGradientOf<Real>;
using Cache = ChainCacheOf<Real>;

#include "scores.inl"

#include "shapes.inl"

#include "recursions.inl"

#include "residuals.inl"

// The widths of order 1 that the compiler knows, so that loops over a row are unrolled; int64_t: any. The portable
// kernels have no others.
#if CRFKIT_REGISTER_BYTES > 16
#define CRFKIT_EACH_WIDTH(DO) DO(int64_t) DO(Fixed<kPad<Real>>) DO(Fixed<2 * kPad<Real>>) DO(Fixed<3 * kPad<Real>>)
#else
#define CRFKIT_EACH_WIDTH(DO) DO(int64_t)
#endif

// What is compiled in inference.cpp for each width, and for the two shapes of any width.
#define CRFKIT_OF_WIDTH(EXTERN, WIDTH)                                                                              \
    EXTERN template void LabelStates<WIDTH>::outer(const Real*, const Real*, int64_t, Real*) const;                 \
    EXTERN template void fill_scores(const ChainPlan&, const Weights&, int64_t, const Lattice<LabelStates<WIDTH>>&, \
                                     bool);                                                                         \
    EXTERN template void add_states(const ChainPlan&, const Weights&, const Gradient&, int64_t, bool,               \
                                    const Lattice<LabelStates<WIDTH>>&, const Real*);                               \
    EXTERN template Inference infer(const Weights&, const Lattice<LabelStates<WIDTH>>&, Real*);
#define CRFKIT_OF_SHAPE(EXTERN, SHAPE)                                            \
    EXTERN template double fill_matrices(const Lattice<SHAPE>&);                  \
    EXTERN template double log_recursions(const Weights&, const Lattice<SHAPE>&); \
    EXTERN template void plain_edge_marginal(const Weights&, const Lattice<SHAPE>&, const Inference&, int64_t);

#define CRFKIT_ELSEWHERE(WIDTH) CRFKIT_OF_WIDTH(extern, WIDTH)
CRFKIT_EACH_WIDTH(CRFKIT_ELSEWHERE)
CRFKIT_OF_SHAPE(extern, LabelStates<int64_t>)
CRFKIT_OF_SHAPE(extern, LabelPairStates)
extern template Inference infer(const Weights&, const Lattice<LabelPairStates>&, Real*);

// Calls work(shape) with one of these widths.
template <class Work>
CRFKIT_INLINE auto with_shape(int64_t n_labels, int64_t order, const Work& work) {
    const int64_t width = padded<Real>(n_labels);
    if (order == 2) return work(LabelPairStates{n_labels, width});
#define CRFKIT_TRY(WIDTH)                          \
    if constexpr (!std::is_same_v<WIDTH, int64_t>) \
        if (width == WIDTH{}) return work(LabelStates<WIDTH>{n_labels, WIDTH{}});
    CRFKIT_EACH_WIDTH(CRFKIT_TRY)
#undef CRFKIT_TRY
    return work(LabelStates<int64_t>{n_labels, width});
}

// The same with one width for all: for what is called once per run or decodes.
template <class Work>
CRFKIT_INLINE auto with_plain_shape(int64_t n_labels, int64_t order, const Work& work) {
    const int64_t width = padded<Real>(n_labels);
    return order == 2 ? work(LabelPairStates{n_labels, width}) : work(LabelStates<int64_t>{n_labels, width});
}

// Scratch after the lattice for what goes beyond value and gradient of known labels: see TangentRows and WeakRows.
template <class Shape>
CRFKIT_INLINE int64_t further_size(const Shape& shape, int64_t length) {
    return (5 + 3) * length * shape.span() + 2 * shape.span() + 2 * shape.n_labels * shape.width;
}

template <class Shape>
CRFKIT_INLINE Lattice<Shape> lattice_of(const ChainPlan& data, const ChainRange& range, int64_t n, const Shape& shape,
                                        bool order_1) {
    const int64_t length = data.starts[n + 1] - data.starts[n];
    const bool pairs =
        order_1 && data.pair_offsets && data.pair_offsets[data.starts[n + 1]] > data.pair_offsets[data.starts[n]];
    Lattice<Shape> a = make_lattice(static_cast<Real*>(range.scratch), length, shape, pairs);
    a.limited = data.allowed != nullptr;
    return a;
}

template <class Shape>
CRFKIT_INLINE Lattice<Shape> filled_lattice(const ChainPlan& data, const Weights& w, const ChainRange& range, int64_t n,
                                            const Shape& shape) {
    const Lattice<Shape> a = lattice_of(data, range, n, shape, w.order == 1);
    fill_scores(data, w, n, a);
    return a;
}

CRFKIT_INLINE double weight_of(const ChainPlan& data, int64_t n) { return data.weights ? data.weights[n] : 1.0; }

}  // namespace crfkit::CRFKIT_SPACE
