// Strings to dense ids: a growing table for training, a frozen one that is searched where it lies
// (in a memory-mapped model file). Both are the same open-addressing table.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../support/hash.hpp"

namespace crfkit {

// A slot is 0 (empty) or (upper half of the hash) << 32 | (id + 1); linear probing.
struct StringIndex {
    const uint64_t* slots = nullptr;  // [capacity], a power of two
    uint64_t capacity = 0;
    const uint64_t* offsets = nullptr;  // [size + 1] into bytes
    const char* bytes = nullptr;
    uint64_t size = 0;

    std::string_view at(uint64_t id) const {
        return {bytes + offsets[id], static_cast<size_t>(offsets[id + 1] - offsets[id])};
    }

    // The id of text, or -1.
    int32_t find(std::string_view text) const { return find(text, hash_string(text)); }
    int32_t find(std::string_view text, uint64_t hash) const {
        if (capacity == 0) return -1;
        const uint64_t tag = hash >> 32;
        for (uint64_t i = hash & (capacity - 1); slots[i] != 0; i = (i + 1) & (capacity - 1)) {
            if (slots[i] >> 32 != tag) continue;
            const auto id = static_cast<uint32_t>(slots[i]) - 1;
            if (at(id) == text) return static_cast<int32_t>(id);
        }
        return -1;
    }
};

// The slots for `size` strings; throws if one occurs twice.
std::vector<uint64_t> build_slots(const uint64_t* offsets, const char* bytes, uint64_t size);

// A frozen table that owns its arrays.
struct StringArrays {
    std::vector<uint64_t> offsets{0};
    std::vector<uint8_t> bytes;
    std::vector<uint64_t> slots;
};

// The table of these strings, numbered in this order.
StringArrays freeze(const std::vector<std::string>& strings);
// The table of the strings of `source` at `order`, renumbered in that order.
StringArrays freeze(const StringIndex& source, std::span<const int64_t> order);

// What is wrong with a frozen table that came from outside, or "" if nothing is.
std::string check_index(const StringIndex& index, uint64_t n_bytes);

class Interner {
public:
    Interner();

    // The id of text, given out in order of first occurrence.
    int32_t intern(std::string_view text) { return intern(text, hash_string(text)); }
    int32_t intern(std::string_view text, uint64_t hash);
    int32_t find(std::string_view text) const { return view().find(text); }
    StringIndex view() const {
        return {slots_.data(), slots_.size(), offsets_.data(), bytes_.data(), offsets_.size() - 1};
    }
    uint64_t size() const { return offsets_.size() - 1; }
    const std::vector<uint64_t>& offsets() const { return offsets_; }
    const std::vector<char>& bytes() const { return bytes_; }

private:
    void grow();

    std::vector<uint64_t> slots_;
    std::vector<uint64_t> offsets_{0};
    std::vector<char> bytes_;
};

}  // namespace crfkit
