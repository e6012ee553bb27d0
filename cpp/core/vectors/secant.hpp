// What step lengths see of a step, in one pass over the four vectors.
#pragma once

#include <array>
#include <cstdint>

namespace crfkit {

// (s·s, s·y, y·y, s·g_new, s·g) with s = x_new − x, y = g_new − g.
inline std::array<double, 5> secant_products(const double* x, const double* g, const double* x_new, const double* g_new,
                                             int64_t n) {
    constexpr int kLanes = 8;  // independent sums: the compiler keeps them in vectors
    double ss[kLanes] = {}, sy[kLanes] = {}, yy[kLanes] = {}, up[kLanes] = {}, down[kLanes] = {};
    const auto add = [&](int64_t k, int l) {
        const double s = x_new[k] - x[k], y = g_new[k] - g[k];
        ss[l] += s * s;
        sy[l] += s * y;
        yy[l] += y * y;
        up[l] += s * g_new[k];
        down[l] += s * g[k];
    };
    int64_t k = 0;
    for (; k + kLanes <= n; k += kLanes)
        for (int l = 0; l < kLanes; ++l) add(k + l, l);
    for (; k < n; ++k) add(k, 0);
    const auto total = [](const double* lanes) {
        double sum = 0.0;
        for (int l = 0; l < kLanes; ++l) sum += lanes[l];
        return sum;
    };
    return {total(ss), total(sy), total(yy), total(up), total(down)};
}

}  // namespace crfkit
