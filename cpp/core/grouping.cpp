#include "grouping.hpp"

#include <algorithm>
#include <bit>
#include <span>

#include "interner.hpp"

namespace crfkit {

namespace {

using Rows = std::span<const int32_t>;

constexpr int64_t kMinUses = 4;      // a group used less often costs more than it saves
constexpr size_t kMaxPosition = 64;  // rows of a position fit a bit mask

// For each row, the rows that are present at every position where it is.
class Companions {
public:
    explicit Companions(int64_t n_rows) : spans_(static_cast<size_t>(n_rows)) {}

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
uint64_t cover(Rows position, const Companions& companions, const Found& found) {
    uint64_t masks[kMaxPosition];
    for (size_t i = 0; i < position.size(); ++i) masks[i] = mask_within(companions.of(position[i]), position);
    uint64_t covered = 0;
    for (;;) {
        uint64_t best = 0;
        for (size_t i = 0; i < position.size(); ++i)
            if (std::popcount(masks[i] & ~covered) > std::popcount(best)) best = masks[i] & ~covered;
        if (std::popcount(best) < 2) return covered;
        found(best);
        covered |= best;
    }
}

void select(Rows position, uint64_t mask, std::vector<int32_t>& out) {
    for (; mask != 0; mask &= mask - 1) out.push_back(position[static_cast<size_t>(std::countr_zero(mask))]);
}

}  // namespace

RowGroups group_rows(int64_t n_rows, std::vector<int64_t>& offsets, std::vector<int32_t>& rows) {
    const size_t n_positions = offsets.size() - 1;
    const auto position = [&](size_t t) {
        return Rows(rows).subspan(static_cast<size_t>(offsets[t]), static_cast<size_t>(offsets[t + 1] - offsets[t]));
    };
    Companions companions(n_rows);
    for (size_t t = 0; t < n_positions; ++t) companions.meet(position(t));

    // The groups of each position, and how often each is used. A group's name is its members' bytes.
    Interner names;
    std::vector<int64_t> uses, group_offsets{0};
    std::vector<int32_t> groups, members;
    for (size_t t = 0; t < n_positions; ++t) {
        if (position(t).size() <= kMaxPosition)
            cover(position(t), companions, [&](uint64_t mask) {
                members.clear();
                select(position(t), mask, members);
                const int32_t id =
                    names.intern({reinterpret_cast<const char*>(members.data()), members.size() * sizeof(int32_t)});
                uses.resize(static_cast<size_t>(names.size()), 0);
                ++uses[static_cast<size_t>(id)];
                groups.push_back(id);
            });
        group_offsets.push_back(static_cast<int64_t>(groups.size()));
    }

    RowGroups result;
    std::vector<int32_t> new_id(uses.size(), -1);
    int64_t saved = 0;
    // The most used first, so that they lie together.
    std::vector<int32_t> order(uses.size());
    for (size_t g = 0; g < order.size(); ++g) order[g] = static_cast<int32_t>(g);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return uses[static_cast<size_t>(a)] > uses[static_cast<size_t>(b)]; });
    for (const int32_t g : order) {
        if (uses[static_cast<size_t>(g)] < kMinUses) break;
        const auto bytes = names.view().at(static_cast<uint64_t>(g));
        const Rows list(reinterpret_cast<const int32_t*>(bytes.data()), bytes.size() / sizeof(int32_t));
        new_id[static_cast<size_t>(g)] = static_cast<int32_t>(result.size());
        result.members.insert(result.members.end(), list.begin(), list.end());
        result.offsets.push_back(static_cast<int64_t>(result.members.size()));
        saved += (uses[static_cast<size_t>(g)] - 1) * (static_cast<int64_t>(list.size()) - 1);
    }
    if (saved * 5 < static_cast<int64_t>(rows.size())) return {};

    std::vector<int32_t> rewritten, rest;
    std::vector<int64_t> new_offsets{0};
    for (size_t t = 0; t < n_positions; ++t) {
        size_t next = static_cast<size_t>(group_offsets[t]);
        uint64_t grouped = 0;
        std::vector<int32_t>& out = rewritten;
        rest.clear();
        if (position(t).size() <= kMaxPosition)
            cover(position(t), companions, [&](uint64_t mask) {
                const int32_t id = new_id[static_cast<size_t>(groups[next++])];
                if (id < 0) return;
                grouped |= mask;
                rest.push_back(static_cast<int32_t>(n_rows) + id);
            });
        const Rows all = position(t);
        for (size_t i = 0; i < all.size(); ++i)
            if (i >= kMaxPosition || (grouped >> i & 1) == 0) out.push_back(all[i]);
        std::sort(rest.begin(), rest.end());
        out.insert(out.end(), rest.begin(), rest.end());
        new_offsets.push_back(static_cast<int64_t>(out.size()));
    }
    offsets = std::move(new_offsets);
    rows = std::move(rewritten);
    return result;
}

}  // namespace crfkit
