#include "plan.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace crfkit {

namespace {

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

void check_csr(const char* name, int64_t n_rows, const int64_t* offsets, const int32_t* ids, int64_t n_ids) {
    for (int64_t t = 0; t < n_rows; ++t)
        for (int64_t k = offsets[t]; k < offsets[t + 1]; ++k) {
            if (ids[k] < 0 || ids[k] >= n_ids)
                refuse(std::string(name) + " id " + std::to_string(ids[k]) + " at position " + std::to_string(t) +
                       " is outside 0 … " + std::to_string(n_ids - 1));
            if (k > offsets[t] && ids[k] < ids[k - 1])
                refuse(std::string(name) + " ids at position " + std::to_string(t) + " do not ascend");
        }
}

}  // namespace

void check_data(const SequenceView& data, const FieldView& field, bool need_labels) {
    check_csr("attribute", data.n_positions, data.offsets, data.attributes, field.n_attributes);
    if (data.pair_offsets)
        check_csr("pair attribute", data.n_positions, data.pair_offsets, data.pair_attributes, field.n_pair_attributes);
    if (!need_labels) return;
    if (!data.labels) refuse("the data have no labels");
    for (int64_t t = 0; t < data.n_positions; ++t)
        if (data.labels[t] < 0 || data.labels[t] >= field.n_labels)
            refuse("label id " + std::to_string(data.labels[t]) + " at position " + std::to_string(t) +
                   " is outside 0 … " + std::to_string(field.n_labels - 1));
}

int64_t count_wide(const FieldView& field) {
    if (!field.state_offsets) return field.n_attributes;
    const int64_t vectors = padded(field.n_labels) / kPad;
    int64_t n = 0;
    while (n < field.n_attributes && field.state_offsets[n + 1] - field.state_offsets[n] > vectors) ++n;
    return n;
}

RowTable wide_rows(const FieldView& field) {
    RowTable table;
    if (!field.state_offsets) return table;
    const auto n = static_cast<int32_t>(count_wide(field));
    for (int32_t a = 0; a < n; ++a) table.add(&a, 1);
    return table;
}

PlannedData::PlannedData(const SequenceView& data, const FieldView& field, bool need_labels, bool group) {
    check_data(data, field, need_labels);
    view_ = {data.n_sequences, data.n_positions, data.starts, data.offsets, data.attributes,   data.values,
             nullptr,          nullptr,          nullptr,     nullptr,      data.pair_offsets, data.pair_attributes,
             data.labels,      data.weights};
    if (!field.state_offsets) return;
    if (field.n_labels > 0xffff || field.n_state > 0xffffffff)  // the widths of entry_labels and entry_weights
        refuse("more than 65535 labels or 4294967295 state weights");
    Groups groups;
    groups.offsets.assign(static_cast<size_t>(data.n_positions) + 1, 0);
    if (group && !data.values) groups = find_groups(data, count_wide(field));
    write_out(data, field, groups);
}

void PlannedData::write_out(const SequenceView& data, const FieldView& field, const Groups& groups) {
    table_ = groups.table;
    const auto first_wide = static_cast<int32_t>(table_.size());
    const int64_t n_wide = count_wide(field);
    for (int32_t a = 0; a < n_wide; ++a) table_.add(&a, 1);

    row_offsets_.push_back(0);
    entry_offsets_.push_back(0);
    std::vector<int32_t> grouped;  // attributes of the position that a group scores
    for (int64_t t = 0; t < data.n_positions; ++t) {
        grouped.clear();
        for (int64_t k = groups.offsets[static_cast<size_t>(t)]; k < groups.offsets[static_cast<size_t>(t) + 1]; ++k) {
            const auto g = static_cast<size_t>(groups.positions[static_cast<size_t>(k)]);
            rows_.push_back(static_cast<int32_t>(g));
            grouped.insert(grouped.end(), table_.members.begin() + table_.offsets[g],
                           table_.members.begin() + table_.offsets[g + 1]);
        }
        std::sort(rows_.begin() + row_offsets_.back(), rows_.end());
        std::sort(grouped.begin(), grouped.end());
        size_t next = 0;
        for (int64_t k = data.offsets[t]; k < data.offsets[t + 1]; ++k) {
            const int32_t a = data.attributes[k];
            if (next < grouped.size() && grouped[next] == a) {
                ++next;
                continue;
            }
            if (a < n_wide) {
                rows_.push_back(first_wide + a);
                if (data.values) row_values_.push_back(data.values[k]);
                continue;
            }
            for (int64_t f = field.state_offsets[a]; f < field.state_offsets[a + 1]; ++f) {
                entry_weights_.push_back(static_cast<uint32_t>(f));
                entry_labels_.push_back(static_cast<uint16_t>(field.state_labels[f]));
                if (data.values) entry_values_.push_back(data.values[k]);
            }
        }
        row_offsets_.push_back(static_cast<int64_t>(rows_.size()));
        entry_offsets_.push_back(static_cast<int64_t>(entry_weights_.size()));
    }
    view_.row_offsets = row_offsets_.data();
    view_.rows = rows_.data();
    view_.entry_offsets = entry_offsets_.data();
    view_.entry_weights = entry_weights_.data();
    view_.entry_labels = entry_labels_.data();
    if (data.values) {
        view_.row_values = row_values_.data();
        view_.entry_values = entry_values_.data();
    }
}

}  // namespace crfkit
