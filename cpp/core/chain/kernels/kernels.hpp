// Linear chains: the views that the kernels work on and the table of kernels for one instruction set.
//
// A label row has L entries, padded to P = the next multiple of a cache line (8 doubles or 16 floats) so that whole
// SIMD vectors cover it. Weight rows in the caller's vector are not padded: a vector load may reach into the row
// behind, and the lanes past L are masked (scores) or add zero (gradients).
//
// A chain of order 1 has labels as its states. In a chain of order 2 a state is the pair (previous label i,
// label j), at i * P + j of a row of (L + 1) * P; i = L stands for "none", before the first position.
//
// The sources in this folder are compiled once per instruction set and precision, so this header holds plain structs
// only: an inline function compiled for AVX-512 must not be the one that the linker keeps.
#pragma once

#include <cstdint>

namespace crfkit {

template <class Real>
constexpr int64_t kPad = 64 / static_cast<int64_t>(sizeof(Real));
template <class Real = double>
static inline int64_t padded(int64_t n) {
    return (n + kPad<Real> - 1) / kPad<Real> * kPad<Real>;
}

// The largest range of jumps that single precision can hold: alpha and beta shrink by e^-range in a step.
constexpr double kMaxSingleRange = 35.0;

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
    const uint32_t* entry_weights;  // index into ChainWeights::single, ascending within a position
    const uint16_t* entry_labels;
    const double* entry_values;   // or null: all 1
    const int64_t* pair_offsets;  // [n_positions + 1], or null: none
    const int32_t* pair_attributes;
    const int32_t* labels;   // [n_positions], or null
    const double* weights;   // [n_sequences], or null: all 1
    const double* cost;      // [L][L] added to the score of label j where the label is i, or null: a margin
    const uint8_t* allowed;  // [n_positions][L]: 0 where a label may not be taken; or null: all may
    // What is known of the labels, [n_positions][L]: 1 where a label is possible; or null: that they are `labels`.
    const uint8_t* targets;
    const double* token_weights;  // [n_positions], or null: all 1
};
static inline bool is_weak(const ChainPlan& plan) { return plan.targets || plan.token_weights; }

// One weight vector, laid out for the kernels. A jump leads from a state to the next label: in order 1 row
// i holds the transitions i -> j, in order 2 row i * P + j the triples i, j -> k.
template <class Real>
struct ChainWeightsOf {
    int64_t n_labels, width;  // L and P
    int64_t order, span;      // states in a lattice row: P, or (L + 1) * P
    // Label row a is rows + a * row_stride; from n_inside on it is in `tail`, where a vector load past
    // the row's end stays inside memory.
    const Real* rows;
    int64_t row_stride, n_inside;
    const Real* tail;
    bool far;            // rows and single weights are too many for the caches: ask for them before they are needed
    const Real* single;  // the weights that entries name
    double scale;        // of rows, single and pair; the tables below have it in them
    const Real* transitions;           // [L][P] log-potentials; -inf where a transition is not allowed
    const Real* jumps;                 // [span of order 2, L of order 1][P] log-potentials
    const Real* exp_jumps;             // exp(jumps - shift), 0 in the padding and where not allowed
    const Real* exp_jumps_transposed;  // order 1: [L][P]; order 2: [L + 1][P of k][P of j]
    double shift;
    double range;  // largest minus smallest jump that is allowed
    // 1 for the states that may be taken at the first, at a further and at the last position, 0 for the
    // others and the padding; null: all may.
    const Real *first_mask, *inner_mask, *last_mask;  // [span]
    const Real* pair;                                 // weights of the pair attributes
    const int64_t* pair_offsets;
    const int32_t* pair_codes;
};

using ChainWeights = ChainWeightsOf<double>;

// A direction in weight space, for derivatives along it: its own rows and scores, and exp_jumps of the point
// times the direction's jumps.
struct ChainTangent {
    const ChainWeights* direction;
    const double *tilted, *tilted_transposed;
};

