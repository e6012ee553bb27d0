#include "../support/dispatch.hpp"
#include "pseudo_table.hpp"

namespace crfkit {

const PseudoKernels* find_pseudo_kernels(const char* name) {
#ifdef CRFKIT_X86
    return choose_kernels(name, generic::pseudo_kernels(), &avx2::pseudo_kernels(), &avx512::pseudo_kernels());
#else
    return choose_kernels<PseudoKernels>(name, generic::pseudo_kernels(), nullptr, nullptr);
#endif
}

}  // namespace crfkit
