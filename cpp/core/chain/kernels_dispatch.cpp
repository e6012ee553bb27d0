#include "../support/dispatch.hpp"
#include "kernels.hpp"

namespace crfkit {

const ChainKernels* find_kernels(const char* name) {
#ifdef CRFKIT_X86
    return choose_kernels(name, kernels_generic(), &kernels_avx2(), &kernels_avx512());
#else
    return choose_kernels<ChainKernels>(name, kernels_generic(), nullptr, nullptr);
#endif
}

}  // namespace crfkit
