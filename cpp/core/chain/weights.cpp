#include "weights.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../support/parallel.hpp"

namespace crfkit {

namespace {

constexpr int64_t kFar = int64_t{1} << 24;    // bytes of weights that need prefetching
constexpr int64_t kBlock = int64_t{1} << 15;  // weights that a thread takes at a time

}  // namespace

template <class Real>
JumpTables<Real>::JumpTables(const FieldView& field, const TrainingKernels<Real>& kernels)
    : field_(field),
      kernels_(kernels),
      width_(padded<Real>(field.n_labels)),
      jump_rows_(field.order == 1 ? field.n_labels : (field.n_labels + 1) * width_),
      span_(field.order == 1 ? width_ : (field.n_labels + 1) * width_),
      masked_(field.order == 2 || field.allowed || field.allowed_start || field.allowed_end) {
    transitions_ = BufferOf<Real>(field.n_labels * width_);
    transitions_.zero();
    if (field.order == 2) jumps_ = BufferOf<Real>(jump_size());
    exp_jumps_ = BufferOf<Real>(jump_size());
    exp_transposed_ = BufferOf<Real>(span_ * width_);
    for (BufferOf<Real>* buffer : {&jumps_, &exp_jumps_, &exp_transposed_})
        if (buffer->size()) buffer->zero();
    make_places();
    if (masked_) make_masks();
}

template <class Real>
void JumpTables<Real>::make_places() {
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

template <class Real>
void JumpTables<Real>::make_masks() {
    masks_ = BufferOf<Real>(3 * span_);
    masks_.zero();
    const int64_t n = field_.n_labels;
    Real *first = masks_.data(), *inner = first + span_, *last = inner + span_;
    for (int64_t j = 0; j < n; ++j) {
        const Real may_start = !field_.allowed_start || field_.allowed_start[j];
        const Real may_end = !field_.allowed_end || field_.allowed_end[j];
        if (field_.order == 1) {
            first[j] = may_start, inner[j] = 1, last[j] = may_end;
            continue;
        }
        first[n * width_ + j] = may_start;
        for (int64_t i = 0; i < n; ++i) inner[i * width_ + j] = !field_.allowed || field_.allowed[i * n + j];
        for (int64_t i = 0; i <= n; ++i) last[i * width_ + j] = may_end;
    }
}

template <class Real>
void JumpTables<Real>::describe(ChainWeightsOf<Real>& view) const {
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
template <class Real>
bool JumpTables<Real>::may_jump(int64_t row, int64_t label) const {
    if (field_.order == 2) return row % width_ < field_.n_labels;
    return !field_.allowed || field_.allowed[row * field_.n_labels + label];
}

template <class Real>
template <class Given>
void JumpTables<Real>::set(const Given* transition, const Given* triple, double scale, bool direction) {
    each_transition([&](int64_t at, int64_t k) {
        transitions_.data()[at] = static_cast<Real>(scale * static_cast<double>(transition[k]));
    });
    if (field_.order == 2)
        each_jump([&](int64_t at, int64_t k) {
            jumps_.data()[at] = static_cast<Real>(scale * static_cast<double>(triple[k]));
        });
    if (direction) return;
    if (field_.order == 1)
        set_table(transitions_.data(), 1.0);
    else
        exponentiate();
}

template <class Real>
void JumpTables<Real>::set_table(const Real* table, double scale) {
    if (!field_.allowed) {
        double low = 0.0, high = 0.0;
        kernels_.jump_tables(table, scale, field_.n_labels, transitions_.data(), exp_jumps_.data(),
                             exp_transposed_.data(), &low, &high);
        shift_ = high;
        range_ = high - low;
        return;
    }
    const Real factor = static_cast<Real>(scale);
    for (int64_t i = 0; i < jump_size(); ++i) transitions_.data()[i] = factor * table[i];
    exponentiate();
}

// Fills the tables from the log-potentials where some jumps are not allowed, and in order 2.
template <class Real>
void JumpTables<Real>::exponentiate() {
    const int64_t n = field_.n_labels;
    Real* log = field_.order == 1 ? transitions_.data() : jumps_.data();
    Real low = std::numeric_limits<Real>::infinity(), high = -low;
    for (int64_t r = 0; r < jump_rows_; ++r)
        for (int64_t j = 0; j < n; ++j)
            if (may_jump(r, j)) {
                low = std::min(low, log[r * width_ + j]);
                high = std::max(high, log[r * width_ + j]);
            }
    if (high < low) low = high = 0;  // nothing is allowed
    shift_ = high;
    range_ = high - low;
    kernels_.exponentiate(log, high, exp_jumps_.data(), jump_size());
    for (int64_t r = 0; r < jump_rows_; ++r)
        for (int64_t j = 0; j < width_; ++j) {
            if (j < n && may_jump(r, j)) continue;
            exp_jumps_.data()[r * width_ + j] = 0;
            if (j < n && field_.order == 1) log[r * width_ + j] = -std::numeric_limits<Real>::infinity();
        }
    transpose(exp_jumps_.data(), exp_transposed_.data());
}

template <class Real>
void JumpTables<Real>::transpose(const Real* table, Real* transposed) const {
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

template <class Real>
PreparedWeights<Real>::PreparedWeights(const FieldView& field, const TrainingKernels<Real>& kernels, RowTable rows)
    : field_(field), rows_(std::move(rows)), jumps_(field, kernels) {
    const int64_t n = field.n_labels, width = padded<Real>(n);
    jumps_.describe(view_);
    view_.scale = 1.0;
    view_.pair_offsets = field.pair_offsets;
    view_.pair_codes = field.pair_codes;
    if (!kInPlace) pair_ = BufferOf<Real>(field.n_pair);
    if (field.state_offsets || !kInPlace) {
        view_.row_stride = width;
        view_.n_inside = field.state_offsets ? rows_.size() : field.n_attributes;
        packed_ = BufferOf<Real>(view_.n_inside * width);
        single_ = BufferOf<Real>(field.n_class + (field.state_offsets ? field.n_state : 0));
    } else {
        view_.row_stride = n;
        view_.n_inside = std::clamp<int64_t>((field.size() - width) / n + 1, 0, field.n_attributes);
        if (field.size() < width) view_.n_inside = 0;
        packed_ = BufferOf<Real>((field.n_attributes - view_.n_inside) * n + width);
    }
    packed_.zero();
    const int64_t numbers = view_.n_inside * view_.row_stride;
    view_.far = (numbers + field.n_state) * static_cast<int64_t>(sizeof(Real)) > kFar;
}

namespace {

template <class Real>
void convert(const double* first, const double* last, Real* out) {
    for (; first < last; ++first) *out++ = static_cast<Real>(*first);
}

// The largest size of a weight, NaN if one is not a number.
double largest_of(const double* first, const double* last) {
    double top = 0.0, bad = 0.0;
    for (; first < last; ++first) {
        const double x = std::abs(*first);
        top = x > top ? x : top;
        bad += x - x;  // NaN from infinities and NaN
    }
    return top + bad;
}

double largest_of(const std::vector<double>& found) { return largest_of(found.data(), found.data() + found.size()); }

}  // namespace

template <class Real>
void PreparedWeights<Real>::set_observed(const double* w, int n_threads) {
    const int64_t width = view_.width, groups = rows_.n_groups;
    convert(w + field_.class_at(), w + field_.size(), single_.data());
    // A copy on huge pages: its random reads cost a third of those from the caller's pages.
    share_range(n_threads, field_.n_state, kBlock, [&](int64_t begin, int64_t end) {
        convert(w + begin, w + end, single_.data() + field_.n_class + begin);
        if (!kInPlace) largest_[static_cast<size_t>(begin / kBlock)] = largest_of(w + begin, w + end);
    });
    const auto row = [&](int64_t r) { return packed_.data() + r * width; };
    for (int64_t r = groups; r < rows_.size(); ++r) {
        std::fill(row(r), row(r + 1), Real{});
        rows_.for_each_weight(r, field_, [&](int64_t f, int32_t label) { row(r)[label] = static_cast<Real>(w[f]); });
    }
    for (int64_t g = 0; g < groups; ++g) {
        std::fill(row(g), row(g + 1), Real{});
        rows_.for_each_member(g, [&](int64_t r) {
            for (int64_t j = 0; j < width; ++j) row(g)[j] += row(r)[j];
        });
    }
    view_.rows = packed_.data();
    view_.tail = nullptr;
    view_.single = single_.data();
}

template <class Real>
void PreparedWeights<Real>::set_full(const double* w, int n_threads) {
    const int64_t n = field_.n_labels, width = view_.width;
    if constexpr (kInPlace) {
        std::copy(w + view_.n_inside * n, w + field_.n_state, packed_.data());
        view_.rows = w;
        view_.tail = packed_.data();
        view_.single = w + field_.class_at();
    } else {
        const int64_t block = std::max<int64_t>(kBlock / n, 1);  // attributes
        largest_.resize(static_cast<size_t>(field_.n_attributes / block + 2), 0.0);
        share_range(n_threads, field_.n_attributes, block, [&](int64_t begin, int64_t end) {
            largest_[static_cast<size_t>(begin / block)] = largest_of(w + begin * n, w + end * n);
            for (int64_t a = begin; a < end; ++a) convert(w + a * n, w + (a + 1) * n, packed_.data() + a * width);
        });
        convert(w + field_.class_at(), w + field_.size(), single_.data());
        view_.rows = packed_.data();
        view_.tail = nullptr;
        view_.single = single_.data();
    }
}

template <class Real>
void PreparedWeights<Real>::set(const double* w, int n_threads, bool direction) {
    largest_.assign(static_cast<size_t>(field_.n_state / kBlock + 2), 0.0);
    if (field_.state_offsets)
        set_observed(w, n_threads);
    else
        set_full(w, n_threads);
    if constexpr (kInPlace) {
        view_.pair = w + field_.pair_at();
    } else {
        largest_.back() = largest_of(w + field_.n_state, w + field_.size());
        convert(w + field_.pair_at(), w + field_.pair_at() + field_.n_pair, pair_.data());
        view_.pair = pair_.data();
    }
    jumps_.set(w + field_.transition_at(), w + field_.triple_at(), 1.0, direction);
    jumps_.describe(view_);
}

template <class Real>
double PreparedWeights<Real>::largest() const {
    return largest_of(largest_);
}

template class JumpTables<double>;
template class JumpTables<float>;
template void JumpTables<double>::set(const double*, const double*, double, bool);
template void JumpTables<float>::set(const double*, const double*, double, bool);
template void JumpTables<float>::set(const float*, const float*, double, bool);
template class PreparedWeights<double>;
template class PreparedWeights<float>;

}  // namespace crfkit
