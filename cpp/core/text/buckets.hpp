// Names that are not kept: a name is the number of the bucket that its hash falls into.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../support/hash.hpp"

namespace crfkit {

constexpr int64_t kFewestBits = 4, kMostBits = 28;

inline uint32_t bucket_at(uint64_t hash, int64_t bits) { return static_cast<uint32_t>(hash >> (64 - bits)); }
inline uint32_t bucket_of(std::string_view name, int64_t bits) { return bucket_at(hash_string(name), bits); }

// Buckets with ids 0, 1, …; the others have none.
struct Buckets {
    int64_t bits = 0;
    std::vector<uint32_t> used;  // the bucket of each id
    std::vector<int32_t> ids;    // [2^bits], -1: none

    Buckets() = default;
    explicit Buckets(int64_t n_bits) : bits(n_bits), ids(size_t{1} << n_bits, -1) {}

    int32_t add(uint32_t bucket) {
        int32_t& id = ids[bucket];
        if (id < 0) {
            id = static_cast<int32_t>(used.size());
            used.push_back(bucket);
        }
        return id;
    }
};

}  // namespace crfkit
