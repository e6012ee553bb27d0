#include "grouping.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <span>

#include "../text/interner.hpp"

namespace crfkit {

namespace {

using Rows = std::span<const int32_t>;

constexpr int64_t kMinUses = 4;       // a group used less often costs more than it saves
constexpr int64_t kMaxPosition = 64;  // attributes of a position must fit a bit mask

// For each attribute, those that are present at every position where it is.
class Companions {
public:
    explicit Companions(int64_t n_attributes) : spans_(static_cast<size_t>(n_attributes)) {}

    void meet(Rows position) {
        for (const int32_t row : position) {
            Span& span = spans_[static_cast<size_t>(row)];
            if (span.begin < 0) {
                span = {static_cast<int64_t>(pool_.size()), static_cast<int64_t>(position.size())};
                pool_.insert(pool_.end(), position.begin(), position.end());
                continue;
            }
            int32_t* first = pool_.data() + span.begin;
            const int32_t* end =
                std::set_intersection(first, first + span.size, position.begin(), position.end(), first);
            span.size = end - first;
        }
    }

    Rows of(int32_t row) const {
        const Span& span = spans_[static_cast<size_t>(row)];
        return {pool_.data() + span.begin, static_cast<size_t>(span.size)};
    }

private:
    struct Span {
        int64_t begin = -1, size = 0;
    };
    std::vector<Span> spans_;
    std::vector<int32_t> pool_;
};

uint64_t mask_within(Rows part, Rows position) {
    uint64_t mask = 0;
    size_t i = 0;
    for (const int32_t row : part) {
        while (position[i] != row) ++i;
        mask |= uint64_t{1} << i++;
    }
    return mask;
}

// Splits a position into disjoint sets of companions, the largest first; calls found(mask) for each.
template <class Found>
void cover(Rows position, const Companions& companions, const Found& found) {
    uint64_t masks[kMaxPosition];
    for (size_t i = 0; i < position.size(); ++i) masks[i] = mask_within(companions.of(position[i]), position);
    uint64_t covered = 0;
    for (;;) {
        uint64_t best = 0;
        for (size_t i = 0; i < position.size(); ++i)
            if (std::popcount(masks[i] & ~covered) > std::popcount(best)) best = masks[i] & ~covered;
        if (std::popcount(best) < 2) return;
        found(best);
        covered |= best;
    }
}

}  // namespace

Groups find_groups(const SequenceView& data, int64_t n_wide) {
    const auto n_positions = static_cast<size_t>(data.n_positions);
    const auto position = [&](size_t t) {  // its wide attributes: ids ascend
        const int32_t* first = data.attributes + data.offsets[t];
        const int32_t* end = std::lower_bound(first, data.attributes + data.offsets[t + 1], n_wide);
        return end - first <= kMaxPosition ? Rows(first, end) : Rows();
    };
    Companions companions(n_wide);
    for (size_t t = 0; t < n_positions; ++t) companions.meet(position(t));

    // The groups of each position, and how often each is used. A group's name is its members' bytes.
    Interner names;
    std::vector<int64_t> uses, offsets{0};
    std::vector<int32_t> found, members;
    for (size_t t = 0; t < n_positions; ++t) {
        const Rows all = position(t);
        cover(all, companions, [&](uint64_t mask) {
            members.clear();
            for (; mask != 0; mask &= mask - 1) members.push_back(all[static_cast<size_t>(std::countr_zero(mask))]);
            const int32_t id =
                names.intern({reinterpret_cast<const char*>(members.data()), members.size() * sizeof(int32_t)});
            uses.resize(static_cast<size_t>(names.size()), 0);
            ++uses[static_cast<size_t>(id)];
            found.push_back(id);
        });
        offsets.push_back(static_cast<int64_t>(found.size()));
    }

    std::vector<int32_t> order(uses.size()), new_id(uses.size(), -1);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return uses[static_cast<size_t>(a)] > uses[static_cast<size_t>(b)]; });
    Groups result;
    for (const int32_t g : order) {
        if (uses[static_cast<size_t>(g)] < kMinUses) break;
        new_id[static_cast<size_t>(g)] = static_cast<int32_t>(result.table.size());
        const auto bytes = names.view().at(static_cast<uint64_t>(g));
        members.resize(bytes.size() / sizeof(int32_t));
        std::memcpy(members.data(), bytes.data(), bytes.size());
        result.table.add(members.data(), members.size());
    }
    result.offsets.push_back(0);
    for (size_t t = 0; t < n_positions; ++t) {
        for (int64_t k = offsets[t]; k < offsets[t + 1]; ++k)
            if (const int32_t id = new_id[static_cast<size_t>(found[static_cast<size_t>(k)])]; id >= 0)
                result.positions.push_back(id);
        result.offsets.push_back(static_cast<int64_t>(result.positions.size()));
    }
    return result;
}

}  // namespace crfkit
