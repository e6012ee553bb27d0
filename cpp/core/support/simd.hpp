// Vectors of doubles in the compiler's portable vector type (GCC and Clang). The including file says
// with CRFKIT_LANES how many fill a register: 8 for AVX-512, 4 for AVX2, 2 for SSE2 and NEON.
// Everything is static, so that each instruction set keeps its own copy.
#pragma once

#include <cmath>
#include <cstdint>

namespace crfkit {
namespace {

constexpr int kLanes = CRFKIT_LANES;
typedef double V __attribute__((vector_size(8 * CRFKIT_LANES)));
typedef long long VI __attribute__((vector_size(8 * CRFKIT_LANES)));
typedef unsigned long long VU __attribute__((vector_size(8 * CRFKIT_LANES)));  // whose sums may wrap around

#define CRFKIT_INLINE static inline __attribute__((always_inline))
#define CRFKIT_INLINE_MEMBER inline __attribute__((always_inline))

CRFKIT_INLINE V load(const double* p) {
    V v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}
CRFKIT_INLINE void store(double* p, V v) { __builtin_memcpy(p, &v, sizeof v); }
CRFKIT_INLINE V splat(double x) { return x - V{}; }
CRFKIT_INLINE V larger(V a, V b) { return a > b ? a : b; }

// All ones in the lanes whose column is a label.
CRFKIT_INLINE VI label_mask(int64_t column, int64_t n_labels) {
    VI lane;
    for (int i = 0; i < kLanes; ++i) lane[i] = i;
    return (VI)(lane < (VI{} + (long long)(n_labels - column)));
}

// x in the lanes whose bit is set, 0 in the others; bit 0 is the first lane's.
CRFKIT_INLINE V keep_bits(V x, uint64_t bits) {
    VI lane;
    for (int i = 0; i < kLanes; ++i) lane[i] = i;
    return (V)((VI)x & -(((VI{} + (long long)bits) >> lane) & 1));
}

// Folds a vector to one number with f(a, b), halving it each time.
template <class F>
CRFKIT_INLINE double fold(V v, F f) {
#if CRFKIT_LANES == 8
    const auto a = f(__builtin_shufflevector(v, v, 0, 1, 2, 3), __builtin_shufflevector(v, v, 4, 5, 6, 7));
    const auto b = f(__builtin_shufflevector(a, a, 0, 1), __builtin_shufflevector(a, a, 2, 3));
#elif CRFKIT_LANES == 4
    const auto b = f(__builtin_shufflevector(v, v, 0, 1), __builtin_shufflevector(v, v, 2, 3));
#else
    const auto b = v;
#endif
    return f(b[0], b[1]);
}
CRFKIT_INLINE double sum(V v) {
    return fold(v, [](auto a, auto b) { return a + b; });
}
CRFKIT_INLINE double maximum(V v) {
    return fold(v, [](auto a, auto b) { return a > b ? a : b; });
}

// exp(x) for x <= 0 to 1 ulp or so; exp(-708) below that; NaN stays NaN.
// x = n ln 2 + r, |r| <= ln 2 / 2; exp(r) by its Taylor polynomial of degree 13 (error < 5e-18).
CRFKIT_INLINE V exp_nonpositive(V x) {
    const V floor = splat(-708.0);
    x = x < floor ? floor : x;
    const V magic = splat(0x1.8p52);  // adding it leaves round(x / ln 2) in the low mantissa bits
    const V shifted = x * splat(0x1.71547652b82fep0) + magic;
    const V n = shifted - magic;
    const V r = (x - n * splat(0x1.62e42fefa3800p-1)) - n * splat(0x1.ef35793c76730p-45);
    V p = splat(1.0 / 6227020800.0);
    p = p * r + splat(1.0 / 479001600.0);
    p = p * r + splat(1.0 / 39916800.0);
    p = p * r + splat(1.0 / 3628800.0);
    p = p * r + splat(1.0 / 362880.0);
    p = p * r + splat(1.0 / 40320.0);
    p = p * r + splat(1.0 / 5040.0);
    p = p * r + splat(1.0 / 720.0);
    p = p * r + splat(1.0 / 120.0);
    p = p * r + splat(1.0 / 24.0);
    p = p * r + splat(1.0 / 6.0);
    p = p * r + splat(0.5);
    p = p * r + splat(1.0);
    p = p * r + splat(1.0);
    return (V)((VU)p + ((VU)shifted << 52));
}

}  // namespace
}  // namespace crfkit
