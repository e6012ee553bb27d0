#include "../../support/dispatch.hpp"
#include "kernels.hpp"

namespace crfkit {

const ChainKernels* find_kernels(const char* name) {
#ifdef CRFKIT_X86
    return choose_kernels(name, generic::chain_kernels(), &avx2::chain_kernels(), &avx512::chain_kernels());
#else
    return choose_kernels<ChainKernels>(name, generic::chain_kernels(), nullptr, nullptr);
#endif
}

}  // namespace crfkit
