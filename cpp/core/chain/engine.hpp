// Chains over threads: the losses of a data set with their derivatives.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "../support/buffer.hpp"
#include "../support/views.hpp"
#include "kernels.hpp"
#include "plan.hpp"
#include "weights.hpp"

namespace crfkit {

using Poll = std::function<bool()>;  // true: stop

// Sum over sequences of weight * (log Z - score of the labels), or of the structured hinge, and its derivatives.
class ChainObjective {
public:
    // `cost`: [L][L], added to the scores of wrong labels, or null. `hinge`: the largest score in place of log Z.
    ChainObjective(const SequenceView& data, const FieldView& field, const ChainKernels& kernels, int n_threads,
                   const double* cost, bool hinge);
    // With keep, leaves behind what Hessian products at w start from; w must then stay where it is.
    double value_gradient(const double* w, double* gradient, bool keep, const Poll& poll);
    // Hessian times v at the weights of the last value_gradient.
    void hessian_product(const double* v, double* product, const Poll& poll);
    // Sum of p (1 - p) over the occurrences of each feature.
    void hessian_diagonal(const double* w, double* diagonal, const Poll& poll);
    int64_t cache_bytes() const;  // that keep needs

private:
    struct Thread {
        Buffer rows, single, outer, jumps, transitions, pair, point_outer, scratch;
        double value = 0.0;
    };
    // Runs work(thread, gradient of the thread, range) and adds the threads' gradients up in `out`.
    template <class Work>
    void accumulate(double* out, bool tangent, const Poll& poll, const Work& work);
    void distribute(Thread& thread) const;
    void add_up(double* gradient);
    double total(Buffer Thread::* part, int64_t i) const;

    FieldView field_;
    const ChainKernels& kernels_;
    PlannedData data_;
    ChainPlan plan_;
    PreparedWeights weights_;
    bool hinge_;
    std::vector<int64_t> bounds_;     // sequences of each thread
    int64_t once_row_, once_weight_;  // see ChainGradient
    std::vector<Thread> threads_;
    // for Hessian products
    std::unique_ptr<PreparedWeights> direction_;
    Buffer cache_, kept_outer_, tilted_, tilted_transposed_;
    std::vector<uint8_t> filled_;
    bool kept_ = false;
};

int64_t longest_sequence(const ChainPlan& data, int64_t begin, int64_t end);
int usable_threads(int n_threads, int64_t n_sequences);
void check_interrupt(void* interrupt, int thread);

}  // namespace crfkit
