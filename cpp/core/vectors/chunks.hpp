// The loops of vectors.hpp over one chunk, for one instruction set. Plain structs only: see chain/kernels/kernels.hpp.
#pragma once

#include <cstdint>

namespace crfkit {

template <class T>
struct ScaleOf {
    using type = double;
};
template <>
struct ScaleOf<uint16_t> {
    using type = float;
};

template <class T>
struct ChunkKernels {
    using Scale = typename ScaleOf<T>::type;
    // x · y
    double (*dot)(const T* x, const T* y, int64_t n);
    // out[i] = rows[i * stride …] · x
    void (*dot_rows)(const T* rows, int64_t k, int64_t stride, const double* x, int64_t n, double* out);
    // out = scale x; out may be x
    void (*multiply)(const Scale* scale, const double* x, int64_t n, double* out);
    // out = a x + sum_i c[i] rows[i * stride …]
    void (*combine)(const double* c, const T* rows, int64_t k, int64_t stride, int64_t n, double a, const double* x,
                    double* out);
    // out = x, rounded
    void (*round)(const double* x, int64_t n, T* out);
    // out = scale row; scale may be null
    void (*widen)(const T* row, const Scale* scale, int64_t n, double* out);
    // s = a row, y = (g_new - g) * scale; scale may be null
    void (*step)(double a, const T* row, const double* g, const double* g_new, const Scale* scale, int64_t n, T* s,
                 T* y);
    // s = (x_new - x) / scale, y = (g_new - g) * scale; scale may be null
    void (*differences)(const double* x, const double* g, const double* x_new, const double* g_new, const Scale* scale,
                        int64_t n, T* s, T* y);
};

struct VectorKernels {
    ChunkKernels<double> doubles;
    ChunkKernels<float> floats;
    ChunkKernels<uint16_t> halves;
};

namespace generic {
const VectorKernels& vector_kernels();
}
namespace avx2 {
const VectorKernels& vector_kernels();
}
namespace avx512 {
const VectorKernels& vector_kernels();
}
// Those that "auto" stands for.
const VectorKernels& vector_kernels();

}  // namespace crfkit
