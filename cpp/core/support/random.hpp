// Random numbers by their place: the number for (seed, stream, chain, sweep, node) is a function of these and of
// nothing else, so neither threads nor the order of the work change what is drawn.
#pragma once

#include <cstdint>

namespace crfkit {

// SplitMix64 (Steele, Lea & Flood 2014): the n-th number of the generator with state s is mix(s + n·GAMMA).
inline constexpr uint64_t GAMMA = 0x9E3779B97F4A7C15;

inline uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

// The state of a generator that is the n-th of those that `key` has.
inline uint64_t derive(uint64_t key, uint64_t n) { return mix(key + (n + 1) * GAMMA); }

// The n-th number of the generator `key`, uniform in [0, 1).
inline double uniform(uint64_t key, uint64_t n) { return static_cast<double>(derive(key, n) >> 11) * 0x1p-53; }

}  // namespace crfkit
