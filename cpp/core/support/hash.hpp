// 64-bit string hash: eight bytes at a time, folded through a 128-bit product.
// Model files store tables built with it, so its values are part of the format (version 1).
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace crfkit {

inline uint64_t fold_multiply(uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_bytes(const char* data, size_t size) {
    constexpr uint64_t k1 = 0x9e3779b97f4a7c15ull, k2 = 0xd1b54a32d192ed03ull;
    uint64_t state = k2 ^ (size * k1);
    while (size >= 8) {
        uint64_t word;
        std::memcpy(&word, data, 8);
        state = fold_multiply(state ^ word, k1);
        data += 8;
        size -= 8;
    }
    uint64_t last = 0;
    std::memcpy(&last, data, size);
    return fold_multiply(state ^ last, k2 ^ (state >> 32));
}

inline uint64_t hash_string(std::string_view text) { return hash_bytes(text.data(), text.size()); }

}  // namespace crfkit
