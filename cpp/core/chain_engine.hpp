// Chains over threads: weights laid out for the kernels, the likelihood of a data set, decoding.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "buffer.hpp"
#include "chain.hpp"
#include "grouping.hpp"
#include "views.hpp"

namespace crfkit {

using Poll = std::function<bool()>;  // true: stop

// Throws std::invalid_argument where the data do not fit the field.
void check_data(const SequenceView& data, const FieldView& field, bool need_labels);

// How many leading attributes have label rows: all of them in the full parameter set; in the observed
// one those with more labels than a row has vectors, which a row then scores in fewer instructions.
int64_t count_dense(const FieldView& field);

// A field with one weight vector at a time. Refers to the caller's vector; set it again when it changes.
class PreparedWeights {
public:
    // `groups` (or null) adds rows that are sums of others; it must outlive the object.
    PreparedWeights(const FieldView& field, const ChainKernels& kernels, const RowGroups* groups = nullptr);
    void set(const double* w, int n_threads = 1);
    const ChainWeights& view() const { return view_; }

private:
    FieldView field_;
    const ChainKernels& kernels_;
    const RowGroups* groups_;
    Buffer packed_, single_, transitions_;
    ChainWeights view_{};
};

// Data that have been checked against a field and written out as a ChainPlan.
class PlannedData {
public:
    // `group`: also look for rows that occur together, which pays when the data are read many times.
    PlannedData(const SequenceView& data, const FieldView& field, bool need_labels, bool group = false);
    const ChainPlan& view() const { return view_; }
    const RowGroups& groups() const { return groups_; }

private:
    RowGroups groups_;
    std::vector<int64_t> row_offsets_, entry_offsets_;
    std::vector<int32_t> rows_;
    std::vector<uint32_t> entry_weights_;
    std::vector<uint16_t> entry_labels_;
    std::vector<double> row_values_, entry_values_;
    ChainPlan view_{};
};

// Sum over sequences of weight * (log Z - score of the labels), and its gradient.
class ChainObjective {
public:
    ChainObjective(const SequenceView& data, const FieldView& field, const ChainKernels& kernels, int n_threads);
    double value_gradient(const double* w, double* gradient, const Poll& poll);

private:
    struct Thread {
        Buffer rows, single, outer, transitions, pair, scratch;
        double value = 0.0;
    };
    void ungroup(double* rows) const;
    void add_up(double* gradient);

    FieldView field_;
    const ChainKernels& kernels_;
    PlannedData data_;
    PreparedWeights weights_;
    std::vector<int64_t> bounds_;     // sequences of each thread
    int64_t n_rows_;                  // label rows without the groups
    int64_t once_row_, once_weight_;  // see ChainGradient
    std::vector<Thread> threads_;
};

void chain_marginals(const SequenceView& data, const FieldView& field, const ChainWeights& w,
                     const ChainKernels& kernels, int n_threads, double* log_z, double* node, double* edge,
                     const Poll& poll);
void chain_viterbi(const SequenceView& data, const FieldView& field, const ChainWeights& w, const ChainKernels& kernels,
                   int n_threads, int32_t* labels, double* scores, const Poll& poll);

}  // namespace crfkit
