// The kernels of training in single precision: like kernels.inl, but the including file defines CRFKIT_SINGLE and
// counts CRFKIT_LANES in floats.
#include <limits>

#include "../support/simd.hpp"
#include "kernels.hpp"

namespace crfkit {
namespace {

using Weights = ChainWeightsOf<float>;
using Gradient = ChainGradientOf<float>;
using Cache = ChainCacheOf<float>;

#include "inference.inl"

#include "gradient.inl"

}  // namespace

const TrainingKernels<float>& CRFKIT_SINGLE_KERNELS() {
    static const TrainingKernels<float> table{scratch_size, exponentiate,   jump_tables,
                                              step_jumps,   value_gradient, hessian_diagonal};
    return table;
}

}  // namespace crfkit
