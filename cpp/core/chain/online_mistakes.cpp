// Learners that compare a sequence's labels with its best labelling: perceptron, passive-aggressive, AROW, MIRA.
#include <algorithm>
#include <cmath>
#include <utility>

#include "online.hpp"

namespace crfkit {

void ChainOnline::add_feature(int64_t i, double value) {
    if (delta(i) == 0.0) difference_.features.emplace_back(i, 0.0);
    delta(i) += value;
}

// Adds sign * features of the labels y at the positions where best_ and the labels differ.
void ChainOnline::add_features(int64_t n, const int32_t* y, double sign) {
    const int64_t begin = plan_.starts[n], n_labels = field_.n_labels;
    const int32_t *gold = plan_.labels, *best = best_.data();
    for (int64_t t = begin; t < plan_.starts[n + 1]; ++t) {
        const int64_t label = y[t];
        if (gold[t] != best[t]) {
            for (int64_t k = plan_.row_offsets[t]; k < plan_.row_offsets[t + 1]; ++k) {
                const int64_t r = plan_.rows[k];
                if (row_bits_.empty() || (row_bits_[at(r * row_words_ + label / 64)] >> (label % 64) & 1))
                    add_feature(r * view_.row_stride + label, sign * (plan_.row_values ? plan_.row_values[k] : 1.0));
            }
            if (plan_.entry_offsets)
                for (int64_t k = plan_.entry_offsets[t]; k < plan_.entry_offsets[t + 1]; ++k)
                    if (plan_.entry_labels[k] == label)
                        add_feature(single_at_ + plan_.entry_weights[k],
                                    sign * (plan_.entry_values ? plan_.entry_values[k] : 1.0));
        }
        if (t == begin) continue;
        const bool same = gold[t] == best[t] && gold[t - 1] == best[t - 1];
        const int64_t code = y[t - 1] * n_labels + label;
        if (const int32_t k = transition_index_[at(code)]; !same && k >= 0) add_feature(transition_place(k), sign);
        if (!same && plan_.pair_offsets)
            for (int64_t k = plan_.pair_offsets[t]; k < plan_.pair_offsets[t + 1]; ++k) {
                const int64_t a = plan_.pair_attributes[k];
                if (!field_.pair_offsets) {
                    add_feature(pair_at_ + a * n_labels * n_labels + code, sign);
                    continue;
                }
                const int32_t* first = field_.pair_codes + field_.pair_offsets[a];
                const int32_t* last = field_.pair_codes + field_.pair_offsets[a + 1];
                const int32_t* found = std::lower_bound(first, last, static_cast<int32_t>(code));
                if (found != last && *found == code) add_feature(pair_at_ + (found - field_.pair_codes), sign);
            }
        if (field_.order == 1 || t == begin + 1 || (same && gold[t - 2] == best[t - 2])) continue;
        const int32_t k = triple_index_[at(y[t - 2] * n_labels * n_labels + code)];
        if (k >= 0) add_feature(triple_at_ + k, sign);
    }
}

// The features of sequence n's labels minus those of its best labelling.
const ChainOnline::Difference& ChainOnline::compare(int64_t n) {
    if (!delta_.size()) {
        delta_ = Buffer(theta_.size());
        delta_.zero();
    }
    if (scale_ != 1.0) {  // left by sgd
        fold_scale();
        refresh();
    }
    const ChainRange range{0, n, n + 1, scratch_.data(), [](void*, int) {}, nullptr};
    ChainPlan plain = plan_;
    plain.cost = nullptr;
    kernels_.viterbi(plain, view_, best_.data(), best_score_.data(), range);
    difference_.wrong = 0;
    difference_.margin = 0.0;
    difference_.features.clear();
    for (int64_t t = plan_.starts[n]; t < plan_.starts[n + 1]; ++t)
        difference_.wrong += plan_.labels[t] != best_[at(t)];
    mistakes_.sequences += difference_.wrong > 0;
    mistakes_.positions += difference_.wrong;
    if (difference_.wrong == 0) return difference_;
    mistakes_.share += sequence_weights_[at(n)] * static_cast<double>(difference_.wrong) /
                       static_cast<double>(plan_.starts[n + 1] - plan_.starts[n]);
    add_features(n, plan_.labels, 1.0);
    add_features(n, best_.data(), -1.0);
    for (auto& [i, value] : difference_.features) {
        value = std::exchange(delta(i), 0.0);
        difference_.margin += theta_.data()[i] * value;
    }
    return difference_;
}

void ChainOnline::update(double factor) {
    if (!sums_.size()) {
        sums_ = Buffer(theta_.size());
        sums_.zero();
    }
    for (const auto& [i, value] : difference_.features) {
        theta_.data()[i] += factor * value;
        sums_.data()[i] += scale_sum_ * factor * value;
    }
    refresh();
}

namespace {

double squared_norm(const std::vector<std::pair<int64_t, double>>& features) {
    double total = 0.0;
    for (const auto& [i, value] : features) total += value * value;
    return total;
}

}  // namespace

void ChainOnline::measure(const int64_t* order, int64_t n, const Poll& poll) {
    over(order, n, poll, [&](int64_t, int64_t id) { compare(id); });
}

void ChainOnline::perceptron(const int64_t* order, int64_t n, const Poll& poll) {
    over(order, n, poll, [&](int64_t, int64_t id) {
        if (compare(id).wrong > 0) update(sequence_weights_[at(id)]);
        scale_sum_ += 1.0;
        ++steps_;
    });
}

double ChainOnline::passive_aggressive(const int64_t* order, int64_t n, Aggression kind, double c, bool count_errors,
                                       const Poll& poll) {
    double total = 0.0;
    over(order, n, poll, [&](int64_t, int64_t id) {
        const Difference& d = compare(id);
        const double square = squared_norm(d.features);
        if (d.wrong > 0 && square > 0.0) {
            const double loss = (count_errors ? std::sqrt(static_cast<double>(d.wrong)) : 1.0) - d.margin;
            double tau = loss / (kind == Aggression::quadratic ? square + 0.5 / c : square);
            if (kind == Aggression::linear) tau = std::min(c, tau);
            total += sequence_weights_[at(id)] * loss;
            update(sequence_weights_[at(id)] * tau);
        }
        scale_sum_ += 1.0;
        ++steps_;
    });
    return total;
}

double ChainOnline::arow(const int64_t* order, int64_t n, double variance, double gamma, const Poll& poll) {
    if (!covariances_.size()) {
        covariances_ = Buffer(theta_.size());
        std::fill(covariances_.data(), covariances_.data() + covariances_.size(), variance);
    }
    double total = 0.0;
    over(order, n, poll, [&](int64_t, int64_t id) {
        if (const Difference& d = compare(id); d.wrong > 0) {
            const double loss = static_cast<double>(d.wrong) - d.margin;
            double confidence = gamma;
            for (const auto& [i, value] : d.features) confidence += covariances_.data()[i] * value * value;
            total += sequence_weights_[at(id)] * loss;
            for (auto& [i, value] : difference_.features) {
                const double difference = value;
                value *= covariances_.data()[i];
                covariances_.data()[i] = 1.0 / (1.0 / covariances_.data()[i] + difference * difference / gamma);
            }
            update(sequence_weights_[at(id)] * loss / confidence);
        }
        scale_sum_ += 1.0;
        ++steps_;
    });
    return total;
}

double ChainOnline::mira(const int64_t* order, int64_t n, double c, bool shortened, const Poll& poll) {
    multipliers_.resize(at(plan_.n_sequences), 0.0);
    double total = 0.0;
    over(order, n, poll, [&](int64_t, int64_t id) {
        const Difference& d = compare(id);
        const double square = squared_norm(d.features);
        if (d.wrong > 0 && square > 0.0) {
            const double wrong = static_cast<double>(d.wrong);
            const double loss = shortened ? std::max(0.0, wrong + d.margin) : wrong - d.margin;
            double& used = multipliers_[at(id)];
            const double mu = std::min(loss / square, c * sequence_weights_[at(id)] - used);
            used += mu;
            total += sequence_weights_[at(id)] * loss;
            update(mu);
        }
        scale_sum_ += 1.0;
        ++steps_;
    });
    return total;
}

}  // namespace crfkit
