#include "online.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace crfkit {

namespace {

constexpr double kLeastScale = 1e-6;  // below it, the factor is multiplied into the weights

std::vector<int32_t> invert(const int32_t* codes, int64_t n, int64_t all) {
    std::vector<int32_t> index(static_cast<size_t>(all), -1);
    for (int64_t k = 0; k < n; ++k) index[static_cast<size_t>(codes ? codes[k] : k)] = static_cast<int32_t>(k);
    return index;
}

}  // namespace

ChainOnline::ChainOnline(const SequenceView& data, const FieldView& field, const ChainKernels& kernels,
                         const double* cost, bool hinge)
    : field_(field),
      kernels_(kernels),
      data_(data, field, true, false, cost),
      plan_(data_.view()),
      jumps_(field, kernels),
      hinge_(hinge) {
    const int64_t n = field.n_labels, width = padded(n);
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
    transition_index_ = invert(field.transition_codes, field.n_transition, n * n);
    if (field.order == 2) triple_index_ = invert(field.triple_codes, field.n_triple, n * n * n);

    single_at_ = n_rows * width;
    pair_at_ = single_at_ + field.n_class + (field.state_offsets ? field.n_state : 0);
    transition_at_ = pair_at_ + field.n_pair;
    triple_at_ = transition_at_ + field.n_transition;
    size_ = triple_at_ + field.n_triple;
    theta_ = Buffer(size_ + width);
    theta_.zero();
    for (Buffer* table : {&outer_, &jump_delta_}) *table = Buffer(jumps_.jump_size());
    transition_delta_ = Buffer(field.order == 2 ? n * width : 0);
    const int64_t longest = longest_sequence(plan_, 0, plan_.n_sequences);
    scratch_ = Buffer(kernels.scratch_size(longest, n, field.order, plan_.pair_offsets != nullptr, is_weak(plan_)));
    best_.resize(at(plan_.n_positions));
    best_score_.resize(at(plan_.n_sequences));

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

void ChainOnline::refresh() {
    view_.scale = scale_;
    jumps_.set(theta_.data() + transition_at_, theta_.data() + triple_at_, scale_, false);
    jumps_.describe(view_);
}

template <class Visit>
void ChainOnline::each_place(const Visit& visit) const {
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
    for (int64_t k = 0; k < field_.n_transition; ++k) visit(transition_at_ + k, field_.transition_at() + k);
    for (int64_t k = 0; k < field_.n_triple; ++k) visit(triple_at_ + k, field_.triple_at() + k);
}

void ChainOnline::start(const double* w, const double* variances) {
    each_place([&](int64_t place, int64_t f) { theta_.data()[place] = w[f]; });
    scale_ = 1.0;
    scale_sum_ = penalty_ = 0.0;
    steps_ = 0;
    if (sums_.size()) sums_.zero();
    reached_ = Buffer();
    covariances_ = Buffer();
    if (variances) {
        covariances_ = Buffer(theta_.size());
        covariances_.zero();
        each_place([&](int64_t place, int64_t f) { covariances_.data()[place] = variances[f]; });
    }
    multipliers_.clear();
    refresh();
}

bool ChainOnline::variances(double* out) const {
    if (!covariances_.size()) return false;
    each_place([&](int64_t place, int64_t f) { out[f] = covariances_.data()[place]; });
    return true;
}

void ChainOnline::weights(double* w) const {
    each_place([&](int64_t place, int64_t f) { w[f] = scale_ * theta_.data()[place]; });
}

// With s_k the scale and v_k theta after step k, and d_m the change of theta at step m:
//   sum_k s_k v_k = S_K v_K - sum_m S_{m-1} d_m,   S_k = s_1 + … + s_k.
void ChainOnline::average(double* w) const {
    if (steps_ == 0) return weights(w);
    const double n = static_cast<double>(steps_);
    each_place([&](int64_t place, int64_t f) {
        const double sum = sums_.size() ? sums_.data()[place] : 0.0;
        w[f] = (scale_sum_ * theta_.data()[place] - sum) / n;
    });
}

ChainOnline::Saved ChainOnline::save() const {
    const auto copy = [](const Buffer& buffer) {
        return std::vector<double>(buffer.data(), buffer.data() + buffer.size());
    };
    return {copy(theta_), copy(sums_), copy(reached_), copy(covariances_), multipliers_, scale_,
            scale_sum_,   penalty_,    steps_};
}

void ChainOnline::restore(const Saved& saved) {
    const auto copy = [&](const std::vector<double>& values, Buffer& buffer) {
        if (!values.empty() && values.size() != at(theta_.size()))
            throw std::invalid_argument("the saved state is of other data or of another field");
        if (values.empty()) {
            buffer = Buffer();
            return;
        }
        buffer.reserve(theta_.size());
        std::copy(values.begin(), values.end(), buffer.data());
    };
    if (saved.theta.size() != at(theta_.size()) ||
        (!saved.multipliers.empty() && saved.multipliers.size() != at(plan_.n_sequences)))
        throw std::invalid_argument("the saved state is of other data or of another field");
    std::copy(saved.theta.begin(), saved.theta.end(), theta_.data());
    copy(saved.sums, sums_);
    copy(saved.reached, reached_);
    copy(saved.covariances, covariances_);
    multipliers_ = saved.multipliers;
    scale_ = saved.scale;
    scale_sum_ = saved.scale_sum;
    penalty_ = saved.penalty;
    steps_ = saved.steps;
    refresh();
}

void ChainOnline::fold_scale() {
    // The sum so far moves into sums_, as dividing S by a tiny scale would make S v and sums_ cancel.
    for (int64_t i = 0; i < sums_.size(); ++i) sums_.data()[i] -= scale_sum_ * theta_.data()[i];
    if (sums_.size()) scale_sum_ = 0.0;
    for (int64_t i = 0; i < size_; ++i) theta_.data()[i] *= scale_;
    for (int64_t i = 0; i < reached_.size(); ++i) reached_.data()[i] *= scale_;
    penalty_ *= scale_;
    scale_ = 1.0;
}

// theta[i] += delta[i] for n weights from `begin` on; then their penalties and averages. The cumulative penalty of
// Tsuruoka, Tsujii & Ananiadou (2009): each weight gets all of the penalty that has come up, but is not taken across
// zero. Of a weight x that got -r so far, max(x - (penalty + r), 0) + min(x + (penalty - r), 0) is left: at most one of
// the two is not zero. Without branches, rows are as wide as registers.
template <bool averaged, bool penalised>
void ChainOnline::apply_delta(int64_t begin, int64_t n) {
    double *theta = theta_.data() + begin, *delta = delta_.data() + begin;
    double *sums = averaged ? sums_.data() + begin : nullptr, *reached = penalised ? reached_.data() + begin : nullptr;
    const double penalty = penalty_, share = scale_sum_;
    for (int64_t i = 0; i < n; ++i) {
        const double before = theta[i], moved = before + delta[i];
        double x = moved;
        if constexpr (penalised) {
            const double r = reached[i], down = std::max(penalty + r, 0.0), up = std::max(penalty - r, 0.0);
            x = std::max(moved - down, 0.0) + std::min(moved + up, 0.0);  // NaN stays NaN
            reached[i] = r + (x - moved);
        }
        theta[i] = x;
        delta[i] = 0.0;
        if constexpr (averaged) sums[i] += share * (x - before);
    }
}

// theta += what the kernel left in delta for sequence n; then averages and penalties of the weights it touched.
void ChainOnline::apply_gradient(int64_t n, bool averaged, double l1) {
    const int64_t width = view_.row_stride;
    const auto apply = [&](int64_t begin, int64_t count) {
        if (l1 > 0.0)
            averaged ? apply_delta<true, true>(begin, count) : apply_delta<false, true>(begin, count);
        else
            apply_delta<true, false>(begin, count);
    };
    for (int64_t t = plan_.starts[n]; t < plan_.starts[n + 1]; ++t) {
        for (int64_t k = plan_.row_offsets[t]; k < plan_.row_offsets[t + 1]; ++k)
            apply(plan_.rows[k] * width, field_.n_labels);
        if (plan_.entry_offsets)
            for (int64_t k = plan_.entry_offsets[t]; k < plan_.entry_offsets[t + 1]; ++k)
                apply(single_at_ + plan_.entry_weights[k], 1);
        if (!plan_.pair_offsets) continue;
        const int64_t square = field_.n_labels * field_.n_labels;
        for (int64_t k = plan_.pair_offsets[t]; k < plan_.pair_offsets[t + 1]; ++k) {
            const int64_t a = plan_.pair_attributes[k];
            const int64_t begin = field_.pair_offsets ? field_.pair_offsets[a] : a * square;
            const int64_t end = field_.pair_offsets ? field_.pair_offsets[a + 1] : begin + square;
            apply(pair_at_ + begin, end - begin);
        }
    }
    const int64_t length = plan_.starts[n + 1] - plan_.starts[n];
    if (length > 1) apply(transition_at_, field_.n_transition);
    if (length > 2) apply(triple_at_, field_.n_triple);
}

double ChainOnline::sgd(const int64_t* order, const double* steps, int64_t n, double l2, double l1, bool averaged,
                        bool shrink_first, const Poll& poll) {
    const double total = static_cast<double>(plan_.n_sequences);
    const bool apart = averaged || l1 > 0.0;  // the change must be known on its own
    if (apart && !delta_.size()) {
        delta_ = Buffer(theta_.size());
        delta_.zero();
    }
    if (averaged && !sums_.size()) {
        sums_ = Buffer(theta_.size());
        sums_.zero();
    }
    if (l1 > 0.0 && !reached_.size()) {
        reached_ = Buffer(theta_.size());
        reached_.zero();
    }
    double* target = apart ? delta_.data() : theta_.data();
    const ChainGradient gradient{target,
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
    double loss = 0.0;
    over(order, n, poll, [&](int64_t k, int64_t id) {
        const double eta = steps[k], weight = sequence_weights_[at(id)], shrink = 1.0 - eta * l2 / total;
        if (!(shrink > 0.0)) throw std::invalid_argument("the step size is too large for the L2 penalty");
        if (shrink_first) {
            scale_ *= shrink;
            if (scale_ < kLeastScale) fold_scale();
            refresh();
        }
        // A step of length zero measures the loss: it moves weights by less than rounding.
        const double factor = -std::max(eta, 1e-280) * weight / (shrink_first ? scale_ : scale_ * shrink);
        if (weight != 0.0 && plan_.starts[id + 1] > plan_.starts[id]) {
            for (Buffer* table : {&outer_, &jump_delta_, &transition_delta_}) table->zero();
            factors_[at(id)] = factor;
            const ChainRange range{0, id, id + 1, scratch_.data(), [](void*, int) {}, nullptr};
            const double value = hinge_ ? kernels_.hinge(plan_, view_, gradient, range)
                                        : kernels_.value_gradient(plan_, view_, gradient, nullptr, range);
            loss += value / factor * weight;
            jumps_.each_jump([&](int64_t place, int64_t i) {
                const int64_t block = field_.order == 1 ? transition_at_ : triple_at_;
                target[block + i] += outer_.data()[place] * view_.exp_jumps[place] + jump_delta_.data()[place];
            });
            if (field_.order == 2)
                jumps_.each_transition(
                    [&](int64_t place, int64_t i) { target[transition_at_ + i] += transition_delta_.data()[place]; });
        }
        if (!shrink_first) scale_ *= shrink;
        penalty_ += eta * l1 / (total * scale_);
        if (apart) apply_gradient(id, averaged, l1);
        scale_sum_ += scale_;
        ++steps_;
        if (shrink_first) return;  // the next step or the end of the epoch refreshes
        if (scale_ < kLeastScale) fold_scale();
        refresh();
    });
    // what the last sequences did not touch; not in the mean so far
    if (l1 > 0.0) averaged ? apply_delta<true, true>(0, size_) : apply_delta<false, true>(0, size_);
    refresh();
    return loss;
}

}  // namespace crfkit
