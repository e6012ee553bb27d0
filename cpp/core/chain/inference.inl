// Inference in one sequence of the data. Included by the files that define a table of kernels.
#include "scores.inl"

#include "shapes.inl"

#include "recursions.inl"

#include "batch.inl"

void exponentiate(const Real* x, double shift, Real* out, int64_t n) {
    const V top = splat(static_cast<Real>(shift));
    for (int64_t i = 0; i < n; i += kLanes) store(out + i, exp_nonpositive(load(x + i) - top));
}

void jump_tables(const Real* table, double scale, int64_t n_labels, Real* log, Real* exp, Real* transposed, double* low,
                 double* high) {
    const int64_t width = padded<Real>(n_labels), size = n_labels * width;
    const V factor = splat(static_cast<Real>(scale));
    V least = splat(-kLowest), most = splat(kLowest);
    for (int64_t i = 0; i < size; i += kLanes) {
        const V x = load(table + i) * factor;
        const V small = labels_or(x, splat(-kLowest), i % width, n_labels, width);
        const V large = labels_or(x, splat(kLowest), i % width, n_labels, width);
        least = small < least ? small : least;
        most = larger(most, large);
        store(log + i, x);
    }
    const Real top = maximum(most);
    *low = -maximum(-least);
    *high = top;
    for (int64_t i = 0; i < size; i += kLanes)
        store(exp + i, labels_or(exp_nonpositive(load(log + i) - splat(top)), V{}, i % width, n_labels, width));
    for (int64_t i = 0; i < n_labels; ++i)
        for (int64_t j = 0; j < n_labels; ++j) transposed[j * width + i] = exp[i * width + j];
}

void step_jumps(Real* table, const Real* mask, Real* outer, const Real* exp, Real* jumps, int64_t n) {
    for (int64_t i = 0; i < n; i += kLanes) {
        const V change = load(outer + i) * load(exp + i) + load(jumps + i);
        store(table + i, load(table + i) + load(mask + i) * change);
        store(outer + i, V{});
        store(jumps + i, V{});
    }
}

// Calls work(shape) with the common widths of order 1 as constants, so that the loops over a row are unrolled.
template <class Work>
CRFKIT_INLINE auto with_shape(int64_t n_labels, int64_t order, const Work& work) {
    const int64_t width = padded<Real>(n_labels);
    if (order == 2) return work(LabelPairStates{n_labels, width});
    switch (width) {
        case kPad<Real>: return work(LabelStates<Fixed<kPad<Real>>>{n_labels, {}});
        case 2 * kPad<Real>: return work(LabelStates<Fixed<2 * kPad<Real>>>{n_labels, {}});
        case 3 * kPad<Real>: return work(LabelStates<Fixed<3 * kPad<Real>>>{n_labels, {}});
        case 4 * kPad<Real>: return work(LabelStates<Fixed<4 * kPad<Real>>>{n_labels, {}});
        case 5 * kPad<Real>: return work(LabelStates<Fixed<5 * kPad<Real>>>{n_labels, {}});
        case 6 * kPad<Real>: return work(LabelStates<Fixed<6 * kPad<Real>>>{n_labels, {}});
        default: return work(LabelStates<int64_t>{n_labels, width});
    }
}

// The same for what is called once per run or decodes: order 1 with one width for all.
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

int64_t scratch_size(int64_t longest, int64_t n_labels, int64_t order, bool pairs, bool tangent) {
    const int64_t one = with_plain_shape(n_labels, order, [&](const auto& shape) {
        return lattice_size(shape, longest, pairs && order == 1) + (tangent ? further_size(shape, longest) : 0);
    });
    const int64_t several = batches_size(n_labels, order, longest);
    return one > several ? one : several;
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
