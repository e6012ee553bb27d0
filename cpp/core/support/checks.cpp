#include "checks.hpp"

#include <stdexcept>

namespace crfkit {

void refuse(const std::string& what) { throw std::invalid_argument(what); }

void check_size(size_t size, int64_t expected, const char* name) {
    if (expected < 0 || size != static_cast<size_t>(expected))
        refuse(std::string(name) + " must have " + std::to_string(expected) + " entries, but has " +
               std::to_string(size));
}

void check_number(int64_t number, int64_t least, int64_t most, const char* name) {
    if (number < least || number > most)
        refuse(std::string(name) + " must be from " + std::to_string(least) + " to " + std::to_string(most) +
               ", but is " + std::to_string(number));
}

int64_t checked_product(std::initializer_list<int64_t> factors, const char* name) {
    constexpr int64_t kMost = int64_t{1} << 59;  // doubles: 2⁶² bytes
    int64_t product = 1;
    for (const int64_t factor : factors)
        if (factor < 0 || __builtin_mul_overflow(product, factor, &product) || product > kMost)
            refuse(std::string("there are too many ") + name);
    return product;
}

void check_labels(int64_t n_labels, int64_t order) {
    check_number(order, 1, 2, "the order of a chain");
    if (n_labels < 1) refuse("a chain needs at least one label");
    const int64_t most = order == 1 ? 46340 : 1290;  // the roots of 2³¹ − 1
    if (n_labels > most)
        refuse("a chain of order " + std::to_string(order) + " can have at most " + std::to_string(most) +
               " labels, not " + std::to_string(n_labels));
}

void check_states(int64_t n_states) { check_number(n_states, 1, 46340, "the number of states"); }

void check_offsets(std::span<const int64_t> offsets, int64_t end, const char* name) {
    bool falls = offsets.empty() || offsets.front() != 0 || offsets.back() != end;
    for (size_t k = 1; k < offsets.size(); ++k) falls |= offsets[k] < offsets[k - 1];
    if (falls) refuse(std::string(name) + " must ascend from 0 to " + std::to_string(end));
}

namespace {

template <class Id>
void check_range(std::span<const Id> ids, int64_t first, int64_t end, const char* name) {
    bool outside = false;
    for (const Id id : ids) outside |= static_cast<int64_t>(id) < first || static_cast<int64_t>(id) >= end;
    if (!outside) return;
    for (size_t k = 0; k < ids.size(); ++k)
        if (static_cast<int64_t>(ids[k]) < first || static_cast<int64_t>(ids[k]) >= end)
            refuse(std::string(name) + " " + std::to_string(k) + " is " + std::to_string(ids[k]) + "; expected " +
                   std::to_string(first) + " … " + std::to_string(end - 1));
}

// How many of the codes do not lie above the one before them.
int64_t count_falls(std::span<const int32_t> codes, bool repeated) {
    int64_t falls = 0;
    if (repeated)
        for (size_t k = 1; k < codes.size(); ++k) falls += codes[k] < codes[k - 1];
    else
        for (size_t k = 1; k < codes.size(); ++k) falls += codes[k] <= codes[k - 1];
    return falls;
}

}  // namespace

void check_ids(std::span<const int32_t> ids, int64_t end, const char* name, int64_t first) {
    check_range(ids, first, end, name);
}

void check_ids(std::span<const int64_t> ids, int64_t end, const char* name, int64_t first) {
    check_range(ids, first, end, name);
}

void check_codes(std::span<const int32_t> codes, int64_t end, const char* name) {
    const bool inside = codes.empty() || (codes.front() >= 0 && codes.back() < end);
    if (!inside || count_falls(codes, false) > 0)
        refuse(std::string(name) + " must ascend and be below " + std::to_string(end));
}

void check_rows(std::span<const int64_t> offsets, std::span<const int32_t> codes, int64_t n, int64_t end,
                const char* name, bool repeated) {
    const auto size = static_cast<int64_t>(codes.size());
    check_size(offsets.size(), n + 1, (std::string(name) + " offsets").c_str());
    check_offsets(offsets, size, (std::string(name) + " offsets").c_str());
    check_ids(codes, end, name);
    // They ascend within the rows if all falls are where a row begins.
    int64_t falls = count_falls(codes, repeated);
    for (int64_t r = 1; r < n; ++r) {
        const int64_t k = offsets[static_cast<size_t>(r)];
        if (k == offsets[static_cast<size_t>(r) - 1] || k == size) continue;  // counted before, or nothing follows
        const int32_t here = codes[static_cast<size_t>(k)], before = codes[static_cast<size_t>(k) - 1];
        falls -= here < before || (!repeated && here == before);
    }
    if (falls > 0) refuse(std::string(name) + " codes of a row must ascend");
}

}  // namespace crfkit
