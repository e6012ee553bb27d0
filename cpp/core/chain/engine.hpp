// Chains over threads: the losses of a data set with their derivatives.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "../support/buffer.hpp"
#include "../support/views.hpp"
#include "kernels/kernels.hpp"
#include "plan.hpp"
#include "weights.hpp"

namespace crfkit {

using Poll = std::function<bool()>;  // true: stop

// The data in parts, each with sums of its own: a thread takes the next part when it has finished one, so that a thread
// that the machine holds up does not hold up the others, and the sums do not depend on who made them.
struct ChainParts {
    std::vector<int64_t> bounds;    // sequences of each part
    int n_threads;                  // that share them
    int64_t once_row, once_weight;  // see ChainGradientOf
    int64_t longest;                // sequence
    int count() const { return static_cast<int>(bounds.size()) - 1; }
};

// Sums over the data in one precision; what they are of is the caller's.
template <class Real>
class ChainPass {
public:
    struct Part {
        BufferOf<Real> rows, single, transitions, pair;
        BufferOf<Real> outer, jumps, point_outer;  // of some sequences: single floats would lose the last ones of many
        Buffer outer_sum, jumps_sum, point_outer_sum;
        double value = 0.0;
    };
    ChainPass(const FieldView& field, const TrainingKernels<Real>& kernels, const PlannedData& data,
              const ChainParts& parts);
    // Runs work(part, gradient of the part, range) for each part and adds the parts' gradients up in `out`.
    template <class Work>
    void accumulate(double* out, const ChainPlan& plan, bool further, const Poll& poll, const Work& work);
    template <class Sums>
    double total(Sums Part::* sums, int64_t i) const;
    double value() const;

    PreparedWeights<Real> weights;

    // What the rounding of the jumps has added to the value: the derivative by each jump, times its error. With counts
    // of 10^5 it would hide small steps of a solver. Only for order 1 without pair attributes and
    // constraints.
    double rounding_of_jumps(const double* w) const;

private:
    void add_tables(Part& part) const;
    void distribute(Part& part) const;
    void add_up(double* gradient) const;

    FieldView field_;
    const TrainingKernels<Real>& kernels_;
    const RowTable& rows_;
    const ChainParts& division_;
    std::vector<Part> parts_;
    std::vector<BufferOf<Real>> scratch_;  // of each thread
};

// Sum over sequences of weight * (log Z - score of the labels), or of the structured hinge, and its derivatives.
class ChainObjective {
public:
    // `cost`: [L][L], added to the scores of wrong labels, or null. `hinge`: the largest score in place of log Z.
    // `kept`: the plan of another objective of the same data and field, without a cost, which must stay where it is.
    ChainObjective(const SequenceView& data, const FieldView& field, const ChainKernels& kernels, int n_threads,
                   const double* cost, bool hinge, const PlanArrays* kept = nullptr);
    PlanArrays plan() const { return data_.arrays(); }
    // With keep, leaves behind what Hessian products at w start from; w must then stay where it is.
    double value_gradient(const double* w, double* gradient, bool keep, const Poll& poll);
    // In single precision; false if that cannot hold the scores, and nothing is computed. Not for a hinge.
    bool single_value_gradient(const double* w, double* gradient, double& value, const Poll& poll);
    // Hessian times v at the weights of the last value_gradient.
    void hessian_product(const double* v, double* product, const Poll& poll);
    // Sum of p (1 - p) over the occurrences of each feature.
    void hessian_diagonal(const double* w, double* diagonal, bool single, const Poll& poll);
    int64_t cache_bytes() const;  // that keep needs

private:
    ChainPass<double>& in_double();
    ChainPass<float>& in_single();
    template <class Real>
    void diagonal_by(ChainPass<Real>& pass, const TrainingKernels<Real>& kernels, const double* w, double* diagonal,
                     const Poll& poll);

    FieldView field_;
    const ChainKernels& kernels_;
    PlannedData data_;
    ChainPlan plan_;
    bool hinge_;
    ChainParts parts_;
    std::unique_ptr<ChainPass<double>> double_;  // made when needed
    std::unique_ptr<ChainPass<float>> single_;
    // for Hessian products
    std::unique_ptr<PreparedWeights<double>> direction_;
    Buffer cache_, kept_outer_, tilted_, tilted_transposed_;
    std::vector<uint8_t> filled_;
    bool kept_ = false;
};

int64_t longest_sequence(const ChainPlan& data, int64_t begin, int64_t end);
int usable_threads(int n_threads, int64_t n_sequences);
void check_interrupt(void* interrupt, int thread);

}  // namespace crfkit
