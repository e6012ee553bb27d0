#include "decoding.hpp"

#include <algorithm>

#include "../support/counter_random.hpp"
#include "../support/parallel.hpp"

namespace crfkit {

namespace {

constexpr double kWorthAThread = 50'000;  // of what `cost` counts: less is done before another thread has begun
constexpr int64_t kBlock = 1024;          // positions that are planned together, so that the plan stays in the cache

// Sequences first … last of the data, as data of their own; `starts` keeps where they begin.
SequenceView slice(const SequenceView& data, int64_t n_labels, int64_t first, int64_t last,
                   std::vector<int64_t>& starts) {
    const int64_t begin = data.starts[first];
    starts.clear();
    for (int64_t n = first; n <= last; ++n) starts.push_back(data.starts[n] - begin);
    SequenceView part = data;
    part.n_sequences = last - first;
    part.n_positions = starts.back();
    part.starts = starts.data();
    part.offsets += begin;
    if (part.pair_offsets) part.pair_offsets += begin;
    part.labels = nullptr;
    part.weights = nullptr;
    part.targets = nullptr;
    part.token_weights = nullptr;
    if (part.allowed) part.allowed += begin * n_labels;
    return part;
}

// Calls work(plan, range, first sequence, first position) for blocks of the data, each planned by the thread that
// needs it.
template <class Work>
void over_data(const SequenceView& data, FieldView field, const ChainKernels& kernels, int n_threads, const Poll& poll,
               const Work& work) {
    check_data(data, field, false);
    field.n_wide = count_wide(field);
    const double square = 3.0 * static_cast<double>(field.n_labels);
    const auto cost = [&](int64_t n) {  // of the sequences before n
        const int64_t t = data.starts[n];
        return static_cast<double>(data.offsets[t]) + square * static_cast<double>(t);
    };
    const auto worth = static_cast<int>(std::min(cost(data.n_sequences) / kWorthAThread, 1e6));
    n_threads = usable_threads(std::min(n_threads, worth), data.n_sequences);
    const auto bounds = split_by_cost(data.n_sequences, n_threads, cost);
    Interrupt interrupt(poll);
    run_threads(n_threads, [&](int thread) {
        const int64_t end = bounds[static_cast<size_t>(thread) + 1];
        std::vector<int64_t> starts;
        Buffer scratch;
        for (int64_t first = bounds[static_cast<size_t>(thread)], last = first; first < end; first = last) {
            do ++last;
            while (last < end && data.starts[last + 1] - data.starts[first] <= kBlock);
            const PlannedData planned(slice(data, field.n_labels, first, last, starts), field, false, false);
            const ChainPlan& plan = planned.view();
            scratch.reserve(kernels.scratch_size(longest_sequence(plan, 0, plan.n_sequences), field.n_labels,
                                                 field.order, plan.pair_offsets != nullptr, false));
            work(plan, ChainRange{thread, 0, plan.n_sequences, scratch.data(), check_interrupt, &interrupt}, first,
                 data.starts[first]);
        }
    });
}

// The phrases of a labelling.
std::vector<ChainSpan> phrases_of(const int32_t* y, int64_t length, int64_t n_labels, const ChainPhrases& rules) {
    std::vector<ChainSpan> found;
    for (int64_t t = 0; t < length; ++t) {
        const int32_t type = rules.types[y[t]];
        if (type < 0) continue;
        if (t > 0 && rules.types[y[t - 1]] >= 0 && rules.goes_on[y[t - 1] * n_labels + y[t]])
            found.back().end = t + 1;
        else
            found.push_back({t, t + 1, type, 0.0});
    }
    return found;
}

}  // namespace

void chain_marginals(const SequenceView& data, const FieldView& field, const ChainWeights& w,
                     const ChainKernels& kernels, int n_threads, double* log_z, double* node, double* edge,
                     const Poll& poll) {
    const int64_t n_labels = field.n_labels;
    over_data(data, field, kernels, n_threads, poll,
              [&](const ChainPlan& plan, const ChainRange& range, int64_t first, int64_t position) {
                  kernels.marginals(plan, w, log_z + first, node ? node + position * n_labels : nullptr,
                                    edge ? edge + position * n_labels * n_labels : nullptr, range);
              });
}

void chain_viterbi(const SequenceView& data, const FieldView& field, const ChainWeights& w, const ChainKernels& kernels,
                   int n_threads, int32_t* labels, double* scores, const Poll& poll) {
    over_data(data, field, kernels, n_threads, poll,
              [&](const ChainPlan& plan, const ChainRange& range, int64_t first, int64_t position) {
                  kernels.viterbi(plan, w, labels + position, scores + first, range);
              });
}

ChainLabellings chain_nbest(const SequenceView& data, const FieldView& field, const ChainWeights& w,
                            const ChainKernels& kernels, int n_threads, int64_t most, const OneRunEach* rule,
                            const Poll& poll) {
    std::vector<std::vector<Labelling>> found(static_cast<size_t>(data.n_sequences));
    ChainLabellings all;
    all.exact.assign(found.size(), 1);
    over_data(data, field, kernels, n_threads, poll,
              [&](const ChainPlan& plan, const ChainRange& range, int64_t first, int64_t) {
                  const auto check = [&] { range.check(range.check_state, range.thread); };
                  for (int64_t n = 0; n < plan.n_sequences; ++n) {
                      const ChainScores scores = kernels.best_scores(plan, w, n, range);
                      const auto at = static_cast<size_t>(first + n);
                      if (!rule) {
                          found[at] = best_labellings(scores, w, most, check);
                          continue;
                      }
                      bool exact = true;
                      found[at] = best_labellings(scores, w, most, *rule, exact, check);
                      all.exact[at] = exact;
                  }
              });
    for (const auto& list : found) {
        all.counts.push_back(static_cast<int64_t>(list.size()));
        for (const Labelling& labelling : list) {
            all.scores.push_back(labelling.score);
            all.labels.insert(all.labels.end(), labelling.labels.begin(), labelling.labels.end());
        }
    }
    return all;
}

void chain_spans(const SequenceView& data, const FieldView& field, const ChainWeights& w, const ChainKernels& kernels,
                 int n_threads, const ChainPhrases& rules, const int64_t* offsets, ChainSpan* spans, double* log_z,
                 const Poll& poll) {
    over_data(data, field, kernels, n_threads, poll,
              [&](const ChainPlan& plan, const ChainRange& range, int64_t first, int64_t) {
                  for (int64_t n = 0; n < plan.n_sequences; ++n) {
                      const int64_t at = offsets[first + n];
                      log_z[first + n] =
                          kernels.span_probabilities(plan, w, rules, n, spans + at, offsets[first + n + 1] - at, range);
                  }
              });
}

std::vector<std::vector<ChainSpan>> chain_best_spans(const SequenceView& data, const FieldView& field,
                                                     const ChainWeights& w, const ChainKernels& kernels, int n_threads,
                                                     const ChainPhrases& rules, double* log_z, const Poll& poll) {
    std::vector<std::vector<ChainSpan>> found(static_cast<size_t>(data.n_sequences));
    over_data(data, field, kernels, n_threads, poll,
              [&](const ChainPlan& plan, const ChainRange& range, int64_t first, int64_t) {
                  std::vector<int32_t> labels(static_cast<size_t>(plan.n_positions));
                  std::vector<double> scores(static_cast<size_t>(plan.n_sequences));
                  kernels.viterbi(plan, w, labels.data(), scores.data(), range);
                  for (int64_t n = 0; n < plan.n_sequences; ++n) {
                      auto& spans = found[static_cast<size_t>(first + n)];
                      spans = phrases_of(labels.data() + plan.starts[n], plan.starts[n + 1] - plan.starts[n],
                                         field.n_labels, rules);
                      log_z[first + n] = scores[static_cast<size_t>(n)];  // -inf where no labelling is allowed
                      if (!spans.empty())
                          log_z[first + n] = kernels.span_probabilities(plan, w, rules, n, spans.data(),
                                                                        static_cast<int64_t>(spans.size()), range);
                  }
              });
    return found;
}

void chain_entropies(const SequenceView& data, const FieldView& field, const ChainWeights& w,
                     const ChainKernels& kernels, int n_threads, double* log_z, double* entropy, const Poll& poll) {
    over_data(data, field, kernels, n_threads, poll,
              [&](const ChainPlan& plan, const ChainRange& range, int64_t first, int64_t) {
                  kernels.entropies(plan, w, log_z + first, entropy + first, range);
              });
}

void chain_samples(const SequenceView& data, const FieldView& field, const ChainWeights& w, const ChainKernels& kernels,
                   int n_threads, int64_t count, uint64_t seed, double* log_z, int32_t* labels, const Poll& poll) {
    over_data(data, field, kernels, n_threads, poll,
              [&](const ChainPlan& plan, const ChainRange& range, int64_t first, int64_t position) {
                  std::vector<double> uniforms;
                  for (int64_t n = 0; n < plan.n_sequences; ++n) {
                      const CounterRandom random(seed, static_cast<uint64_t>(first + n));
                      uniforms.resize(static_cast<size_t>(count * (plan.starts[n + 1] - plan.starts[n])));
                      for (size_t k = 0; k < uniforms.size(); ++k) uniforms[k] = random(k);
                      log_z[first + n] = kernels.sample(plan, w, n, count, uniforms.data(),
                                                        labels + count * (position + plan.starts[n]), range);
                  }
              });
}

}  // namespace crfkit
