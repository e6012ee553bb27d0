// Checks of what the kernels index with. Every array of offsets, ids or codes that comes from outside passes through
// one of these before a kernel reads it. They compare and never subtract, so that no number is large enough to pass by
// wrapping around. All throw std::invalid_argument.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace crfkit {

inline constexpr int64_t kMostIds = 0x7fffffff;  // ids and codes are 32-bit numbers

[[noreturn]] void refuse(const std::string& what);

inline void require(bool holds, const char* otherwise) {
    if (!holds) refuse(otherwise);
}

// `name` must have so many entries.
void check_size(size_t size, int64_t expected, const char* name);

// `name` must lie between least and most.
void check_number(int64_t number, int64_t least, int64_t most, const char* name);

// The product of factors >= 0, which must be the size of an array that memory could hold.
int64_t checked_product(std::initializer_list<int64_t> factors, const char* name);

// Codes of label pairs (order 1) and of label triples (order 2) must be 32-bit numbers.
void check_labels(int64_t n_labels, int64_t order);
// A table of all pairs of states must have a 32-bit size.
void check_states(int64_t n_states);

// Offsets must ascend from 0 to end.
void check_offsets(std::span<const int64_t> offsets, int64_t end, const char* name);

// Ids must be from first to end − 1.
void check_ids(std::span<const int32_t> ids, int64_t end, const char* name, int64_t first = 0);
void check_ids(std::span<const int64_t> ids, int64_t end, const char* name, int64_t first = 0);

// Codes must ascend, no two the same, from 0 to end − 1.
void check_codes(std::span<const int32_t> codes, int64_t end, const char* name);

// Row r has the codes offsets[r] … offsets[r + 1]: offsets must fit n rows, and the codes of each row ascend, from 0 to
// end − 1. With `repeated`, two of a row may be the same.
void check_rows(std::span<const int64_t> offsets, std::span<const int32_t> codes, int64_t n, int64_t end,
                const char* name, bool repeated = false);

}  // namespace crfkit
