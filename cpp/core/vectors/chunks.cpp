// The loops over one chunk. Compiled once per instruction set.
#include "../support/simd.hpp"

#if CRFKIT_LANES > 2
#include <immintrin.h>
#endif

#include "chunks.hpp"

namespace crfkit::CRFKIT_SPACE {
namespace {

typedef float Narrow __attribute__((vector_size(4 * CRFKIT_LANES)));
typedef uint32_t Bits __attribute__((vector_size(4 * CRFKIT_LANES)));
typedef uint16_t Halves __attribute__((vector_size(2 * CRFKIT_LANES)));

// Conversions of whole vectors. Compilers take several instructions for most of them where there is one. (The masks are
// all ones: GCC warns of its own header without.)
#if CRFKIT_LANES == 8
CRFKIT_INLINE V widen(Narrow x) { return (V)_mm512_maskz_cvtps_pd(0xff, (__m256)x); }
CRFKIT_INLINE Narrow narrow(V x) { return (Narrow)_mm512_maskz_cvtpd_ps(0xff, (__m512d)x); }
CRFKIT_INLINE Bits widen(Halves x) { return (Bits)_mm256_cvtepu16_epi32((__m128i)x); }
CRFKIT_INLINE Halves lower(Bits x) { return (Halves)_mm256_maskz_cvtepi32_epi16(0xff, (__m256i)x); }
#elif CRFKIT_LANES == 4
CRFKIT_INLINE V widen(Narrow x) { return (V)_mm256_cvtps_pd((__m128)x); }
CRFKIT_INLINE Narrow narrow(V x) { return (Narrow)_mm256_cvtpd_ps((__m256d)x); }
CRFKIT_INLINE Bits widen(Halves x) { return (Bits)_mm_cvtepu16_epi32(_mm_cvtsi64_si128((long long)x)); }
CRFKIT_INLINE Halves lower(Bits x) { return (Halves)_mm_cvtsi128_si64(_mm_packus_epi32((__m128i)x, (__m128i)x)); }
#else
CRFKIT_INLINE V widen(Narrow x) { return __builtin_convertvector(x, V); }
CRFKIT_INLINE Narrow narrow(V x) { return __builtin_convertvector(x, Narrow); }
CRFKIT_INLINE Bits widen(Halves x) { return __builtin_convertvector(x, Bits); }
CRFKIT_INLINE Halves lower(Bits x) { return __builtin_convertvector(x, Halves); }
#endif

template <class To, class From>
CRFKIT_INLINE To bits_as(const From& from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}
template <class Vector, class T>
CRFKIT_INLINE Vector load_as(const T* p) {
    Vector v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

CRFKIT_INLINE V load_wide(const double* p) { return load(p); }
CRFKIT_INLINE V load_wide(const float* p) { return widen(load_as<Narrow>(p)); }
CRFKIT_INLINE V load_wide(const uint16_t* p) { return widen(bits_as<Narrow>(widen(load_as<Halves>(p)) << 16)); }
CRFKIT_INLINE double wide(double x) { return x; }
CRFKIT_INLINE double wide(float x) { return x; }
CRFKIT_INLINE double wide(uint16_t x) { return bits_as<float>(static_cast<uint32_t>(x) << 16); }

// The upper half of the bits of floats, rounded to the nearest, to even halves where two are as near.
template <class U>
CRFKIT_INLINE U rounded_half(U bits) {
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}
CRFKIT_INLINE void store_narrow(double* p, V x) { store(p, x); }
CRFKIT_INLINE void store_narrow(float* p, V x) {
    const Narrow v = narrow(x);
    __builtin_memcpy(p, &v, sizeof v);
}
CRFKIT_INLINE void store_narrow(uint16_t* p, V x) {
    const Bits bits = bits_as<Bits>(narrow(x));
    const Halves v = lower(rounded_half(bits));
    __builtin_memcpy(p, &v, sizeof v);
}
CRFKIT_INLINE void store_one(double* p, double x) { *p = x; }
CRFKIT_INLINE void store_one(float* p, double x) { *p = static_cast<float>(x); }
CRFKIT_INLINE void store_one(uint16_t* p, double x) {
    *p = static_cast<uint16_t>(rounded_half(bits_as<uint32_t>(static_cast<float>(x))));
}

// The products of R rows with x: several streams of memory are read at once.
template <int R, class A, class B>
CRFKIT_INLINE void dots(const A* rows, int64_t stride, const B* x, int64_t n, double* out) {
    V total[R][4] = {};
    int64_t i = 0;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes)
        for (int b = 0; b < 4; ++b) {
            const V own = load_wide(x + i + b * kLanes);
            for (int r = 0; r < R; ++r) total[r][b] += load_wide(rows + r * stride + i + b * kLanes) * own;
        }
    for (int r = 0; r < R; ++r) {
        double rest = 0.0;
        for (int64_t j = i; j < n; ++j) rest += wide(rows[r * stride + j]) * wide(x[j]);
        out[r] = sum((total[r][0] + total[r][1]) + (total[r][2] + total[r][3])) + rest;
    }
}

template <class T>
double dot(const T* x, const T* y, int64_t n) {
    double product;
    dots<1>(x, 0, y, n, &product);
    return product;
}

template <class T>
void dot_rows(const T* rows, int64_t k, int64_t stride, const double* x, int64_t n, double* out) {
    int64_t i = 0;
    for (; i + 4 <= k; i += 4) dots<4>(rows + i * stride, stride, x, n, out + i);
    for (; i < k; ++i) dots<1>(rows + i * stride, stride, x, n, out + i);
}

template <class Scale>
void multiply(const Scale* scale, const double* x, int64_t n, double* out) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) store(out + i, load_wide(scale + i) * load(x + i));
    for (; i < n; ++i) out[i] = wide(scale[i]) * x[i];
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
        for (int64_t i = 0; i < k; ++i) total += c[i] * wide(rows[i * stride + j]);
        out[j] = total;
    }
}

