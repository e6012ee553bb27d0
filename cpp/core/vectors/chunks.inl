// The loops over one chunk. Included by one file per instruction set, which defines CRFKIT_LANES and CRFKIT_CHUNKS, the
// function that returns the table.
#include "../support/simd.hpp"
#include "chunks.hpp"

namespace crfkit {

namespace {

CRFKIT_INLINE V load_wide(const double* p) { return load(p); }
CRFKIT_INLINE V load_wide(const float* p) {
    typedef float Narrow __attribute__((vector_size(4 * CRFKIT_LANES)));
    Narrow v;
    __builtin_memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, V);
}

template <class A, class B>
double dot(const A* x, const B* y, int64_t n) {
    V total[4] = {};
    int64_t i = 0;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes)
        for (int b = 0; b < 4; ++b) total[b] += load_wide(x + i + b * kLanes) * load_wide(y + i + b * kLanes);
    double rest = 0.0;
    for (; i < n; ++i) rest += static_cast<double>(x[i]) * static_cast<double>(y[i]);
    return sum((total[0] + total[1]) + (total[2] + total[3])) + rest;
}

template <class T>
void combine(const double* c, const T* rows, int64_t k, int64_t stride, int64_t n, double a, const double* x,
             double* out) {
    int64_t j = 0;
    for (; j + 4 * kLanes <= n; j += 4 * kLanes) {
        V total[4];
        for (int b = 0; b < 4; ++b) total[b] = splat(a) * load(x + j + b * kLanes);
        for (int64_t i = 0; i < k; ++i) {
            const V scale = splat(c[i]);
            for (int b = 0; b < 4; ++b) total[b] += scale * load_wide(rows + i * stride + j + b * kLanes);
        }
        for (int b = 0; b < 4; ++b) store(out + j + b * kLanes, total[b]);
    }
    for (; j < n; ++j) {
        double total = a * x[j];
        for (int64_t i = 0; i < k; ++i) total += c[i] * static_cast<double>(rows[i * stride + j]);
        out[j] = total;
    }
}

template <class T>
void differences(const double* x, const double* g, const double* x_new, const double* g_new, const double* scale,
                 int64_t n, T* s, T* y) {
    for (int64_t j = 0; j < n; ++j) {
        const double f = scale ? scale[j] : 1.0;
        s[j] = static_cast<T>((x_new[j] - x[j]) / f);
        y[j] = static_cast<T>((g_new[j] - g[j]) * f);
    }
}

template <class T>
constexpr ChunkKernels<T> kernels_of() {
    return {dot<T, T>, dot<T, double>, combine<T>, differences<T>};
}

}  // namespace

const VectorKernels& CRFKIT_CHUNKS() {
    static const VectorKernels table{kernels_of<double>(), kernels_of<float>()};
    return table;
}

}  // namespace crfkit
