// Strings to dense ids: a growing table for training, a frozen one that is searched where it lies
// (in the bytes of a model file). Both are the same open-addressing table.
//
// The hash has no key, so that tables are the same in every process. Where strings were chosen to collide, so that more
// than kLongestRun slots in a row are used (honest strings fill about 100 of 2³¹), the table is built again with a key.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../support/hash.hpp"

namespace crfkit {

constexpr uint64_t kMostStrings = 0x7fffffff;  // ids are int32
constexpr uint64_t kLongestRun = 512;

// More different strings than a table can have.
struct TooManyStrings : std::length_error {
    using std::length_error::length_error;
};

// Whether two texts of the same size are equal. Most are short: for those a call of memcmp takes longer.
inline bool same_bytes(const char* a, const char* b, size_t size) {
    const auto differ = [&]<class Word>(Word, size_t at) {
        Word x, y;
        std::memcpy(&x, a + at, sizeof(Word));
        std::memcpy(&y, b + at, sizeof(Word));
        return x != y;
    };
    if (size > 32) return std::memcmp(a, b, size) == 0;
    if (size >= 8) {
        for (size_t at = 0; at + 8 <= size; at += 8)
            if (differ(uint64_t{}, at)) return false;
        return !differ(uint64_t{}, size - 8);
    }
    if (size >= 4) return !differ(uint32_t{}, 0) && !differ(uint32_t{}, size - 4);
    for (size_t at = 0; at < size; ++at)
        if (a[at] != b[at]) return false;
    return true;
}

// A slot is 0 (empty) or (upper half of the hash) << 32 | (id + 1); linear probing.
struct StringIndex {
    const uint64_t* slots = nullptr;  // [capacity], a power of two
    uint64_t capacity = 0;
    const uint64_t* offsets = nullptr;  // [size + 1] into bytes
    const char* bytes = nullptr;
    uint64_t size = 0;
    HashKey key{};

    std::string_view at(uint64_t id) const {
        return {bytes + offsets[id], static_cast<size_t>(offsets[id + 1] - offsets[id])};
    }

    // The id of text, or -1.
    int32_t find(std::string_view text) const { return find(text, hash_string(text, key)); }
    int32_t find(std::string_view text, uint64_t hash) const {
        if (capacity == 0) return -1;
        const uint64_t tag = hash >> 32;
        for (uint64_t i = hash & (capacity - 1); slots[i] != 0; i = (i + 1) & (capacity - 1)) {
            if (slots[i] >> 32 != tag) continue;
            const auto id = static_cast<uint32_t>(slots[i]) - 1;
            if (holds(id, text)) return static_cast<int32_t>(id);
        }
        return -1;
    }
    bool holds(uint64_t id, std::string_view text) const {
        const std::string_view other = at(id);
        return other.size() == text.size() && same_bytes(other.data(), text.data(), text.size());
    }
};

// The index over stored slots: a power of two of them or, with the key at their end, two more.
inline StringIndex stored_index(const uint64_t* slots, uint64_t n_slots, const uint64_t* offsets, const char* bytes,
                                uint64_t size) {
    if (n_slots <= 2 || std::has_single_bit(n_slots)) return {slots, n_slots, offsets, bytes, size};
    return {slots, n_slots - 2, offsets, bytes, size, {slots[n_slots - 2], slots[n_slots - 1]}};
}

// The slots for `size` strings, as they are stored; throws if a string occurs twice. `hashes`, where they are known,
// are those without a key.
std::vector<uint64_t> build_slots(const uint64_t* offsets, const char* bytes, uint64_t size,
                                  const uint64_t* hashes = nullptr);

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
class Interner;
StringArrays freeze(const Interner& source, std::span<const int64_t> order);

// What is wrong with a frozen table that came from outside, or "" if nothing is.
std::string check_index(const StringIndex& index, uint64_t n_bytes);

class Interner {
public:
    explicit Interner(uint64_t most = kMostStrings);

    // The id of text, given out in order of first occurrence.
    int32_t intern(std::string_view text) { return intern(text, hash(text)); }
    // The same with its hash, which must be of the key that is now in use.
    int32_t intern(std::string_view text, uint64_t hash);
    uint64_t hash(std::string_view text) const { return hash_string(text, key_); }
    HashKey key() const { return key_; }
    int32_t find(std::string_view text) const { return view().find(text); }
    StringIndex view() const {
        return {slots_.data(), slots_.size(), offsets_.data(), bytes_.data(), offsets_.size() - 1, key_};
    }
    uint64_t size() const { return offsets_.size() - 1; }
    const std::vector<uint64_t>& offsets() const { return offsets_; }
    const std::vector<char>& bytes() const { return bytes_; }
    // The hash of each string, of `key`.
    const std::vector<uint64_t>& hashes() const { return hashes_; }

private:
    // Computes all hashes, after the key has changed.
    void hash_again();
    // Places all strings anew, in this number of slots.
    void rebuild(uint64_t capacity);

    std::vector<uint64_t> slots_, hashes_;
    std::vector<uint64_t> offsets_{0};
    std::vector<char> bytes_;
    HashKey key_{};
    uint64_t most_;
};

}  // namespace crfkit
