// Chains over threads: weights laid out for the kernels, the likelihood of a data set, decoding.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "buffer.hpp"
#include "chain.hpp"
#include "plan.hpp"
#include "views.hpp"

namespace crfkit {

using Poll = std::function<bool()>;  // true: stop

// A field with one weight vector at a time. Refers to the caller's vector; set it again when it changes.
class PreparedWeights {
public:
    // `rows` are the label rows of the observed set.
    PreparedWeights(const FieldView& field, const ChainKernels& kernels, RowTable rows);
    void set(const double* w, int n_threads = 1);
    const ChainWeights& view() const { return view_; }

private:
    FieldView field_;
    const ChainKernels& kernels_;
    RowTable rows_;
    Buffer packed_, single_, transitions_;
    ChainWeights view_{};
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
    void distribute(Thread& thread) const;
    void add_up(double* gradient);

    FieldView field_;
    const ChainKernels& kernels_;
    PlannedData data_;
    PreparedWeights weights_;
    std::vector<int64_t> bounds_;     // sequences of each thread
    int64_t once_row_, once_weight_;  // see ChainGradient
    std::vector<Thread> threads_;
};

void chain_marginals(const SequenceView& data, const FieldView& field, const ChainWeights& w,
                     const ChainKernels& kernels, int n_threads, double* log_z, double* node, double* edge,
                     const Poll& poll);
void chain_viterbi(const SequenceView& data, const FieldView& field, const ChainWeights& w, const ChainKernels& kernels,
                   int n_threads, int32_t* labels, double* scores, const Poll& poll);

}  // namespace crfkit
