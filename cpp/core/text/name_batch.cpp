#include "name_batch.hpp"

#include <algorithm>

namespace crfkit {

void NameBatch::clear(HashKey new_key) {
    key = new_key;
    names.clear();
    pair_names.clear();
    values.clear();
    for (auto* ends : {&item_ends, &pair_ends, &sequence_ends}) ends->clear();
    made.clear();
}

void NameBatch::drop_sequence() {
    item_ends.resize(sequence_ends.empty() ? 0 : sequence_ends.back());
    const size_t kept = item_ends.empty() ? 0 : item_ends.back();
    names.resize(kept);
    if (!values.empty()) values.resize(kept);
    if (pair_ends.size() > item_ends.size()) pair_ends.resize(item_ends.size());
    pair_names.resize(pair_ends.empty() ? 0 : pair_ends.back());
}

std::pair<size_t, size_t> NameBatch::place_of(size_t name) const {
    const auto after = [](const std::vector<size_t>& ends, size_t at) {
        return static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), at) - ends.begin());
    };
    const size_t item = after(item_ends, name), sequence = after(sequence_ends, item);
    return {sequence, item - (sequence > 0 ? sequence_ends[sequence - 1] : 0)};
}

}  // namespace crfkit
