#pragma once

#include "../core/interner.hpp"
#include "common.hpp"

namespace crfkit {

// A frozen set of strings with ids, over arrays that may lie in a memory-mapped file.
struct StringTable {
    Array<uint64_t> offsets;
    Array<uint8_t> bytes;
    Array<uint64_t> slots;

    StringIndex view() const {
        return {slots.data(), slots.size(), offsets.data(), reinterpret_cast<const char*>(bytes.data()),
                offsets.size() - 1};
    }
};

// The strings of `source` at `order`, in that order.
StringTable make_table(const StringIndex& source, const int64_t* order, size_t n);

}  // namespace crfkit
