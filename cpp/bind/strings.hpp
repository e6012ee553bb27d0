#pragma once

#include "../core/text/interner.hpp"
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

StringTable make_table(StringArrays&& arrays);

}  // namespace crfkit