// Where one thread adds its expectations minus observations. Weights from once_row and once_weight on
// get one term in all the data: it is stored in the shared output.
template <class Real>
struct ChainGradientOf {
    Real* rows;           // like ChainWeights::rows, private to the thread
    Real* single;         // like ChainWeights::single, private to the thread
    double* once_rows;    // the shared output: rows of L
    double* once_single;  // and like `single`
    int64_t once_row, once_weight;
    Real* outer;        // like ChainWeights::jumps: sum of alpha(s) * b(k), to be multiplied by exp_jumps
    Real* jumps;        // like ChainWeights::jumps: finished expectations minus observations
    Real* transitions;  // [L][P], order 2 only: likewise for label pairs
    Real* pair;         // like ChainWeights::pair, private to the thread
    // Where `rows` are weights: a bit for each label of a row that has one, in row_words words; null: all have.
    const uint64_t* row_bits;
    int64_t row_words;
};

using ChainGradient = ChainGradientOf<double>;

// What a pass over the data leaves behind for Hessian products at the same weights: per sequence the rows
// alpha, E and beta, normalised so that alpha * beta is the node marginal, and whether they are there.
template <class Real>
struct ChainCacheOf {
    Real* rows;       // [3][T][span] of each sequence
    uint8_t* filled;  // [n_sequences]
};
using ChainCache = ChainCacheOf<double>;

// A sequence's scores in a range's scratch: of states, of the best labelling that ends in each state, and of jumps.
struct ChainScores {
    int64_t length;
    const double* u;      // [T][span]; -inf where a state is not allowed
    const double* delta;  // [T][span]
    const double* pairs;  // [T][L][P] in place of ChainWeights::jumps, or null
};

// How labels mark phrases.
struct ChainPhrases {
    const uint8_t* goes_on;  // [L][L]: 1 if a phrase goes on from a label to the next
    const int32_t* types;    // [L]: the type of the phrase that a label is in, -1 for none
};

// A phrase at positions begin … end - 1 of a sequence, and the probability that the labelling has it.
struct ChainSpan {
    int64_t begin, end;
    int32_t type;
    double probability;
};

struct ChainRange {
    int thread;
    int64_t begin, end;  // sequences
    void* scratch;       // scratch_size(…) numbers
    // Called after each sequence; throws to stop.
    void (*check)(void* state, int thread);
    void* check_state;
};

// Label scores that a network made, padded to one length: [batch][time][L], or [time][batch][L].
template <class Real>
struct ChainDenseOf {
    int64_t n_sequences, n_steps, n_labels;
    const Real* u;
    int64_t sequence_stride, step_stride;
    const Real *start, *end;  // [L] added at the first and at the last position
    const int64_t* lengths;   // [n_sequences]
    const int64_t* labels;    // [batch][time], or null
};

// Scores to take derivatives along, of each sequence: [batch][time][L] and [batch][L][L].
struct ChainDenseDirection {
    const double *u, *jumps;
};

// What training takes, in one precision.
template <class Real>
struct TrainingKernels {
    // Numbers of scratch that a sequence of this length needs.
    int64_t (*scratch_size)(int64_t longest, int64_t n_labels, int64_t order, bool pairs, bool further);
    void (*exponentiate)(const Real* x, double shift, Real* out, int64_t n);  // n a multiple of kPad
    // Order 1 without constraints: log = scale * table, exp = exp(log - high), its transpose, and the range low … high
    // of log; all are [L][P].
    void (*jump_tables)(const Real* table, double scale, int64_t n_labels, Real* log, Real* exp, Real* transposed,
                        double* low, double* high);
    // table += mask * (outer * exp + jumps), and zeros in outer and jumps; n a multiple of kPad.
    void (*step_jumps)(Real* table, const Real* mask, Real* outer, const Real* exp, Real* jumps, int64_t n);
    // Sum of weight * (log Z - score of the labels); adds to the gradient. With a cache, fills it. Where the plan is
    // weak, the loss of weak.cpp; it needs further scratch, and leaves the cache alone.
    double (*value_gradient)(const ChainPlan&, const ChainWeightsOf<Real>&, const ChainGradientOf<Real>&,
                             const ChainCacheOf<Real>*, const ChainRange&);
    // Adds sum of weight * p (1 - p) over the occurrences of each feature, times the values of `squared`. From the
    // jumps' part the caller is to take exp_jumps^2 * squares.
    void (*hessian_diagonal)(const ChainPlan&, const ChainPlan& squared, const ChainWeightsOf<Real>&,
                             const ChainGradientOf<Real>&, Real* squares, const ChainRange&);
    // Order 1: log Z, node marginals [batch][time][L] and the sum over time of edge marginals [batch][L][L]; minus the
    // labels' score and counts where there are labels.
    void (*dense_beliefs)(const ChainDenseOf<Real>&, const ChainWeightsOf<Real>&, double* log_z, Real* node, Real* edge,
                          const ChainRange&);
};

