#include "weights.hpp"

#include <algorithm>
#include <limits>

#include "../support/parallel.hpp"

namespace crfkit {

JumpTables::JumpTables(const FieldView& field, const ChainKernels& kernels)
    : field_(field),
      kernels_(kernels),
      width_(padded(field.n_labels)),
      jump_rows_(field.order == 1 ? field.n_labels : (field.n_labels + 1) * width_),
      span_(field.order == 1 ? width_ : (field.n_labels + 1) * width_),
      masked_(field.order == 2 || field.allowed || field.allowed_start || field.allowed_end) {
    transitions_ = Buffer(field.n_labels * width_);
    transitions_.zero();
    if (field.order == 2) jumps_ = Buffer(jump_size());
    exp_jumps_ = Buffer(jump_size());
    exp_transposed_ = Buffer(span_ * width_);
    for (Buffer* buffer : {&jumps_, &exp_jumps_, &exp_transposed_})
        if (buffer->size()) buffer->zero();
    make_places();
    if (masked_) make_masks();
}

void JumpTables::make_places() {
    const int64_t n = field_.n_labels;
    for (int64_t k = 0; k < field_.n_transition; ++k) {
        const int64_t code = field_.transition_codes ? field_.transition_codes[k] : k;
        transition_places_.push_back(code / n * width_ + code % n);
    }
    for (int64_t k = 0; k < field_.n_triple; ++k) {
        const int64_t code = field_.triple_codes ? field_.triple_codes[k] : k;
        triple_places_.push_back((code / (n * n) * width_ + code / n % n) * width_ + code % n);
    }
}

void JumpTables::make_masks() {
    masks_ = Buffer(3 * span_);
    masks_.zero();
    const int64_t n = field_.n_labels;
    double *first = masks_.data(), *inner = first + span_, *last = inner + span_;
    for (int64_t j = 0; j < n; ++j) {
        const double may_start = !field_.allowed_start || field_.allowed_start[j];
        const double may_end = !field_.allowed_end || field_.allowed_end[j];
        if (field_.order == 1) {
            first[j] = may_start, inner[j] = 1.0, last[j] = may_end;
            continue;
        }
        first[n * width_ + j] = may_start;
        for (int64_t i = 0; i < n; ++i) inner[i * width_ + j] = !field_.allowed || field_.allowed[i * n + j];
        for (int64_t i = 0; i <= n; ++i) last[i * width_ + j] = may_end;
    }
}

void JumpTables::describe(ChainWeights& view) const {
    view.n_labels = field_.n_labels;
    view.width = width_;
    view.order = field_.order;
    view.span = span_;
    view.transitions = transitions_.data();
    view.jumps = field_.order == 1 ? transitions_.data() : jumps_.data();
    view.exp_jumps = exp_jumps_.data();
    view.exp_jumps_transposed = exp_transposed_.data();
    view.shift = shift_;
    view.range = range_;
    view.first_mask = view.inner_mask = view.last_mask = nullptr;
    if (!masked_) return;
    view.first_mask = masks_.data();
    view.inner_mask = masks_.data() + span_;
    if (field_.allowed_end) view.last_mask = masks_.data() + 2 * span_;
}

// Whether the jump from a row of the table to a label exists and is allowed. In order 2 masks on states see to it.
bool JumpTables::may_jump(int64_t row, int64_t label) const {
    if (field_.order == 2) return row % width_ < field_.n_labels;
    return !field_.allowed || field_.allowed[row * field_.n_labels + label];
}

void JumpTables::set(const double* transition, const double* triple, double scale, bool direction) {
    const int64_t n = field_.n_labels;
    each_transition([&](int64_t at, int64_t k) { transitions_.data()[at] = scale * transition[k]; });
    if (field_.order == 2) each_jump([&](int64_t at, int64_t k) { jumps_.data()[at] = scale * triple[k]; });
    if (direction) return;
    double* log = field_.order == 1 ? transitions_.data() : jumps_.data();
    double low = std::numeric_limits<double>::infinity(), high = -low;
    const bool all = field_.order == 1 && !field_.allowed;
    for (int64_t r = 0; r < jump_rows_; ++r)
        for (int64_t j = 0; j < n; ++j)
            if (all || may_jump(r, j)) {
                low = std::min(low, log[r * width_ + j]);
                high = std::max(high, log[r * width_ + j]);
            }
    if (high < low) low = high = 0.0;  // nothing is allowed
    shift_ = high;
    range_ = high - low;
    kernels_.exponentiate(log, high, exp_jumps_.data(), jump_size());
    for (int64_t r = 0; r < jump_rows_; ++r)
        for (int64_t j = all ? n : 0; j < width_; ++j) {
            if (j < n && may_jump(r, j)) continue;
            exp_jumps_.data()[r * width_ + j] = 0.0;
            if (j < n && field_.order == 1) log[r * width_ + j] = -std::numeric_limits<double>::infinity();
        }
    transpose(exp_jumps_.data(), exp_transposed_.data());
}

void JumpTables::transpose(const double* table, double* transposed) const {
    const int64_t n = field_.n_labels;
    if (field_.order == 1) {
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < n; ++j) transposed[j * width_ + i] = table[i * width_ + j];
        return;
    }
    for (int64_t i = 0; i <= n; ++i)
        for (int64_t j = 0; j < n; ++j)
            for (int64_t k = 0; k < n; ++k)
                transposed[(i * width_ + k) * width_ + j] = table[(i * width_ + j) * width_ + k];
}

