// What a chain with its weights says about sequences, over threads: marginals, best labellings, phrases, entropies,
// samples.
#pragma once

#include <vector>

#include "engine.hpp"
#include "nbest.hpp"

namespace crfkit {

void chain_marginals(const SequenceView& data, const FieldView& field, const ChainWeights& w,
                     const ChainKernels& kernels, int n_threads, double* log_z, double* node, double* edge,
                     const Poll& poll);
void chain_viterbi(const SequenceView& data, const FieldView& field, const ChainWeights& w, const ChainKernels& kernels,
                   int n_threads, int32_t* labels, double* scores, const Poll& poll);

// The `most` best labellings of every sequence, best first: their scores [counts[n] each] and labels; whether the
// search was complete.
struct ChainLabellings {
    std::vector<int64_t> counts;
    std::vector<double> scores;
    std::vector<int32_t> labels;
    std::vector<uint8_t> exact;
};
// With a rule, only labellings that keep to it.
ChainLabellings chain_nbest(const SequenceView& data, const FieldView& field, const ChainWeights& w,
                            const ChainKernels& kernels, int n_threads, int64_t most, const OneRunEach* rule,
                            const Poll& poll);

// Fills in the probabilities of spans[offsets[n]] … spans[offsets[n + 1] - 1] of each sequence n, and log Z.
void chain_spans(const SequenceView& data, const FieldView& field, const ChainWeights& w, const ChainKernels& kernels,
                 int n_threads, const ChainPhrases& rules, const int64_t* offsets, ChainSpan* spans, double* log_z,
                 const Poll& poll);

// The phrases of the best labelling of each sequence with their probabilities, and log Z.
std::vector<std::vector<ChainSpan>> chain_best_spans(const SequenceView& data, const FieldView& field,
                                                     const ChainWeights& w, const ChainKernels& kernels, int n_threads,
                                                     const ChainPhrases& rules, double* log_z, const Poll& poll);

void chain_entropies(const SequenceView& data, const FieldView& field, const ChainWeights& w,
                     const ChainKernels& kernels, int n_threads, double* log_z, double* entropy, const Poll& poll);

// `count` labellings of each sequence n at labels[count * starts[n]] …, the same for a seed whatever the threads.
void chain_samples(const SequenceView& data, const FieldView& field, const ChainWeights& w, const ChainKernels& kernels,
                   int n_threads, int64_t count, uint64_t seed, double* log_z, int32_t* labels, const Poll& poll);

}  // namespace crfkit
