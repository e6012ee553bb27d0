// Tables of potentials, what a sequence needs of scratch, and the kernels of one instruction set and precision.
#include "entries.hpp"

namespace crfkit::CRFKIT_SPACE {
namespace {

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

int64_t scratch_size(int64_t longest, int64_t n_labels, int64_t order, bool pairs, bool tangent) {
    const int64_t one = with_plain_shape(n_labels, order, [&](const auto& shape) {
        return lattice_size(shape, longest, pairs && order == 1) + (tangent ? further_size(shape, longest) : 0);
    });
    const int64_t several = batches_size(n_labels, order, longest);
    return one > several ? one : several;
}

}  // namespace

const TrainingKernels<Real>& training_kernels() {
    static const TrainingKernels<Real> table{scratch_size,   exponentiate,     jump_tables,  step_jumps,
                                             value_gradient, hessian_diagonal, dense_beliefs};
    return table;
}

#ifndef CRFKIT_SINGLE
const ChainKernels& chain_kernels() {
    static const ChainKernels table{training_kernels(),
                                    CRFKIT_NAME_OF(CRFKIT_KERNELS),
                                    &CRFKIT_SINGLE_OF(CRFKIT_KERNELS)::training_kernels(),
                                    hessian_product,
                                    hinge,
                                    marginals,
                                    viterbi,
                                    dense_viterbi,
                                    dense_viterbi_of_floats,
                                    dense_covariances,
                                    dense_curvature_scratch,
                                    best_scores,
                                    span_probabilities,
                                    entropies,
                                    sample};
    return table;
}
#endif

}  // namespace crfkit::CRFKIT_SPACE
