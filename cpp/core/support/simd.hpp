// Vectors of reals in the compiler's portable vector type (GCC and Clang): of doubles, or of floats with CRFKIT_SINGLE.
// A register holds 8 doubles with AVX-512, 4 with AVX2, 2 with SSE2 and NEON, and twice as many floats.
//
// CMakeLists.txt compiles kernel sources once per instruction set, with its name in CRFKIT_KERNELS. All that they
// define is in a namespace of that name (avx2, in single precision avx2_single), so each instruction set keeps its own
// copy.
#pragma once

#include <cmath>
#include <cstdint>

#if defined(__AVX512F__)
#define CRFKIT_REGISTER_BYTES 64
#elif defined(__AVX2__)
#define CRFKIT_REGISTER_BYTES 32
#else
#define CRFKIT_REGISTER_BYTES 16
#endif

#ifdef CRFKIT_SINGLE
#define CRFKIT_LANES (CRFKIT_REGISTER_BYTES / 4)
#else
#define CRFKIT_LANES (CRFKIT_REGISTER_BYTES / 8)
#endif

#define CRFKIT_QUOTE(x) #x
#define CRFKIT_NAME_OF(x) CRFKIT_QUOTE(x)
#define CRFKIT_JOIN(x, y) x##y
#define CRFKIT_SINGLE_OF(x) CRFKIT_JOIN(x, _single)

#ifdef CRFKIT_SINGLE
#define CRFKIT_SPACE CRFKIT_SINGLE_OF(CRFKIT_KERNELS)
#else
#define CRFKIT_SPACE CRFKIT_KERNELS
#endif

namespace crfkit::CRFKIT_SPACE {

#ifdef CRFKIT_SINGLE
typedef float Real;
typedef int Integer;
typedef unsigned int Unsigned;
#else
typedef double Real;
typedef long long Integer;
typedef unsigned long long Unsigned;
#endif

constexpr int kLanes = CRFKIT_LANES;
typedef Real V __attribute__((vector_size(sizeof(Real) * CRFKIT_LANES)));
typedef Integer VI __attribute__((vector_size(sizeof(Real) * CRFKIT_LANES)));
typedef Unsigned VU __attribute__((vector_size(sizeof(Real) * CRFKIT_LANES)));  // whose sums may wrap around
constexpr int kRegisters = CRFKIT_REGISTER_BYTES == 64 ? 32 : 16;

#define CRFKIT_INLINE inline __attribute__((always_inline))

CRFKIT_INLINE V load(const Real* p) {
    V v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}
CRFKIT_INLINE void store(Real* p, V v) { __builtin_memcpy(p, &v, sizeof v); }
CRFKIT_INLINE V splat(Real x) { return x - V{}; }
CRFKIT_INLINE V larger(V a, V b) { return a > b ? a : b; }

// All ones in the lanes whose column is a label.
CRFKIT_INLINE VI label_mask(int64_t column, int64_t n_labels) {
    VI lane;
    for (int i = 0; i < kLanes; ++i) lane[i] = i;
    return (VI)(lane < (VI{} + (Integer)(n_labels - column)));
}

// x in the lanes whose bit is set, 0 in the others; bit 0 is the first lane's.
CRFKIT_INLINE V keep_bits(V x, uint64_t bits) {
    VI lane;
    for (int i = 0; i < kLanes; ++i) lane[i] = i;
    return (V)((VI)x & -(((VI{} + (Integer)bits) >> lane) & 1));
}

// Folds a vector to one number with f(a, b), halving it each time.
template <class F>
CRFKIT_INLINE Real fold(V v, F f) {
#if CRFKIT_LANES == 16
    const auto eight = f(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7),
                         __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
#elif CRFKIT_LANES == 8
    const auto eight = v;
#endif
#if CRFKIT_LANES >= 8
    const auto four =
        f(__builtin_shufflevector(eight, eight, 0, 1, 2, 3), __builtin_shufflevector(eight, eight, 4, 5, 6, 7));
#elif CRFKIT_LANES == 4
    const auto four = v;
#endif
#if CRFKIT_LANES >= 4
    const auto two = f(__builtin_shufflevector(four, four, 0, 1), __builtin_shufflevector(four, four, 2, 3));
#else
    const auto two = v;
#endif
    return f(two[0], two[1]);
}
CRFKIT_INLINE Real sum(V v) {
    return fold(v, [](auto a, auto b) { return a + b; });
}
CRFKIT_INLINE Real maximum(V v) {
    return fold(v, [](auto a, auto b) { return a > b ? a : b; });
}

#ifdef CRFKIT_SINGLE
// exp(x) for x <= 0 to 1 ulp or so; exp(-80) below that, so that products stay clear of denormal numbers; NaN stays
// NaN. x = n ln 2 + r, |r| <= ln 2 / 2; exp(r) by its Taylor polynomial of degree 7 (error < 6e-9).
CRFKIT_INLINE V exp_nonpositive(V x) {
    const V floor = splat(-80.0f);
    x = x < floor ? floor : x;
    const V magic = splat(0x1.8p23f);  // adding it leaves round(x / ln 2) in the low mantissa bits
    const V shifted = x * splat(0x1.715476p0f) + magic;
    const V n = shifted - magic;
    const V r = (x - n * splat(0x1.62e4p-1f)) - n * splat(0x1.7f7d1cp-20f);
    V p = splat(1.0f / 5040.0f);
    p = p * r + splat(1.0f / 720.0f);
    p = p * r + splat(1.0f / 120.0f);
    p = p * r + splat(1.0f / 24.0f);
    p = p * r + splat(1.0f / 6.0f);
    p = p * r + splat(0.5f);
    p = p * r + splat(1.0f);
    p = p * r + splat(1.0f);
    return (V)((VU)p + ((VU)shifted << 23));
}
#else
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
#endif

}  // namespace crfkit::CRFKIT_SPACE
