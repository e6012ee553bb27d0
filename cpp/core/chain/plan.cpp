#include "plan.hpp"

#include <algorithm>
#include <string>

#include "../support/checks.hpp"
#include "../support/parallel.hpp"

namespace crfkit {

namespace {

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

// The labels may not break the field's constraints.
void check_allowed(const SequenceView& data, const FieldView& field) {
    const auto check = [](const uint8_t* mask, int64_t code, int64_t n, const char* what) {
        if (mask && !mask[code]) refuse("sequence " + std::to_string(n) + what);
    };
    for (int64_t n = 0; n < data.n_sequences; ++n) {
        const int64_t begin = data.starts[n], end = data.starts[n + 1];
        if (begin == end) continue;
        check(field.allowed_start, data.labels[begin], n, " starts with a label that the constraints forbid there");
        check(field.allowed_end, data.labels[end - 1], n, " ends with a label that the constraints forbid there");
        for (int64_t t = begin + 1; t < end; ++t)
            check(field.allowed, data.labels[t - 1] * field.n_labels + data.labels[t], n,
                  " has a transition that the constraints forbid");
    }
}

}  // namespace

void check_data(const SequenceView& data, const FieldView& field, bool need_labels) {
    check_csr("attribute", data.n_positions, data.offsets, data.attributes, field.n_attributes);
    if (data.pair_offsets)
        check_csr("pair attribute", data.n_positions, data.pair_offsets, data.pair_attributes, field.n_pair_attributes);
    if (!need_labels || data.targets) return;
    if (!data.labels) refuse("the data have no labels");
    for (int64_t t = 0; t < data.n_positions; ++t)
        if (data.labels[t] < 0 || data.labels[t] >= field.n_labels)
            refuse("label id " + std::to_string(data.labels[t]) + " at position " + std::to_string(t) +
                   " is outside 0 … " + std::to_string(field.n_labels - 1));
    check_allowed(data, field);
}

int64_t count_wide(const FieldView& field) {
    if (!field.state_offsets) return field.n_attributes;
    if (field.n_wide >= 0) return field.n_wide;
    const int64_t vectors = padded(field.n_labels) / kPad<double>;
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

void PlannedData::view_data(const SequenceView& data) {
    view_ = {data.n_sequences, data.n_positions, data.starts, data.offsets, data.attributes,   data.values,
             nullptr,          nullptr,          nullptr,     nullptr,      data.pair_offsets, data.pair_attributes,
             data.labels,      data.weights,     nullptr,     data.allowed, data.targets,      data.token_weights};
}

PlannedData::PlannedData(const SequenceView& data, const FieldView& field, bool need_labels, bool group,
                         const double* cost, int n_threads) {
    check_data(data, field, need_labels);
    view_data(data);
    if (cost) {
        cost_.assign(cost, cost + field.n_labels * field.n_labels);
        view_.cost = cost_.data();
    }
    if (!field.state_offsets && !field.n_class) return;
    if (field.n_labels > 0xffff || field.n_state + field.n_class > 0xffffffff)  // of entry_labels and entry_weights
        refuse("more than 65535 labels or 4294967295 state weights");
    Groups groups;
    groups.offsets.assign(static_cast<size_t>(data.n_positions) + 1, 0);
    if (field.state_offsets && group && !data.values) groups = find_groups(data, count_wide(field), n_threads);
    write_out(data, field, groups, need_labels, n_threads);
}

namespace {

bool needs_plan(const FieldView& field) { return field.state_offsets || field.n_class; }

template <class Id>
void check_below(std::span<const Id> ids, int64_t end, const char* name) {
    for (const Id id : ids)
        if (static_cast<int64_t>(id) >= end)
            refuse(std::string(name) + " has " + std::to_string(id) + ", which is not below " + std::to_string(end));
}

}  // namespace

PlannedData::PlannedData(const SequenceView& data, const FieldView& field, const PlanArrays& kept) {
    check_data(data, field, true);
    view_data(data);
    if (!needs_plan(field)) return;
    check_rows(data, field, kept);
    view_.entry_offsets = kept.entry_offsets.data();
    view_.entry_weights = kept.entry_weights.data();
    view_.entry_labels = kept.entry_labels.data();
    if (data.values) view_.entry_values = kept.entry_values.data();
    if (!field.state_offsets) return;
    view_.row_offsets = kept.row_offsets.data();
    view_.rows = kept.rows.data();
    if (data.values) view_.row_values = kept.row_values.data();
}

// Everything that the kernels index with lies where it may, and makes the table of rows.
void PlannedData::check_rows(const SequenceView& data, const FieldView& field, const PlanArrays& kept) {
    const int64_t n_wide = count_wide(field), n_weights = field.n_state + field.n_class;
    const auto size = [](const auto& array) { return static_cast<int64_t>(array.size()); };
    check_offsets(kept.group_offsets, size(kept.group_members), "group_offsets");
    check_ids(kept.group_members, n_wide, "group_members");
    table_.offsets.assign(kept.group_offsets.begin(), kept.group_offsets.end());
    table_.members.assign(kept.group_members.begin(), kept.group_members.end());
    table_.n_groups = table_.size();
    if (field.state_offsets)
        for (int32_t a = 0; a < n_wide; ++a) table_.add(&a, 1);
    for (const auto& [offsets, n] :
         {std::pair(kept.row_offsets, size(kept.rows)), std::pair(kept.entry_offsets, size(kept.entry_weights))}) {
        check_size(offsets.size(), data.n_positions + 1, "offsets of a kept plan");
        check_offsets(offsets, n, "offsets of a kept plan");
    }
    check_size(kept.entry_labels.size(), size(kept.entry_weights), "entry_labels");
    check_ids(kept.rows, table_.size(), "rows");
    check_below(kept.entry_weights, n_weights, "entry_weights");
    check_below(kept.entry_labels, field.n_labels, "entry_labels");
    if (!data.values) return;
    if (field.state_offsets) check_size(kept.row_values.size(), size(kept.rows), "row_values");
    check_size(kept.entry_values.size(), size(kept.entry_weights), "entry_values");
}

PlanArrays PlannedData::arrays() const {
    const auto n_groups = static_cast<size_t>(table_.n_groups);
    const auto n_members = static_cast<size_t>(table_.offsets[n_groups]);
    return {std::span(table_.offsets).first(n_groups + 1),
            std::span(table_.members).first(n_members),
            row_offsets_,
            entry_offsets_,
            rows_,
            entry_weights_,
            entry_labels_,
            row_values_,
            entry_values_};
}

namespace {

constexpr int64_t kBlock = 4096;  // positions that a thread takes at a time

// Calls f(weight, label) for the classes that an attribute has weights for.
template <class F>
void each_class(const FieldView& field, int32_t attribute, const F& f) {
    const int64_t n = field.n_classes;
    const int64_t begin = field.class_offsets ? field.class_offsets[attribute] : attribute * n;
    const int64_t end = field.class_offsets ? field.class_offsets[attribute + 1] : begin + n;
    for (int64_t i = begin; i < end; ++i) {
        const int64_t code = field.class_codes ? field.class_codes[i] : i - begin;
        for (int64_t j = 0; j < field.n_labels; ++j)
            if (field.label_classes[j] == code) f(i, j);
    }
}

// Calls f(weight, label) for the states of an attribute.
template <class F>
void each_state(const FieldView& field, int32_t attribute, const F& f) {
    for (int64_t i = field.state_offsets[attribute]; i < field.state_offsets[attribute + 1]; ++i)
        f(field.n_class + i, field.state_labels[i]);
}

}  // namespace

// Counts the rows and entries of every position, then writes them where they belong.
void PlannedData::write_out(const SequenceView& data, const FieldView& field, const Groups& groups, bool name_rows,
                            int n_threads) {
    table_ = groups.table;
    const int64_t n_groups = table_.n_groups = table_.size();
    const int64_t n_wide = count_wide(field);
    if (field.state_offsets && name_rows)
        for (int32_t a = 0; a < n_wide; ++a) table_.add(&a, 1);
    const auto at = [](int64_t i) { return static_cast<size_t>(i); };
    const auto members = [&](int64_t t, const auto& f) {  // f(group) for those at t
        for (int64_t k = groups.offsets[at(t)]; k < groups.offsets[at(t) + 1]; ++k) f(groups.positions[at(k)]);
    };

    row_offsets_.assign(at(data.n_positions) + 1, 0);
    entry_offsets_.assign(at(data.n_positions) + 1, 0);
    share_range(n_threads, data.n_positions, kBlock, [&](int64_t first, int64_t last) {
        for (int64_t t = first; t < last; ++t) {
            int64_t rows = 0, entries = 0;
            members(t, [&](int32_t g) { rows += 1 - (table_.offsets[at(g) + 1] - table_.offsets[at(g)]); });
            for (int64_t k = data.offsets[t]; k < data.offsets[t + 1]; ++k) {
                const int32_t a = data.attributes[k];
                if (field.n_class) each_class(field, a, [&](int64_t, int64_t) { ++entries; });
                if (!field.state_offsets) continue;
                if (a < n_wide)
                    ++rows;
                else
                    entries += field.state_offsets[a + 1] - field.state_offsets[a];
            }
            row_offsets_[at(t) + 1] = rows;
            entry_offsets_[at(t) + 1] = entries;
        }
    });
    for (int64_t t = 0; t < data.n_positions; ++t) {
        row_offsets_[at(t) + 1] += row_offsets_[at(t)];
        entry_offsets_[at(t) + 1] += entry_offsets_[at(t)];
    }
    rows_.resize(at(row_offsets_.back()));
    entry_weights_.resize(at(entry_offsets_.back()));
    entry_labels_.resize(at(entry_offsets_.back()));
    if (data.values) {
        row_values_.resize(rows_.size());
        entry_values_.resize(entry_weights_.size());
    }

    share_range(n_threads, data.n_positions, kBlock, [&](int64_t first, int64_t last) {
        std::vector<int32_t> grouped;  // attributes of the position that a group scores
        for (int64_t t = first; t < last; ++t) {
            int64_t row = row_offsets_[at(t)], entry = entry_offsets_[at(t)];
            const auto write = [&](int64_t k, int64_t weight, int64_t label) {
                entry_weights_[at(entry)] = static_cast<uint32_t>(weight);
                entry_labels_[at(entry)] = static_cast<uint16_t>(label);
                if (data.values) entry_values_[at(entry)] = data.values[k];
                ++entry;
            };
            if (field.n_class)
                for (int64_t k = data.offsets[t]; k < data.offsets[t + 1]; ++k)
                    each_class(field, data.attributes[k], [&](int64_t i, int64_t j) { write(k, i, j); });
            if (!field.state_offsets) continue;
            grouped.clear();
            members(t, [&](int32_t g) {
                rows_[at(row++)] = g;
                grouped.insert(grouped.end(), table_.members.begin() + table_.offsets[at(g)],
                               table_.members.begin() + table_.offsets[at(g) + 1]);
            });
            std::sort(rows_.begin() + row_offsets_[at(t)], rows_.begin() + row);
            std::sort(grouped.begin(), grouped.end());
            size_t next = 0;
            for (int64_t k = data.offsets[t]; k < data.offsets[t + 1]; ++k) {
                const int32_t a = data.attributes[k];
                if (next < grouped.size() && grouped[next] == a) {
                    ++next;
                } else if (a < n_wide) {
                    if (data.values) row_values_[at(row)] = data.values[k];
                    rows_[at(row++)] = static_cast<int32_t>(n_groups + a);
                } else {
                    each_state(field, a, [&](int64_t i, int64_t j) { write(k, i, j); });
                }
            }
        }
    });
    view_.entry_offsets = entry_offsets_.data();
    view_.entry_weights = entry_weights_.data();
    view_.entry_labels = entry_labels_.data();
    if (data.values) view_.entry_values = entry_values_.data();
    if (!field.state_offsets) return;  // the rows are the data's own
    view_.row_offsets = row_offsets_.data();
    view_.rows = rows_.data();
    if (data.values) view_.row_values = row_values_.data();
}

ChainPlan PlannedData::squared() {
    ChainPlan plan = view_;
    const auto square = [](const double* values, int64_t n, std::vector<double>& out) -> const double* {
        if (!values) return nullptr;
        out.resize(static_cast<size_t>(n));
        for (int64_t i = 0; i < n; ++i) out[static_cast<size_t>(i)] = values[i] * values[i];
        return out.data();
    };
    plan.row_values = square(view_.row_values, view_.row_offsets[view_.n_positions], squared_row_values_);
    if (view_.entry_offsets)
        plan.entry_values = square(view_.entry_values, view_.entry_offsets[view_.n_positions], squared_entry_values_);
    return plan;
}

}  // namespace crfkit
