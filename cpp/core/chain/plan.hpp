// Data written out for the kernels: which label rows and which single weights each position scores with.
#pragma once

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

// Data that have been checked against a field and written out as a ChainPlan. In the full parameter set
// every attribute is a row of the caller's vector; in the observed one rows() says what the rows are. The single
// weights that entries name are the class block and, in the observed set, the state block behind it.
class PlannedData {
public:
    // `group`: look for attributes that occur together, which pays when the data are read many times. `cost`: [L][L],
    // of a margin, or null.
    PlannedData(const SequenceView& data, const FieldView& field, bool need_labels, bool group,
                const double* cost = nullptr, int n_threads = 1);
    const ChainPlan& view() const { return view_; }
    // The same with the squares of the values.
    ChainPlan squared();
    // What the rows are, for training: only with need_labels.
    const RowTable& rows() const { return table_; }

private:
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
