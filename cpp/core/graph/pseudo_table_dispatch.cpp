#include "../support/dispatch.hpp"
#include "pseudo_table.hpp"

namespace crfkit {

const PseudoKernels* find_pseudo_kernels(const char* name) {
#ifdef CRFKIT_X86
    return choose_kernels(name, pseudo_kernels_generic(), &pseudo_kernels_avx2(), &pseudo_kernels_avx512());
#else
    return choose_kernels<PseudoKernels>(name, pseudo_kernels_generic(), nullptr, nullptr);
#endif
}

}  // namespace crfkit
