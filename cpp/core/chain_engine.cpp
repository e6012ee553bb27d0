#include "chain_engine.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "parallel.hpp"

namespace crfkit {

PreparedWeights::PreparedWeights(const FieldView& field, const ChainKernels& kernels, RowTable rows)
    : field_(field), kernels_(kernels), rows_(std::move(rows)) {
    const int64_t n = field.n_labels, width = padded(n), square = n * width;
    view_.n_labels = n;
    view_.width = width;
    view_.pair_offsets = field.pair_offsets;
    view_.pair_codes = field.pair_codes;
    if (field.state_offsets) {
        view_.row_stride = width;
        view_.n_inside = rows_.size();
        packed_ = Buffer(view_.n_inside * width);
        single_ = Buffer(field.n_state);
    } else {
        view_.row_stride = n;
        view_.n_inside = std::clamp<int64_t>((field.size() - width) / n + 1, 0, field.n_attributes);
        if (field.size() < width) view_.n_inside = 0;
        packed_ = Buffer((field.n_attributes - view_.n_inside) * n + width);
    }
    packed_.zero();
    transitions_ = Buffer(3 * square);
    transitions_.zero();
    view_.transitions = transitions_.data();
    view_.exp_transitions = view_.transitions + square;
    view_.exp_transposed = view_.transitions + 2 * square;
}

void PreparedWeights::set(const double* w, int n_threads) {
    const int64_t n = field_.n_labels, width = view_.width, square = n * width;
    if (field_.state_offsets) {
        run_threads(n_threads, [&](int thread) {
            // A copy on huge pages: its random reads cost a third of those from the caller's pages.
            const int64_t first = field_.n_state * thread / n_threads, last = field_.n_state * (thread + 1) / n_threads;
            std::copy(w + first, w + last, single_.data() + first);
            const int64_t begin = rows_.size() * thread / n_threads, end = rows_.size() * (thread + 1) / n_threads;
            for (int64_t r = begin; r < end; ++r) {
                double* row = packed_.data() + r * width;
                std::fill(row, row + width, 0.0);
                rows_.for_each_weight(r, field_, [&](int64_t f, int32_t label) { row[label] += w[f]; });
            }
        });
        view_.rows = packed_.data();
        view_.tail = nullptr;
    } else {
        std::copy(w + view_.n_inside * n, w + field_.n_state, packed_.data());
        view_.rows = w;
        view_.tail = packed_.data();
    }
    view_.single = single_.data();
    view_.pair = w + field_.n_state + field_.n_transition;

    double *direct = transitions_.data(), *e = direct + square, *e_transposed = direct + 2 * square;
    const double* transition = w + field_.n_state;
    for (int64_t k = 0; k < field_.n_transition; ++k) {
        const int64_t code = field_.transition_codes ? field_.transition_codes[k] : k;
        direct[code / n * width + code % n] = transition[k];
    }
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) {
            low = std::min(low, direct[i * width + j]);
            high = std::max(high, direct[i * width + j]);
        }
    view_.shift = high;
    view_.range = high - low;
    kernels_.exponentiate(direct, high, e, square);
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) e_transposed[j * width + i] = e[i * width + j];
        for (int64_t j = n; j < width; ++j) e[i * width + j] = 0.0;
    }
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

int usable_threads(int n_threads, int64_t n_sequences) {
    return static_cast<int>(std::clamp<int64_t>(n_sequences, 1, std::max(n_threads, 1)));
}

int64_t longest_sequence(const ChainPlan& data, int64_t begin, int64_t end) {
    int64_t longest = 1;
    for (int64_t n = begin; n < end; ++n) longest = std::max(longest, data.starts[n + 1] - data.starts[n]);
    return longest;
}

void check_interrupt(void* state, int thread) { static_cast<Interrupt*>(state)->check(thread); }

// Runs work(ChainRange) on the threads' shares of the data.
template <class Work>
void over_data(const ChainPlan& data, const FieldView& field, const ChainKernels& kernels, int n_threads,
               const Poll& poll, const Work& work) {
    n_threads = usable_threads(n_threads, data.n_sequences);
    const auto bounds = split_sequences(data, field.n_labels, n_threads);
    Interrupt interrupt(poll);
    run_threads(n_threads, [&](int thread) {
        const int64_t begin = bounds[static_cast<size_t>(thread)], end = bounds[static_cast<size_t>(thread) + 1];
        Buffer scratch(
            kernels.scratch_size(longest_sequence(data, begin, end), field.n_labels, data.pair_offsets != nullptr));
        work(ChainRange{thread, begin, end, scratch.data(), check_interrupt, &interrupt});
    });
}

}  // namespace

