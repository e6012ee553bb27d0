#include "online.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace crfkit {

namespace {

std::vector<int32_t> invert(const int32_t* codes, int64_t n, int64_t all) {
    std::vector<int32_t> index(static_cast<size_t>(all), -1);
    for (int64_t k = 0; k < n; ++k) index[static_cast<size_t>(codes ? codes[k] : k)] = static_cast<int32_t>(k);
    return index;
}

}  // namespace

ChainOnline::ChainOnline(const SequenceView& data, const FieldView& field, const ChainKernels& kernels,
                         const double* cost, bool hinge)
    : OnlineWeights(data, field, kernels, cost), kernels_(kernels), hinge_(hinge) {
    const int64_t n = field.n_labels;
    transition_index_ = invert(field.transition_codes, field.n_transition, n * n);
    if (field.order == 2) triple_index_ = invert(field.triple_codes, field.n_triple, n * n * n);
    best_.resize(at(plan_.n_positions));
    best_score_.resize(at(plan_.n_sequences));
}

void ChainOnline::start(const double* w, const double* variances) {
    OnlineWeights::start(w);
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
}

bool ChainOnline::variances(double* out) const {
    if (!covariances_.size()) return false;
    each_place([&](int64_t place, int64_t f) { out[f] = covariances_.data()[place]; });
    return true;
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
    for (int64_t i = 0; i < reached_.size(); ++i) reached_.data()[i] *= scale_;
    penalty_ *= scale_;
    OnlineWeights::fold_scale();
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
    if (length > 1) apply(transition_at_, triple_at_ - transition_at_);  // with a table's padding, which stays zero
    if (length > 2) apply(triple_at_, field_.n_triple);
}

double ChainOnline::sgd(const int64_t* order, const double* steps, int64_t n, double l2, double l1, bool averaged,
                        bool shrink_first, const Poll& poll) {
    const double total = static_cast<double>(plan_.n_sequences);
    const bool apart = averaged || l1 > 0.0;  // the change must be known on its own
    const auto make = [&](Buffer& buffer) {
        if (buffer.size()) return;
        buffer = Buffer(theta_.size());
        buffer.zero();
    };
    if (apart) make(delta_);
    if (averaged) make(sums_);
    if (l1 > 0.0) make(reached_);
    double* target = apart ? delta_.data() : theta_.data();
    const ChainGradient gradient = gradient_into(target);
    double loss = 0.0;
    over(order, n, poll, [&](int64_t k, int64_t id) {
        loss += take_step(
            id, steps[k], l2, shrink_first, gradient, target,
            [&](const ChainGradient& into, const ChainRange& range) {
                return hinge_ ? kernels_.hinge(plan_, view_, into, range)
                              : kernels_.value_gradient(plan_, view_, into, nullptr, range);
            },
            [&] { fold_scale(); });
        penalty_ += steps[k] * l1 / (total * scale_);
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
