// Weights as bytes: kBlock of them share a step, and a weight is (code - 128) * step. The step of a block is its
// largest absolute weight / 127, so that no weight is off by more than half a step, and 0 stays 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

namespace crfkit {

constexpr size_t kWeightBlock = 64;

inline size_t weight_blocks(size_t n) { return n / kWeightBlock + (n % kWeightBlock != 0); }

// codes [n], steps [weight_blocks(n)]
inline void encode_weights(std::span<const double> weights, uint8_t* codes, double* steps) {
    for (size_t begin = 0; begin < weights.size(); begin += kWeightBlock) {
        const size_t end = std::min(begin + kWeightBlock, weights.size());
        double most = 0.0;
        for (size_t i = begin; i < end; ++i) most = std::max(most, std::abs(weights[i]));
        const double step = most / 127.0;
        steps[begin / kWeightBlock] = step;
        for (size_t i = begin; i < end; ++i) {
            const double code = step > 0.0 ? std::nearbyint(weights[i] / step) : 0.0;
            codes[i] = static_cast<uint8_t>(128.0 + std::clamp(code, -127.0, 127.0));
        }
    }
}

inline void decode_weights(std::span<const uint8_t> codes, const double* steps, double* weights) {
    for (size_t begin = 0; begin < codes.size(); begin += kWeightBlock) {
        const size_t end = std::min(begin + kWeightBlock, codes.size());
        const double step = steps[begin / kWeightBlock];
        for (size_t i = begin; i < end; ++i) weights[i] = (static_cast<int>(codes[i]) - 128) * step;
    }
}

}  // namespace crfkit