ChainObjective::ChainObjective(const SequenceView& data, const FieldView& field, const ChainKernels& kernels,
                               int n_threads)
    : field_(field), kernels_(kernels), data_(data, field, true, true), weights_(field, kernels, data_.rows()) {
    n_threads = usable_threads(n_threads, data.n_sequences);
    bounds_ = split_sequences(data_.view(), field.n_labels, n_threads);

    std::vector<int64_t> counts(static_cast<size_t>(field.n_attributes), 0);
    for (int64_t k = 0; k < data.offsets[data.n_positions]; ++k) ++counts[static_cast<size_t>(data.attributes[k])];
    int64_t once = field.n_attributes;
    while (once > 0 && counts[static_cast<size_t>(once) - 1] == 1) --once;
    once_row_ = field.state_offsets ? data_.rows().size() : once;
    // The weights of wide attributes are reached through rows, so none of them is stored directly.
    once_weight_ = field.state_offsets ? field.state_offsets[std::max(once, count_wide(field))] : 0;

    const ChainWeights& w = weights_.view();
    for (int k = 0; k < n_threads; ++k) {
        Thread thread;
        thread.rows = Buffer(once_row_ * w.row_stride + w.width);
        thread.single = Buffer(once_weight_);
        thread.outer = Buffer(field.n_labels * w.width);
        thread.transitions = Buffer(field.n_labels * w.width);
        thread.pair = Buffer(field.n_pair);
        const int64_t longest =
            longest_sequence(data_.view(), bounds_[static_cast<size_t>(k)], bounds_[static_cast<size_t>(k) + 1]);
        thread.scratch = Buffer(kernels.scratch_size(longest, field.n_labels, data.pair_offsets != nullptr));
        threads_.push_back(std::move(thread));
    }
}

double ChainObjective::value_gradient(const double* w, double* gradient, const Poll& poll) {
    weights_.set(w, static_cast<int>(threads_.size()));
    Interrupt interrupt(poll);
    run_threads(static_cast<int>(threads_.size()), [&](int k) {
        Thread& thread = threads_[static_cast<size_t>(k)];
        for (Buffer* buffer : {&thread.rows, &thread.single, &thread.outer, &thread.transitions, &thread.pair})
            buffer->zero();
        const ChainGradient target{
            thread.rows.data(),  thread.single.data(),      gradient,          once_row_, once_weight_,
            thread.outer.data(), thread.transitions.data(), thread.pair.data()};
        thread.value = kernels_.value_gradient(data_.view(), weights_.view(), target,
                                               {k, bounds_[static_cast<size_t>(k)], bounds_[static_cast<size_t>(k) + 1],
                                                thread.scratch.data(), check_interrupt, &interrupt});
        distribute(thread);
    });
    add_up(gradient);
    double value = 0.0;
    for (const Thread& thread : threads_) value += thread.value;
    return value;
}

// Adds the gradient of each row of the observed set to the weights that it scores.
void ChainObjective::distribute(Thread& thread) const {
    const RowTable& rows = data_.rows();
    for (int64_t r = 0; r < rows.size(); ++r) {
        const double* row = thread.rows.data() + r * weights_.view().width;
        rows.for_each_weight(r, field_, [&](int64_t f, int32_t label) { thread.single.data()[f] += row[label]; });
    }
}

// gradient = sum of the threads' parts, in thread order.
void ChainObjective::add_up(double* gradient) {
    const ChainWeights& w = weights_.view();
    const int64_t n = field_.n_labels;
    const int n_threads = static_cast<int>(threads_.size());
    const auto total = [&](Buffer Thread::* part, int64_t i) {
        double sum = (threads_[0].*part).data()[i];
        for (size_t k = 1; k < threads_.size(); ++k) sum += (threads_[k].*part).data()[i];
        return sum;
    };
    run_threads(n_threads, [&](int thread) {
        const auto share = [&](int64_t size, const auto& f) {
            for (int64_t i = size * thread / n_threads; i < size * (thread + 1) / n_threads; ++i) f(i);
        };
        if (field_.state_offsets)
            share(once_weight_, [&](int64_t f) { gradient[f] = total(&Thread::single, f); });
        else
            share(once_row_ * n, [&](int64_t f) { gradient[f] = total(&Thread::rows, f); });
        double* pair = gradient + field_.n_state + field_.n_transition;
        share(field_.n_pair, [&](int64_t i) { pair[i] = total(&Thread::pair, i); });
    });
    for (int64_t k = 0; k < field_.n_transition; ++k) {
        const int64_t code = field_.transition_codes ? field_.transition_codes[k] : k;
        const int64_t at = code / n * w.width + code % n;
        gradient[field_.n_state + k] =
            total(&Thread::outer, at) * w.exp_transitions[at] + total(&Thread::transitions, at);
    }
}

void chain_marginals(const SequenceView& data, const FieldView& field, const ChainWeights& w,
                     const ChainKernels& kernels, int n_threads, double* log_z, double* node, double* edge,
                     const Poll& poll) {
    const PlannedData planned(data, field, false, false);
    over_data(planned.view(), field, kernels, n_threads, poll,
              [&](const ChainRange& range) { kernels.marginals(planned.view(), w, log_z, node, edge, range); });
}

void chain_viterbi(const SequenceView& data, const FieldView& field, const ChainWeights& w, const ChainKernels& kernels,
                   int n_threads, int32_t* labels, double* scores, const Poll& poll) {
    const PlannedData planned(data, field, false, false);
    over_data(planned.view(), field, kernels, n_threads, poll,
              [&](const ChainRange& range) { kernels.viterbi(planned.view(), w, labels, scores, range); });
}

}  // namespace crfkit
