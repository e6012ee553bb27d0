// Attributes that occur together, scored as one.
//
// Features come in hierarchies: where the attribute "tags: DT JJ NN" occurs, "tags: DT JJ", "tag: NN" and
// others always occur too. Such a set is scored by one label row, the sum of its members' weights, made once
// per evaluation instead of once per position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "../support/views.hpp"

namespace crfkit {

// Row r scores the attributes members[offsets[r] … offsets[r + 1]). The first n_groups rows score several each, and
// after them row n_groups + a scores the attribute a alone.
struct RowTable {
    int64_t n_groups = 0;
    std::vector<int64_t> offsets{0};
    std::vector<int32_t> members;
    int64_t size() const { return static_cast<int64_t>(offsets.size()) - 1; }
    void add(const int32_t* first, size_t n) {
        members.insert(members.end(), first, first + n);
        offsets.push_back(static_cast<int64_t>(members.size()));
    }
    // Calls f(row of the member) for the members of group g.
    template <class F>
    void for_each_member(int64_t g, const F& f) const {
        for (int64_t k = offsets[static_cast<size_t>(g)]; k < offsets[static_cast<size_t>(g) + 1]; ++k)
            f(n_groups + members[static_cast<size_t>(k)]);
    }
    // Calls f(index, label) for the weights that row r sums up.
    template <class F>
    void for_each_weight(int64_t r, const FieldView& field, const F& f) const {
        for (int64_t k = offsets[static_cast<size_t>(r)]; k < offsets[static_cast<size_t>(r) + 1]; ++k) {
            const int64_t a = members[static_cast<size_t>(k)];
            for (int64_t i = field.state_offsets[a]; i < field.state_offsets[a + 1]; ++i) f(i, field.state_labels[i]);
        }
    }
};

struct Groups {
    RowTable table;                  // most used first
    std::vector<int64_t> offsets;    // [n_positions + 1]
    std::vector<int32_t> positions;  // the groups at each position: disjoint sets of its attributes
};

// Sets of two or more of the attributes 0 … n_wide that always occur together, and often enough.
Groups find_groups(const SequenceView& data, int64_t n_wide, int n_threads);

}  // namespace crfkit
