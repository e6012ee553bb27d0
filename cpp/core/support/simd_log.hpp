// The logarithm of vectors; with simd.hpp, per instruction set.
#pragma once

#include "simd.hpp"

namespace crfkit::CRFKIT_SPACE {

// log(x) for normal x > 0, to 2 ulp or so. x = m·2^e with m in [√½, √2); log m = 2·artanh(s), s = (m − 1)/(m + 1),
// by its series to s^19 (|s| < 0.172: error < 2e-17).
CRFKIT_INLINE V log_positive(V x) {
    const VI bits = (VI)x;
    const VI e = (bits - (VI{} + 0x3fe6a09e667f3bcdLL)) >> 52;
    const V m = (V)(bits - (e << 52));
    const V exponent = (V)(e + (VI{} + 0x4338000000000000LL)) - splat(0x1.8p52);  // e as a double
    const V s = (m - splat(1.0)) / (m + splat(1.0)), z = s * s;
    V p = splat(1.0 / 19);
    p = p * z + splat(1.0 / 17);
    p = p * z + splat(1.0 / 15);
    p = p * z + splat(1.0 / 13);
    p = p * z + splat(1.0 / 11);
    p = p * z + splat(1.0 / 9);
    p = p * z + splat(1.0 / 7);
    p = p * z + splat(1.0 / 5);
    p = p * z + splat(1.0 / 3);
    const V twice = s + s;
    return exponent * splat(0x1.62e42fefa39efp-1) + (twice + twice * z * p);
}

}  // namespace crfkit::CRFKIT_SPACE
