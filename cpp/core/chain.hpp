// Linear chains: the views that the kernels work on and the table of kernels for one instruction set.
//
// A label row has L entries, padded to P = the next multiple of 8 so that whole SIMD vectors cover
// it. Weight rows in the caller's vector are not padded: a vector load may reach into the row behind,
// and the lanes past L are masked (scores) or add zero (gradients).
//
// Kernel files are compiled once per instruction set, so this header holds plain structs only:
// an inline function of the library compiled for AVX-512 must not be picked by the linker.
#pragma once

#include <cstdint>

namespace crfkit {

constexpr int64_t kPad = 8;
static inline int64_t padded(int64_t n) { return (n + kPad - 1) / kPad * kPad; }

// The data as the kernels read them: per position, the label rows and the single weights that its
// attributes score with. Attributes 0 … n_rows of the field have rows; an occurrence of another one is
// written out as its (weight, label) entries, so that nothing but the weights is read at random.
struct ChainPlan {
    int64_t n_sequences, n_positions;
    const int64_t* starts;          // [n_sequences + 1]
    const int64_t* row_offsets;     // [n_positions + 1]
    const int32_t* rows;            // ascending within a position
    const double* row_values;       // or null: all 1
    const int64_t* entry_offsets;   // [n_positions + 1], or null: none
    const uint32_t* entry_weights;  // index into the weight vector, ascending within a position
    const uint16_t* entry_labels;
    const double* entry_values;   // or null: all 1
    const int64_t* pair_offsets;  // [n_positions + 1], or null: none
    const int32_t* pair_attributes;
    const int32_t* labels;  // [n_positions], or null
    const double* weights;  // [n_sequences], or null: all 1
};

// One weight vector, laid out for the kernels.
struct ChainWeights {
    int64_t n_labels, width;  // L and P
    // Label row a is rows + a * row_stride; from n_inside on it is in `tail`, where a vector load past
    // the row's end stays inside memory.
    const double* rows;
    int64_t row_stride, n_inside;
    const double* tail;
    const double* single;           // the weights that entries name
    const double* transitions;      // [L][P] log-potentials
    const double* exp_transitions;  // [L][P] exp(transitions - shift), 0 in the padding
    const double* exp_transposed;   // [L][P] its transpose
    double shift;
    double range;        // largest minus smallest transition
    const double* pair;  // weights of the pair attributes
    const int64_t* pair_offsets;
    const int32_t* pair_codes;
};

// Where one thread adds its expectations minus observations. Weights from once_row and once_weight on
// get one term in all the data: it is stored in the shared output.
struct ChainGradient {
    double* rows;    // like ChainWeights::rows, private to the thread
    double* single;  // like ChainWeights::single, private to the thread
    double* once;    // the output, all weights
    int64_t once_row, once_weight;
    double* outer;        // [L][P] sum of alpha(i) * b(j), to be multiplied by exp_transitions
    double* transitions;  // [L][P] finished expectations (log space, pair attributes) minus observations
    double* pair;         // like ChainWeights::pair, private to the thread
};

struct ChainRange {
    int thread;
    int64_t begin, end;  // sequences
    double* scratch;     // [scratch_size(…)]
    // Called after each sequence; throws to stop.
    void (*check)(void* state, int thread);
    void* check_state;
};

struct ChainKernels {
    const char* name;
    // Doubles of scratch that a sequence of this length needs.
    int64_t (*scratch_size)(int64_t longest, int64_t n_labels, bool pairs);
    void (*exponentiate)(const double* x, double shift, double* out, int64_t n);  // n a multiple of 8
    // Sum of weight * (log Z - score of the labels); adds to the gradient.
    double (*value_gradient)(const ChainPlan&, const ChainWeights&, const ChainGradient&, const ChainRange&);
    // log Z per sequence; node[T][L] and edge[T][L][L] (of the pair (t - 1, t); zero at starts) where not null.
    void (*marginals)(const ChainPlan&, const ChainWeights&, double* log_z, double* node, double* edge,
                      const ChainRange&);
    // Best labels [T] and their scores [N].
    void (*viterbi)(const ChainPlan&, const ChainWeights&, int32_t* labels, double* scores, const ChainRange&);
};

const ChainKernels& kernels_generic();
const ChainKernels& kernels_avx2();
const ChainKernels& kernels_avx512();
// The fastest that this machine runs, or the one named by the argument; null if it cannot run.
const ChainKernels* find_kernels(const char* name);

}  // namespace crfkit
