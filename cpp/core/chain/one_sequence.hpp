// One sequence at a time through a chain, for callers that tag short texts one by one: memory is kept between calls,
// and what is asked for twice is computed once.
#pragma once

#include <optional>

#include "../support/buffer.hpp"
#include "nbest.hpp"
#include "plan.hpp"
#include "weights.hpp"

namespace crfkit {

class OneSequence {
public:
    explicit OneSequence(const ChainKernels& kernels) : kernels_(kernels) {}

    // `data` holds one sequence. What the views refer to stays where it is until the next call.
    void set(const SequenceView& data, const FieldView& field, const ChainWeights& w);
    int64_t length() const { return length_; }
    // Fills labels [T]; returns their score.
    double viterbi(int32_t* labels);
    double score(const int32_t* labels);
    double log_z();
    const double* marginals();  // [T][L]

private:
    ChainRange range();
    void infer();

    const ChainKernels& kernels_;
    FieldView field_;
    ChainWeights w_{};
    std::optional<PlannedData> planned_;
    int64_t length_ = 0;
    Buffer scratch_, node_;
    std::optional<double> log_z_;
};

}  // namespace crfkit
