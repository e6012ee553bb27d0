// Uniform numbers by counter: the same for a (seed, sample, node) whichever thread asks, in whatever order.
#pragma once

#include <cstdint>

namespace crfkit {

class CounterRandom {
public:
    CounterRandom(uint64_t seed, uint64_t sample) : state_(mix(mix(seed) + sample * kStep)) {}
    // In [0, 1), 53 bits.
    double operator()(uint64_t node) const {
        return static_cast<double>(mix(state_ + (node + 1) * kStep) >> 11) * 0x1.0p-53;
    }

private:
    static constexpr uint64_t kStep = 0x9e3779b97f4a7c15ull;  // 2^64 / golden ratio, as in SplitMix64
    static constexpr uint64_t mix(uint64_t z) {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
    uint64_t state_;
};

// The state whose share of [0, 1) holds u; never one of probability 0. p is [K], spaced by stride.
inline int draw(const double* p, int64_t stride, int K, double u) {
    double below = 0.0;
    int last = 0;
    for (int k = 0; k < K; ++k) {
        if (p[k * stride] <= 0.0) continue;
        last = k;
        below += p[k * stride];
        if (u < below) break;
    }
    return last;
}

}  // namespace crfkit
