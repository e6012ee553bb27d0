#include "../support/dispatch.hpp"
#include "chunks.hpp"

namespace crfkit {

const VectorKernels& vector_kernels() {
#ifdef CRFKIT_X86
    return *choose_kernels("auto", chunks_generic(), &chunks_avx2(), &chunks_avx512());
#else
    return *choose_kernels<VectorKernels>("auto", chunks_generic(), nullptr, nullptr);
#endif
}

}  // namespace crfkit
