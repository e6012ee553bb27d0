// Uniform numbers by counter: the same for a (seed, sample, node) whichever thread asks, in whatever order.
#pragma once

#include <cstdint>

#include "random.hpp"

namespace crfkit {

class CounterRandom {
public:
    CounterRandom(uint64_t seed, uint64_t sample) : key_(derive(mix(seed), sample)) {}
    double operator()(uint64_t node) const { return uniform(key_, node); }

private:
    uint64_t key_;
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