template <class T>
void round(const double* x, int64_t n, T* out) {
    int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) store_narrow(out + j, load(x + j));
    for (; j < n; ++j) store_one(out + j, x[j]);
}

template <class T, class Scale>
void widen(const T* row, const Scale* scale, int64_t n, double* out) {
    int64_t j = 0;
    if (scale)
        for (; j + kLanes <= n; j += kLanes) store(out + j, load_wide(scale + j) * load_wide(row + j));
    else
        for (; j + kLanes <= n; j += kLanes) store(out + j, load_wide(row + j));
    for (; j < n; ++j) out[j] = (scale ? wide(scale[j]) : 1.0) * wide(row[j]);
}

template <class T, class Scale>
void step(double a, const T* row, const double* g, const double* g_new, const Scale* scale, int64_t n, T* s, T* y) {
    int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
        const V f = scale ? load_wide(scale + j) : splat(1.0);
        store_narrow(s + j, splat(a) * load_wide(row + j));
        store_narrow(y + j, (load(g_new + j) - load(g + j)) * f);
    }
    for (; j < n; ++j) {
        store_one(s + j, a * wide(row[j]));
        store_one(y + j, (g_new[j] - g[j]) * (scale ? wide(scale[j]) : 1.0));
    }
}

template <class T, class Scale>
void differences(const double* x, const double* g, const double* x_new, const double* g_new, const Scale* scale,
                 int64_t n, T* s, T* y) {
    int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
        const V f = scale ? load_wide(scale + j) : splat(1.0);
        store_narrow(s + j, (load(x_new + j) - load(x + j)) / f);
        store_narrow(y + j, (load(g_new + j) - load(g + j)) * f);
    }
    for (; j < n; ++j) {
        const double f = scale ? wide(scale[j]) : 1.0;
        store_one(s + j, (x_new[j] - x[j]) / f);
        store_one(y + j, (g_new[j] - g[j]) * f);
    }
}

template <class T>
constexpr ChunkKernels<T> kernels_of() {
    using Scale = typename ScaleOf<T>::type;
    return {dot<T>,   dot_rows<T>,     multiply<Scale>, combine<T>,
            round<T>, widen<T, Scale>, step<T, Scale>,  differences<T, Scale>};
}

}  // namespace

const VectorKernels& vector_kernels() {
    static const VectorKernels table{kernels_of<double>(), kernels_of<float>(), kernels_of<uint16_t>()};
    return table;
}

}  // namespace crfkit::CRFKIT_SPACE