struct ChainKernels : TrainingKernels<double> {
    const char* name;
    const TrainingKernels<float>* single;
    // Adds the derivative of that gradient along the tangent. Sequences that the cache (may be null) does not hold
    // are inferred anew; those it holds take no share in `outer` of the point, which is the caller's to add.
    void (*hessian_product)(const ChainPlan&, const ChainWeights&, const ChainTangent&, const ChainGradient&,
                            double* point_outer, const ChainCache*, const ChainRange&);
    // Sum of weight * (largest score - score of the labels), scores with the cost; adds a sub-gradient.
    double (*hinge)(const ChainPlan&, const ChainWeights&, const ChainGradient&, const ChainRange&);
    // log Z per sequence; node[T][L] and edge[T][L][L] (of the pair (t - 1, t); zero at starts) where not null.
    void (*marginals)(const ChainPlan&, const ChainWeights&, double* log_z, double* node, double* edge,
                      const ChainRange&);
    // Best labels [T] and their scores [N].
    void (*viterbi)(const ChainPlan&, const ChainWeights&, int32_t* labels, double* scores, const ChainRange&);
    // Best labels [batch][time], 0 in the padding, and their scores.
    void (*dense_viterbi)(const ChainDenseOf<double>&, const ChainWeights&, int32_t* labels, double* scores,
                          const ChainRange&);
    void (*dense_viterbi_of_floats)(const ChainDenseOf<float>&, const ChainWeights&, int32_t* labels, double* scores,
                                    const ChainRange&);
    // The derivatives of what dense_beliefs fills in, and how much scratch they need.
    void (*dense_covariances)(const ChainDenseOf<double>&, const ChainWeights&, const ChainDenseDirection&,
                              double* node, double* edge, const ChainRange&);
    int64_t (*dense_curvature_scratch)(int64_t longest, int64_t n_labels);
    // The scores of sequence n.
    ChainScores (*best_scores)(const ChainPlan&, const ChainWeights&, int64_t n, const ChainRange&);
    // Fills in the probabilities of spans of sequence n; returns its log Z.
    double (*span_probabilities)(const ChainPlan&, const ChainWeights&, const ChainPhrases&, int64_t n, ChainSpan*,
                                 int64_t n_spans, const ChainRange&);
    // log Z and the entropy of the labelling, per sequence.
    void (*entropies)(const ChainPlan&, const ChainWeights&, double* log_z, double* entropy, const ChainRange&);
    // `count` labellings [count][T] of sequence n, drawn with uniforms [count][T]; returns log Z.
    double (*sample)(const ChainPlan&, const ChainWeights&, int64_t n, int64_t count, const double* uniforms,
                     int32_t* labels, const ChainRange&);
};

// The tables, one per instruction set: tables.cpp.
namespace generic {
const ChainKernels& chain_kernels();
}
namespace avx2 {
const ChainKernels& chain_kernels();
}
namespace avx512 {
const ChainKernels& chain_kernels();
}

// "auto": default_kernels(); null if the name is not known or the machine cannot run it.
const ChainKernels* find_kernels(const char* name);

}  // namespace crfkit
