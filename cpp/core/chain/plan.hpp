// Data written out for the kernels: which label rows and which single weights each position scores with.
#pragma once

#include <span>
#include <vector>

#include "../support/buffer.hpp"
#include "../support/views.hpp"
#include "grouping.hpp"
#include "kernels/kernels.hpp"

namespace crfkit {

// Throws std::invalid_argument where the data do not fit the field.
void check_data(const SequenceView& data, const FieldView& field, bool need_labels);

// How many leading attributes have more labels than a label row has vectors, so that a row scores them in
// fewer instructions than single weights do.
int64_t count_wide(const FieldView& field);

// The rows of the observed set when nothing is known of the data: one for each wide attribute.
RowTable wide_rows(const FieldView& field);

// A plan as arrays: it can be kept on disk and read again, which takes a tenth of the time of making it.
struct PlanArrays {
    std::span<const int64_t> group_offsets;  // RowTable of the groups: [n_groups + 1]
    std::span<const int32_t> group_members;
    std::span<const int64_t> row_offsets, entry_offsets;  // [n_positions + 1]
    std::span<const int32_t> rows;
    std::span<const uint32_t> entry_weights;
    std::span<const uint16_t> entry_labels;
    std::span<const double> row_values, entry_values;  // empty if the data have no values
};

// Data that have been checked against a field and written out as a ChainPlan. In the full parameter set
// every attribute is a row of the caller's vector; in the observed one rows() says what the rows are. The single
// weights that entries name are the class block and, in the observed set, the state block behind it.
class PlannedData {
public:
    // `group`: look for attributes that occur together, which pays when the data are read many times. `cost`: [L][L],
    // of a margin, or null.
    PlannedData(const SequenceView& data, const FieldView& field, bool need_labels, bool group,
                const double* cost = nullptr, int n_threads = 1);
    // The plan that arrays() returned for the same data and field, which must stay where they are. It is checked.
    PlannedData(const SequenceView& data, const FieldView& field, const PlanArrays& kept);
    // Null pointers where the field needs no plan.
    PlanArrays arrays() const;
    const ChainPlan& view() const { return view_; }
    // The same with the squares of the values.
    ChainPlan squared();
    // What the rows are, for training: only with need_labels.
    const RowTable& rows() const { return table_; }

private:
    void view_data(const SequenceView& data);
    void check_rows(const SequenceView& data, const FieldView& field, const PlanArrays& kept);
    void write_out(const SequenceView& data, const FieldView& field, const Groups& groups, bool name_rows,
                   int n_threads);

    RowTable table_;
    std::vector<int64_t> row_offsets_, entry_offsets_;
    std::vector<int32_t> rows_;
    std::vector<uint32_t> entry_weights_;
    std::vector<uint16_t> entry_labels_;
    std::vector<double> row_values_, entry_values_, squared_row_values_, squared_entry_values_, cost_;
    ChainPlan view_{};
};

}  // namespace crfkit
