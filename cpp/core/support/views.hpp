// What the kernels read: plain structs over memory that somebody else owns.
#pragma once

#include <cstdint>

namespace crfkit {

// Encoded sequences; src/crfkit/chain/data.py documents the layout.
struct SequenceView {
    int64_t n_sequences = 0, n_positions = 0;
    const int64_t* starts = nullptr;           // [n_sequences + 1] positions
    const int64_t* offsets = nullptr;          // [n_positions + 1] into attributes
    const int32_t* attributes = nullptr;       // ids
    const double* values = nullptr;            // one per attribute, or null: all 1
    const int64_t* pair_offsets = nullptr;     // [n_positions + 1] into pair_attributes, or null: none
    const int32_t* pair_attributes = nullptr;  // ids; of the pair (t - 1, t) at position t
    const int32_t* labels = nullptr;           // [n_positions], or null
    const double* weights = nullptr;           // [n_sequences], or null: all 1
    const uint8_t* allowed = nullptr;          // [n_positions][labels]: 0 where a label may not be taken; or null
    const uint8_t* targets = nullptr;          // [n_positions][labels]: 1 where a label is possible; or null: `labels`
    const double* token_weights = nullptr;     // [n_positions], or null: all 1
};

// Which weights a chain has and where they stand: state block, transition block, pair block, triple block (order 2:
// label triples), class block (attributes that score a class of labels).
struct FieldView {
    int64_t n_labels = 0, n_attributes = 0, n_pair_attributes = 0;
    int64_t order = 1;
    int64_t n_wide = -1;                     // what count_wide returns, if it is known
    const int64_t* state_offsets = nullptr;  // [n_attributes + 1], or null: attribute a has all labels, at a * L
    const int32_t* state_labels = nullptr;
    int64_t n_state = 0;
    const int32_t* transition_codes = nullptr;  // i * L + j of each transition weight; null: all, in order
    int64_t n_transition = 0;
    const int64_t* pair_offsets = nullptr;  // [n_pair_attributes + 1], or null: all L * L pairs each
    const int32_t* pair_codes = nullptr;
    int64_t n_pair = 0;
    const int32_t* triple_codes = nullptr;  // (i * L + j) * L + k of each; null: all, in order
    int64_t n_triple = 0;
    const int32_t* label_classes = nullptr;  // [n_labels], or null: no classes
    int64_t n_classes = 0;
    const int64_t* class_offsets = nullptr;  // like state_offsets
    const int32_t* class_codes = nullptr;
    int64_t n_class = 0;
    // 1 where a transition, a first or a last label may occur; null: everywhere
    const uint8_t *allowed = nullptr, *allowed_start = nullptr, *allowed_end = nullptr;

    int64_t transition_at() const { return n_state; }
    int64_t pair_at() const { return n_state + n_transition; }
    int64_t triple_at() const { return pair_at() + n_pair; }
    int64_t class_at() const { return triple_at() + n_triple; }
    int64_t size() const { return class_at() + n_class; }
};

}  // namespace crfkit
