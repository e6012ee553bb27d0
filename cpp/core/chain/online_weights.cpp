#include "online_weights.hpp"

#include <algorithm>

namespace crfkit {

template <class Real>
OnlineWeights<Real>::OnlineWeights(const SequenceView& data, const FieldView& field,
                                   const TrainingKernels<Real>& kernels, const double* cost)
    : field_(field),
      training_(kernels),
      data_(data, field, true, false, cost),
      plan_(data_.view()),
      jumps_(field, kernels) {
    const int64_t n = field.n_labels, width = padded<Real>(n);
    sequence_weights_.assign(at(data.n_sequences), 1.0);
    if (data.weights) std::copy(data.weights, data.weights + data.n_sequences, sequence_weights_.begin());
    factors_.assign(at(data.n_sequences), 1.0);
    plan_.weights = factors_.data();

    const int64_t n_rows = field.state_offsets ? data_.rows().size() : field.n_attributes;
    row_words_ = (width + 63) / 64;
    if (field.state_offsets) {
        row_bits_.assign(at(n_rows * row_words_), 0);
        for (int64_t r = 0; r < n_rows; ++r)
            data_.rows().for_each_weight(r, field, [&](int64_t, int32_t label) {
                row_bits_[at(r * row_words_ + label / 64)] |= uint64_t{1} << (label % 64);
            });
    }
    const bool table = field.order == 1;
    jumps_.each_transition([&](int64_t place, int64_t k) { transition_places_.push_back(table ? place : k); });

    single_at_ = n_rows * width;
    pair_at_ = single_at_ + field.n_class + (field.state_offsets ? field.n_state : 0);
    transition_at_ = pair_at_ + field.n_pair;
    triple_at_ = transition_at_ + (table ? n * width : field.n_transition);
    size_ = triple_at_ + field.n_triple;
    theta_ = BufferOf<Real>(size_ + width);
    outer_ = BufferOf<Real>(jumps_.jump_size());
    jump_delta_ = BufferOf<Real>(jumps_.jump_size());
    transition_delta_ = BufferOf<Real>(table ? 0 : n * width);
    jump_mask_ = BufferOf<Real>(table ? n * width : 0);
    for (BufferOf<Real>* buffer : {&theta_, &outer_, &jump_delta_, &transition_delta_, &jump_mask_}) buffer->zero();
    if (table)
        for (const int64_t place : transition_places_) jump_mask_.data()[place] = 1;
    const int64_t longest = longest_sequence(plan_, 0, plan_.n_sequences);
    scratch_ =
        BufferOf<Real>(kernels.scratch_size(longest, n, field.order, plan_.pair_offsets != nullptr, is_weak(plan_)));

    view_.rows = theta_.data();
    view_.row_stride = width;
    view_.n_inside = n_rows;
    view_.tail = nullptr;
    view_.far = size_ > int64_t{1} << 21;
    view_.single = theta_.data() + single_at_;
    view_.pair = theta_.data() + pair_at_;
    view_.pair_offsets = field.pair_offsets;
    view_.pair_codes = field.pair_codes;
    view_.scale = 1.0;
    refresh();
}

template <class Real>
void OnlineWeights<Real>::refresh() {
    view_.scale = scale_;
    if (field_.order == 1)
        jumps_.set_table(theta_.data() + transition_at_, scale_);
    else
        jumps_.set(theta_.data() + transition_at_, theta_.data() + triple_at_, scale_, false);
    jumps_.describe(view_);
}

template <class Real>
void OnlineWeights<Real>::start(const double* w) {
    each_place([&](int64_t place, int64_t f) { theta_.data()[place] = static_cast<Real>(w[f]); });
    scale_ = 1.0;
    refresh();
}

template <class Real>
void OnlineWeights<Real>::weights(double* w) const {
    each_place([&](int64_t place, int64_t f) { w[f] = scale_ * static_cast<double>(theta_.data()[place]); });
}

template <class Real>
double OnlineWeights<Real>::square() const {
    constexpr int64_t kBlock = 4096;  // numbers that are added up in the precision of the weights
    double sum = 0.0;
    for (int64_t begin = 0; begin < size_; begin += kBlock) {
        Real part[8] = {};
        const Real* x = theta_.data() + begin;
        const int64_t n = std::min(kBlock, size_ - begin);
        int64_t i = 0;
        for (; i + 8 <= n; i += 8)
            for (int k = 0; k < 8; ++k) part[k] += x[i + k] * x[i + k];
        for (; i < n; ++i) part[0] += x[i] * x[i];
        for (const Real p : part) sum += p;
    }
    return scale_ * scale_ * sum;
}

template <class Real>
void OnlineWeights<Real>::fold_scale() {
    for (int64_t i = 0; i < size_; ++i) theta_.data()[i] = static_cast<Real>(scale_ * theta_.data()[i]);
    scale_ = 1.0;
}

template <class Real>
ChainGradientOf<Real> OnlineWeights<Real>::gradient_into(Real* target) {
    return {target,
            target + single_at_,
            nullptr,
            nullptr,
            view_.n_inside,
            INT64_MAX,
            outer_.data(),
            jump_delta_.data(),
            transition_delta_.data(),
            target + pair_at_,
            row_bits_.empty() ? nullptr : row_bits_.data(),
            row_words_};
}

template <class Real>
double OnlineWeights<Real>::sgd(const int64_t* order, const double* steps, int64_t n, double l2, const Poll& poll) {
    const ChainGradientOf<Real> gradient = gradient_into(theta_.data());
    double loss = 0.0;
    over(order, n, poll, [&](int64_t k, int64_t id) {
        loss += take_step(
            id, steps[k], l2, false, gradient, theta_.data(),
            [&](const ChainGradientOf<Real>& target, const ChainRange& range) {
                return training_.value_gradient(plan_, view_, target, nullptr, range);
            },
            [&] { fold_scale(); });
        if (scale_ < kLeastScale) fold_scale();
        refresh();
    });
    return loss;
}

template class OnlineWeights<double>;
template class OnlineWeights<float>;

}  // namespace crfkit
