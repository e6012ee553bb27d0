#include "engine.hpp"

#include <algorithm>

#include "../support/parallel.hpp"

namespace crfkit {

int64_t longest_sequence(const ChainPlan& data, int64_t begin, int64_t end) {
    int64_t longest = 1;
    for (int64_t n = begin; n < end; ++n) longest = std::max(longest, data.starts[n + 1] - data.starts[n]);
    return longest;
}

void check_interrupt(void* interrupt, int thread) { static_cast<Interrupt*>(interrupt)->check(thread); }

int usable_threads(int n_threads, int64_t n_sequences) {
    return static_cast<int>(std::clamp<int64_t>(n_sequences, 1, std::max(n_threads, 1)));
}

namespace {

// Work of a position: its attributes' rows plus three products of a row with an L x L matrix.
std::vector<int64_t> split_sequences(const ChainPlan& data, int64_t n_labels, int n_threads) {
    const double square = 3.0 * static_cast<double>(n_labels);
    return split_by_cost(data.n_sequences, n_threads, [&](int64_t n) {
        const int64_t t = data.starts[n];
        const int64_t entries = data.entry_offsets ? data.entry_offsets[t] : 0;
        return static_cast<double>(data.row_offsets[t] + entries) + square * static_cast<double>(t);
    });
}

}  // namespace

ChainObjective::ChainObjective(const SequenceView& data, const FieldView& field, const ChainKernels& kernels,
                               int n_threads, const double* cost, bool hinge)
    : field_(field),
      kernels_(kernels),
      data_(data, field, true, true, cost),
      plan_(data_.view()),
      weights_(field, kernels, data_.rows()),
      hinge_(hinge) {
    const int64_t n = field.n_labels, width = padded(n);
    n_threads = usable_threads(n_threads, data.n_sequences);
    bounds_ = split_sequences(plan_, n, n_threads);

    std::vector<int64_t> counts(static_cast<size_t>(field.n_attributes), 0);
    for (int64_t k = 0; k < data.offsets[data.n_positions]; ++k) ++counts[static_cast<size_t>(data.attributes[k])];
    int64_t once = field.n_attributes;
    while (once > 0 && counts[static_cast<size_t>(once) - 1] == 1) --once;
    once_row_ = field.state_offsets ? data_.rows().size() : once;
    // Weights of classes and of wide attributes get several terms, or are reached through rows: none is stored
    // directly.
    once_weight_ = field.n_class;
    if (field.state_offsets) once_weight_ += field.state_offsets[std::max(once, count_wide(field))];

    const ChainWeights& w = weights_.view();
    for (int k = 0; k < n_threads; ++k) {
        Thread thread;
        thread.rows = Buffer(once_row_ * w.row_stride + w.width);
        thread.single = Buffer(once_weight_);
        thread.outer = Buffer(weights_.jumps().jump_size());
        thread.jumps = Buffer(weights_.jumps().jump_size());
        thread.transitions = Buffer(field.order == 2 ? n * width : 0);
        thread.pair = Buffer(field.n_pair);
        threads_.push_back(std::move(thread));
    }
}

template <class Work>
void ChainObjective::accumulate(double* out, bool tangent, const Poll& poll, const Work& work) {
    Interrupt interrupt(poll);
    run_threads(static_cast<int>(threads_.size()), [&](int k) {
        Thread& thread = threads_[static_cast<size_t>(k)];
        for (Buffer* buffer :
             {&thread.rows, &thread.single, &thread.outer, &thread.jumps, &thread.transitions, &thread.pair})
            buffer->zero();
        const int64_t begin = bounds_[static_cast<size_t>(k)], end = bounds_[static_cast<size_t>(k) + 1];
        thread.scratch.reserve(kernels_.scratch_size(longest_sequence(plan_, begin, end), field_.n_labels, field_.order,
                                                     plan_.pair_offsets != nullptr, tangent || is_weak(plan_)));
        const ChainGradient gradient{thread.rows.data(),
                                     thread.single.data(),
                                     out,
                                     out - field_.n_class,
                                     once_row_,
                                     once_weight_,
                                     thread.outer.data(),
                                     thread.jumps.data(),
                                     thread.transitions.data(),
                                     thread.pair.data(),
                                     nullptr,
                                     0};
        work(thread, gradient, ChainRange{k, begin, end, thread.scratch.data(), check_interrupt, &interrupt});
        distribute(thread);
    });
    add_up(out);
}

double ChainObjective::value_gradient(const double* w, double* gradient, bool keep, const Poll& poll) {
    weights_.set(w, static_cast<int>(threads_.size()));
    kept_ = false;
    if (hinge_) std::fill(gradient, gradient + field_.size(), 0.0);  // positions without a mistake are not visited
    ChainCache cache{nullptr, nullptr};
    if (keep) {
        cache_.reserve(cache_bytes() / static_cast<int64_t>(sizeof(double)));
        filled_.resize(static_cast<size_t>(plan_.n_sequences));
        cache = {cache_.data(), filled_.data()};
    }
    accumulate(gradient, false, poll, [&](Thread& thread, const ChainGradient& target, const ChainRange& range) {
        thread.value = hinge_ ? kernels_.hinge(plan_, weights_.view(), target, range)
                              : kernels_.value_gradient(plan_, weights_.view(), target, keep ? &cache : nullptr, range);
    });
    if (keep) {
        kept_outer_.reserve(weights_.jumps().jump_size());
        for (int64_t i = 0; i < kept_outer_.size(); ++i) kept_outer_.data()[i] = total(&Thread::outer, i);
        kept_ = true;
    }
    double value = 0.0;
    for (const Thread& thread : threads_) value += thread.value;
    return value;
}

int64_t ChainObjective::cache_bytes() const {
    return 3 * plan_.n_positions * weights_.view().span * static_cast<int64_t>(sizeof(double));
}

void ChainObjective::hessian_product(const double* v, double* product, const Poll& poll) {
    const JumpTables& jumps = weights_.jumps();
    const int64_t size = jumps.jump_size();
    if (!direction_) {
        direction_ = std::make_unique<PreparedWeights>(field_, kernels_, data_.rows());
        tilted_ = Buffer(size);
        tilted_transposed_ = Buffer(weights_.view().span * weights_.view().width);
        tilted_transposed_.zero();
    }
    direction_->set(v, static_cast<int>(threads_.size()), true);
    for (int64_t i = 0; i < size; ++i) tilted_.data()[i] = weights_.view().exp_jumps[i] * direction_->view().jumps[i];
    jumps.transpose(tilted_.data(), tilted_transposed_.data());
    const ChainTangent tangent{&direction_->view(), tilted_.data(), tilted_transposed_.data()};
    const ChainCache cache{cache_.data(), filled_.data()};
    accumulate(product, true, poll, [&](Thread& thread, const ChainGradient& target, const ChainRange& range) {
        thread.point_outer.reserve(size);
        thread.point_outer.zero();
        kernels_.hessian_product(plan_, weights_.view(), tangent, target, thread.point_outer.data(),
                                 kept_ ? &cache : nullptr, range);
    });
    double* target = product + jumps.jump_at();
    jumps.each_jump([&](int64_t at, int64_t k) {
        const double kept = kept_ ? kept_outer_.data()[at] : 0.0;
        target[k] += tilted_.data()[at] * (kept + total(&Thread::point_outer, at));
    });
}

void ChainObjective::hessian_diagonal(const double* w, double* diagonal, const Poll& poll) {
    weights_.set(w, static_cast<int>(threads_.size()));
    kept_ = false;
    const ChainPlan squared = data_.squared();
    const JumpTables& jumps = weights_.jumps();
    accumulate(diagonal, false, poll, [&](Thread& thread, const ChainGradient& target, const ChainRange& range) {
        thread.point_outer.reserve(jumps.jump_size());
        thread.point_outer.zero();
        kernels_.hessian_diagonal(plan_, squared, weights_.view(), target, thread.point_outer.data(), range);
    });
    double* target = diagonal + jumps.jump_at();
    jumps.each_jump([&](int64_t at, int64_t k) {
        const double e = weights_.view().exp_jumps[at];
        target[k] = std::max(0.0, target[k] - e * e * total(&Thread::point_outer, at));
    });
}

// Adds the gradient of each row of the observed set to the weights that it scores.
void ChainObjective::distribute(Thread& thread) const {
    const RowTable& rows = data_.rows();
    double* single = thread.single.data() + field_.n_class;
    for (int64_t r = 0; r < rows.size(); ++r) {
        const double* row = thread.rows.data() + r * weights_.view().width;
        rows.for_each_weight(r, field_, [&](int64_t f, int32_t label) { single[f] += row[label]; });
    }
}

double ChainObjective::total(Buffer Thread::* part, int64_t i) const {
    double sum = (threads_[0].*part).data()[i];
    for (size_t k = 1; k < threads_.size(); ++k) sum += (threads_[k].*part).data()[i];
    return sum;
}

// gradient = sum of the threads' parts, in thread order.
void ChainObjective::add_up(double* gradient) {
    const JumpTables& jumps = weights_.jumps();
    const int64_t n_class = field_.n_class;
    const int n_threads = static_cast<int>(threads_.size());
    run_threads(n_threads, [&](int thread) {
        const auto share = [&](int64_t size, double* out, Buffer Thread::* part, int64_t from) {
            for (int64_t i = size * thread / n_threads; i < size * (thread + 1) / n_threads; ++i)
                out[i] = total(part, from + i);
        };
        if (field_.state_offsets)
            share(once_weight_ - n_class, gradient, &Thread::single, n_class);
        else
            share(once_row_ * field_.n_labels, gradient, &Thread::rows, 0);
        share(n_class, gradient + field_.class_at(), &Thread::single, 0);
        share(field_.n_pair, gradient + field_.pair_at(), &Thread::pair, 0);
    });
    double* target = gradient + jumps.jump_at();
    jumps.each_jump([&](int64_t at, int64_t k) {
        target[k] = total(&Thread::outer, at) * weights_.view().exp_jumps[at] + total(&Thread::jumps, at);
    });
    if (field_.order == 2)
        jumps.each_transition(
            [&](int64_t at, int64_t k) { gradient[field_.transition_at() + k] = total(&Thread::transitions, at); });
}

}  // namespace crfkit
