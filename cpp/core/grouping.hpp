// Label rows that occur together, added up once per evaluation instead of once per position.
//
// Features come in hierarchies: where the attribute "tags: DT JJ NN" occurs, "tags: DT JJ", "tag: NN" and
// others always occur too. Such a set is scored by one row, the sum of its members' rows.
#pragma once

#include <cstdint>
#include <vector>

namespace crfkit {

// Group g is the rows members[offsets[g] … offsets[g + 1]); as a row of the plan it is n_rows + g.
struct RowGroups {
    std::vector<int64_t> offsets{0};
    std::vector<int32_t> members;
    int64_t size() const { return static_cast<int64_t>(offsets.size()) - 1; }
};

// Finds groups among rows 0 … n_rows and rewrites the positions' rows (ascending) in terms of them.
// Leaves everything as it is where that would save little.
RowGroups group_rows(int64_t n_rows, std::vector<int64_t>& offsets, std::vector<int32_t>& rows);

}  // namespace crfkit
