#include "grouping.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <span>

#include "../support/parallel.hpp"
#include "../text/interner.hpp"

namespace crfkit {

namespace {

using Rows = std::span<const int32_t>;

constexpr int64_t kMinUses = 4;       // a group used less often costs more than it saves
constexpr int64_t kMaxPosition = 64;  // attributes of a position must fit a bit mask

// For each attribute, those that are present at every position where it is.
class Companions {
public:
    explicit Companions(int64_t n_attributes)
        : spans_(static_cast<size_t>(n_attributes)), seen_(static_cast<size_t>(n_attributes), -1) {}

    void meet(Rows position) {
        ++n_met_;
        for (const int32_t row : position) seen_[static_cast<size_t>(row)] = n_met_;
        for (const int32_t row : position) {
            Span& span = spans_[static_cast<size_t>(row)];
            if (span.begin < 0) {
                span = {static_cast<int64_t>(pool_.size()), static_cast<int64_t>(position.size())};
                pool_.insert(pool_.end(), position.begin(), position.end());
                continue;
            }
            if (span.size == 1) continue;  // itself
            int32_t* first = pool_.data() + span.begin;
            int64_t kept = 0;
            for (int64_t k = 0; k < span.size; ++k) {
                const int32_t other = first[k];
                first[kept] = other;
                kept += seen_[static_cast<size_t>(other)] == n_met_;
            }
            span.size = kept;
        }
    }

    // The companions of each attribute of a position, as bits of the places in it; all of them are there.
    void masks(Rows position, uint64_t* masks) const {
        for (size_t i = 0; i < position.size(); ++i) {
            const Span& span = spans_[static_cast<size_t>(position[i])];
            const int32_t* first = pool_.data() + span.begin;
            masks[i] = 0;
            size_t place = 0;
            for (int64_t k = 0; k < span.size; ++k) {  // both ascend
                while (position[place] != first[k]) ++place;
                masks[i] |= uint64_t{1} << place;
            }
        }
    }

private:
    struct Span {
        int64_t begin = -1, size = 0;
    };
    std::vector<Span> spans_;
    std::vector<int32_t> pool_;
    std::vector<int64_t> seen_;  // the last position that has the attribute
    int64_t n_met_ = 0;
};

// Splits a position into disjoint sets of companions, the largest first; calls found(mask) for each.
template <class Found>
void cover(Rows position, const Companions& companions, const Found& found) {
    uint64_t masks[kMaxPosition];
    companions.masks(position, masks);
    uint64_t covered = 0;
    for (;;) {
        uint64_t best = 0;
        int size = 1;
        for (size_t i = 0; i < position.size(); ++i) {
            const uint64_t rest = masks[i] & ~covered;
            if (const int n = std::popcount(rest); n > size) best = rest, size = n;
        }
        if (size < 2) return;
        found(best);
        covered |= best;
    }
}

}  // namespace

Groups find_groups(const SequenceView& data, int64_t n_wide, int n_threads) {
    const auto n_positions = static_cast<size_t>(data.n_positions);
    const auto position = [&](size_t t) {  // its wide attributes: ids ascend
        const int32_t* first = data.attributes + data.offsets[t];
        const int32_t* end = std::lower_bound(first, data.attributes + data.offsets[t + 1], n_wide);
        return end - first <= kMaxPosition ? Rows(first, end) : Rows();
    };
    Companions companions(n_wide);
    for (size_t t = 0; t < n_positions; ++t) companions.meet(position(t));

    // The groups of each position as bits of the places in it, some positions at a time.
    constexpr size_t kBlock = 4096;
    struct Covered {
        std::vector<uint64_t> masks;
        std::vector<uint8_t> counts;  // of each position
    };
    std::vector<Covered> blocks((n_positions + kBlock - 1) / kBlock);
    share_range(n_threads, static_cast<int64_t>(blocks.size()), 1, [&](int64_t begin, int64_t end) {
        for (auto k = static_cast<size_t>(begin); k < static_cast<size_t>(end); ++k)
            for (size_t t = k * kBlock; t < std::min((k + 1) * kBlock, n_positions); ++t) {
                const size_t before = blocks[k].masks.size();
                cover(position(t), companions, [&](uint64_t mask) { blocks[k].masks.push_back(mask); });
                blocks[k].counts.push_back(static_cast<uint8_t>(blocks[k].masks.size() - before));
            }
    });

    // How often each group is used. A group's name is its members' bytes.
    Interner names;
    std::vector<int64_t> uses, offsets{0};
    std::vector<int32_t> found, members;
    size_t t = 0;
    for (const Covered& block : blocks) {
        const uint64_t* mask = block.masks.data();
        for (const uint8_t count : block.counts) {
            const Rows all = position(t++);
            for (const uint64_t* last = mask + count; mask < last; ++mask) {
                members.clear();
                for (uint64_t rest = *mask; rest != 0; rest &= rest - 1)
                    members.push_back(all[static_cast<size_t>(std::countr_zero(rest))]);
                const int32_t id =
                    names.intern({reinterpret_cast<const char*>(members.data()), members.size() * sizeof(int32_t)});
                uses.resize(static_cast<size_t>(names.size()), 0);
                ++uses[static_cast<size_t>(id)];
                found.push_back(id);
            }
            offsets.push_back(static_cast<int64_t>(found.size()));
        }
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