PreparedWeights::PreparedWeights(const FieldView& field, const ChainKernels& kernels, RowTable rows)
    : field_(field), rows_(std::move(rows)), jumps_(field, kernels) {
    const int64_t n = field.n_labels, width = padded(n);
    jumps_.describe(view_);
    view_.scale = 1.0;
    view_.pair_offsets = field.pair_offsets;
    view_.pair_codes = field.pair_codes;
    if (field.state_offsets) {
        view_.row_stride = width;
        view_.n_inside = rows_.size();
        packed_ = Buffer(view_.n_inside * width);
        single_ = Buffer(field.n_class + field.n_state);
    } else {
        view_.row_stride = n;
        view_.n_inside = std::clamp<int64_t>((field.size() - width) / n + 1, 0, field.n_attributes);
        if (field.size() < width) view_.n_inside = 0;
        packed_ = Buffer((field.n_attributes - view_.n_inside) * n + width);
    }
    packed_.zero();
}

void PreparedWeights::set(const double* w, int n_threads, bool direction) {
    const int64_t n = field_.n_labels, width = view_.width;
    if (field_.state_offsets) {
        std::copy(w + field_.class_at(), w + field_.size(), single_.data());
        run_threads(n_threads, [&](int thread) {
            // A copy on huge pages: its random reads cost a third of those from the caller's pages.
            const int64_t first = field_.n_state * thread / n_threads, last = field_.n_state * (thread + 1) / n_threads;
            std::copy(w + first, w + last, single_.data() + field_.n_class + first);
            const int64_t begin = rows_.size() * thread / n_threads, end = rows_.size() * (thread + 1) / n_threads;
            for (int64_t r = begin; r < end; ++r) {
                double* row = packed_.data() + r * width;
                std::fill(row, row + width, 0.0);
                rows_.for_each_weight(r, field_, [&](int64_t f, int32_t label) { row[label] += w[f]; });
            }
        });
        view_.rows = packed_.data();
        view_.tail = nullptr;
        view_.single = single_.data();
    } else {
        std::copy(w + view_.n_inside * n, w + field_.n_state, packed_.data());
        view_.rows = w;
        view_.tail = packed_.data();
        view_.single = w + field_.class_at();
    }
    view_.pair = w + field_.pair_at();
    jumps_.set(w + field_.transition_at(), w + field_.triple_at(), 1.0, direction);
    jumps_.describe(view_);
}

}  // namespace crfkit
