// Weights of a chain that change after every sequence, and stochastic gradient steps on them. One thread.
//
// All weights lie in one buffer, as the kernels read them: label rows, single weights (classes, then states), pair
// weights, transitions, triples. In order 1 the transitions are a table [L][P]. A shrinking factor (L2) is kept apart:
// w = scale * theta.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "../support/buffer.hpp"
#include "../support/denormals.hpp"
#include "../support/parallel.hpp"
#include "engine.hpp"
#include "plan.hpp"
#include "weights.hpp"

namespace crfkit {

template <class Real>
class OnlineWeights {
public:
    OnlineWeights(const SequenceView& data, const FieldView& field, const TrainingKernels<Real>& kernels,
                  const double* cost);
    void start(const double* w);
    void weights(double* w) const;
    double square() const;  // ‖w‖²
    // An epoch over the sequences order[0 … n): w <- (1 - eta l2 / N) w - eta * gradient. Returns the summed loss, each
    // before its step.
    double sgd(const int64_t* order, const double* steps, int64_t n, double l2, const Poll& poll);

protected:
    static constexpr double kLeastScale = 1e-6;  // below it, the factor is multiplied into the weights

    void refresh();                                     // tables of jumps from theta
    void fold_scale();                                  // w = theta from now on
    ChainGradientOf<Real> gradient_into(Real* target);  // where the kernels add: a vector like theta
    template <class Visit>
    void each_place(const Visit& visit) const;  // visit(place in theta, index in the weight vector)
    int64_t transition_place(int64_t k) const { return transition_at_ + transition_places_[at(k)]; }
    // Calls work(k, order[k]) for each k, with a look at Ctrl-C in between.
    template <class Work>
    void over(const int64_t* order, int64_t n, const Poll& poll, const Work& work);
    // One step with the gradient of sequence `id`, which `compute` adds to the target times a factor, next to its
    // value. Shrinks the weights before it or after it; refreshing the tables is the caller's. Returns the loss.
    template <class Compute>
    double take_step(int64_t id, double eta, double l2, bool shrink_first, const ChainGradientOf<Real>& gradient,
                     Real* target, const Compute& compute, const auto& fold);
    static size_t at(int64_t i) { return static_cast<size_t>(i); }

    FieldView field_;
    const TrainingKernels<Real>& training_;
    PlannedData data_;
    ChainPlan plan_;
    JumpTables<Real> jumps_;
    std::vector<double> sequence_weights_, factors_;  // as given; as the kernel is to see them
    std::vector<uint64_t> row_bits_;                  // which labels of a row have a weight; empty: all
    int64_t row_words_;
    std::vector<int64_t> transition_places_;                          // in the block of transitions
    int64_t single_at_, pair_at_, transition_at_, triple_at_, size_;  // blocks of theta
    BufferOf<Real> theta_, outer_, jump_delta_, transition_delta_, jump_mask_, scratch_;
    double scale_ = 1.0;
    ChainWeightsOf<Real> view_{};
};

template <class Real>
template <class Visit>
void OnlineWeights<Real>::each_place(const Visit& visit) const {
    const int64_t width = view_.row_stride, n = field_.n_labels;
    if (field_.state_offsets) {
        const int64_t n_rows = data_.rows().size();
        for (int64_t r = 0; r < n_rows; ++r)
            data_.rows().for_each_weight(r, field_, [&](int64_t f, int32_t label) { visit(r * width + label, f); });
        for (int64_t f = field_.state_offsets[n_rows]; f < field_.n_state; ++f)
            visit(single_at_ + field_.n_class + f, f);
    } else {
        for (int64_t a = 0; a < field_.n_attributes; ++a)
            for (int64_t j = 0; j < n; ++j) visit(a * width + j, a * n + j);
    }
    for (int64_t k = 0; k < field_.n_class; ++k) visit(single_at_ + k, field_.class_at() + k);
    for (int64_t k = 0; k < field_.n_pair; ++k) visit(pair_at_ + k, field_.pair_at() + k);
    for (int64_t k = 0; k < field_.n_transition; ++k) visit(transition_place(k), field_.transition_at() + k);
    for (int64_t k = 0; k < field_.n_triple; ++k) visit(triple_at_ + k, field_.triple_at() + k);
}

template <class Real>
template <class Work>
void OnlineWeights<Real>::over(const int64_t* order, int64_t n, const Poll& poll, const Work& work) {
    const FlushDenormals flush(sizeof(Real) == sizeof(float));
    Interrupt interrupt(poll);
    for (int64_t k = 0; k < n; ++k) {
        if (order[k] < 0 || order[k] >= plan_.n_sequences)
            throw std::invalid_argument("sequence " + std::to_string(order[k]) + " does not exist");
        work(k, order[k]);
        interrupt.check(0);
    }
}

template <class Real>
template <class Compute>
double OnlineWeights<Real>::take_step(int64_t id, double eta, double l2, bool shrink_first,
                                      const ChainGradientOf<Real>& gradient, Real* target, const Compute& compute,
                                      const auto& fold) {
    const double weight = sequence_weights_[at(id)];
    const double shrink = 1.0 - eta * l2 / static_cast<double>(plan_.n_sequences);
    if (!(shrink > 0.0)) throw std::invalid_argument("the step size is too large for the L2 penalty");
    if (shrink_first) {
        scale_ *= shrink;
        if (scale_ < kLeastScale) fold();
        refresh();
    }
    double loss = 0.0;
    if (weight != 0.0 && plan_.starts[id + 1] > plan_.starts[id]) {
        // A step of length zero measures the loss: it moves weights by less than rounding.
        const double factor = -std::max(eta, 1e-280) * weight / (shrink_first ? scale_ : scale_ * shrink);
        factors_[at(id)] = factor;
        const ChainRange range{0, id, id + 1, scratch_.data(), [](void*, int) {}, nullptr};
        loss = compute(gradient, range) / factor * weight;
        if (field_.order == 1) {
            training_.step_jumps(target + transition_at_, jump_mask_.data(), outer_.data(), view_.exp_jumps,
                                 jump_delta_.data(), outer_.size());
        } else {
            jumps_.each_jump([&](int64_t place, int64_t i) {
                target[triple_at_ + i] += outer_.data()[place] * view_.exp_jumps[place] + jump_delta_.data()[place];
            });
            jumps_.each_transition(
                [&](int64_t place, int64_t i) { target[transition_at_ + i] += transition_delta_.data()[place]; });
            for (BufferOf<Real>* table : {&outer_, &jump_delta_, &transition_delta_}) table->zero();
        }
    }
    if (!shrink_first) scale_ *= shrink;
    return loss;
}

}  // namespace crfkit
