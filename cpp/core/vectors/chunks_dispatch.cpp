#include "../support/dispatch.hpp"
#include "chunks.hpp"

namespace crfkit {

const VectorKernels& vector_kernels() {
#ifdef CRFKIT_X86
    return *choose_kernels("auto", generic::vector_kernels(), &avx2::vector_kernels(), &avx512::vector_kernels());
#else
    return *choose_kernels<VectorKernels>("auto", generic::vector_kernels(), nullptr, nullptr);
#endif
}

}  // namespace crfkit
