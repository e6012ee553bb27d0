// 64-bit string hashes: a fast one, and one with a key for strings that were chosen to collide in the fast one.
// Model files store tables built with them, so their values are part of the format (version 1).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace crfkit {

inline uint64_t fold_multiply(uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// The last bytes of a text, up to seven of them, as a number. `whole`: eight or more bytes end with them.
inline uint64_t last_bytes(const char* data, size_t size, bool whole) {
    const auto load = [&]<class Word>(Word word, const char* from) {
        std::memcpy(&word, from, sizeof(Word));
        return uint64_t{word};
    };
    if constexpr (std::endian::native == std::endian::little) {
        if (size == 0) return 0;
        if (whole) return load(uint64_t{}, data + size - 8) >> (64 - 8 * size);
        if (size >= 4) return load(uint32_t{}, data) | load(uint32_t{}, data + size - 4) << (8 * size - 32);
        const auto byte = [&](size_t at) { return load(uint8_t{}, data + at) << (8 * at); };
        return byte(0) | byte(size / 2) | byte(size - 1);
    }
    uint64_t last = 0;
    std::memcpy(&last, data, size);
    return last;
}

// Eight bytes at a time, folded through a 128-bit product. Anybody can make strings that collide.
inline uint64_t hash_bytes(const char* data, size_t size) {
    const bool whole = size >= 8;
    constexpr uint64_t k1 = 0x9e3779b97f4a7c15ull, k2 = 0xd1b54a32d192ed03ull;
    uint64_t state = k2 ^ (size * k1);
    while (size >= 8) {
        uint64_t word;
        std::memcpy(&word, data, 8);
        state = fold_multiply(state ^ word, k1);
        data += 8;
        size -= 8;
    }
    return fold_multiply(state ^ last_bytes(data, size, whole), k2 ^ (state >> 32));
}

inline uint64_t hash_string(std::string_view text) { return hash_bytes(text.data(), text.size()); }

// 128 bits; zeros stand for the hash without a key.
struct HashKey {
    uint64_t first = 0, second = 0;
    bool is_set() const { return (first | second) != 0; }
    friend bool operator==(const HashKey&, const HashKey&) = default;
};

// SipHash-1-3 (Aumasson and Bernstein, 2012): whoever does not know the key cannot make strings that collide.
inline uint64_t siphash(std::string_view text, HashKey key) {
    uint64_t v0 = key.first ^ 0x736f6d6570736575ull, v1 = key.second ^ 0x646f72616e646f6dull;
    uint64_t v2 = key.first ^ 0x6c7967656e657261ull, v3 = key.second ^ 0x7465646279746573ull;
    const auto round = [&] {
        v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
        v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
        v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
        v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
    };
    const auto absorb = [&](uint64_t word) {
        v3 ^= word;
        round();
        v0 ^= word;
    };
    const char* data = text.data();
    size_t left = text.size();
    for (; left >= 8; data += 8, left -= 8) {
        uint64_t word;
        std::memcpy(&word, data, 8);
        absorb(word);
    }
    uint64_t last = 0;
    if (left > 0) std::memcpy(&last, data, left);
    absorb(last | static_cast<uint64_t>(text.size()) << 56);
    v2 ^= 0xff;
    for (int k = 0; k < 3; ++k) round();
    return v0 ^ v1 ^ v2 ^ v3;
}

inline uint64_t hash_string(std::string_view text, HashKey key) {
    return key.is_set() ? siphash(text, key) : hash_string(text);
}

// A key that nobody outside this process knows.
HashKey secret_key();

}  // namespace crfkit
