#pragma once

#include <memory>

#include "../core/text/buckets.hpp"
#include "../core/text/interner.hpp"
#include "common.hpp"

namespace crfkit {

// A frozen set of strings with ids, over arrays that may be parts of a model file.
struct StringTable {
    Array<uint64_t> offsets;
    Array<uint8_t> bytes;
    Array<uint64_t> slots;

    StringIndex view() const {
        return stored_index(slots.data(), slots.size(), offsets.data(), reinterpret_cast<const char*>(bytes.data()),
                            offsets.size() - 1);
    }
};

StringTable make_table(StringArrays&& arrays);

// Buckets of hashed names with ids, frozen.
struct BucketTable {
    std::shared_ptr<const Buckets> buckets;
};

// The table of these ids' buckets, renumbered in this order.
BucketTable taken(const Buckets& table, const Array<int64_t>& order);

// Throws if a table cannot have this many bits.
void check_bits(int64_t bits);

}  // namespace crfkit
