// One weight vector laid out for the chain kernels.
#pragma once

#include <vector>

#include "../support/buffer.hpp"
#include "../support/views.hpp"
#include "grouping.hpp"
#include "kernels.hpp"

namespace crfkit {

// Jump potentials and masks of a field.
class JumpTables {
public:
    JumpTables(const FieldView& field, const ChainKernels& kernels);
    // Lays out scale * (transition and triple weights). As a direction nothing is forbidden or exponentiated.
    void set(const double* transition, const double* triple, double scale, bool direction);
    // Points the view's tables at ours.
    void describe(ChainWeights& view) const;
    int64_t jump_size() const { return jump_rows_ * width_; }
    // transposed = the transpose of a table of jumps.
    void transpose(const double* table, double* transposed) const;
    // Calls f(place in a table of jumps, index) for every weight that scores a jump: transitions in order 1, triples
    // in order 2; and f(place in [L][P], index) for the transitions of either.
    template <class F>
    void each_jump(const F& f) const {
        const std::vector<int64_t>& places = field_.order == 1 ? transition_places_ : triple_places_;
        for (size_t k = 0; k < places.size(); ++k) f(places[k], static_cast<int64_t>(k));
    }
    template <class F>
    void each_transition(const F& f) const {
        for (size_t k = 0; k < transition_places_.size(); ++k) f(transition_places_[k], static_cast<int64_t>(k));
    }
    // Where the weights of each_jump begin.
    int64_t jump_at() const { return field_.order == 1 ? field_.transition_at() : field_.triple_at(); }

private:
    bool may_jump(int64_t row, int64_t label) const;
    void make_places();
    void make_masks();

    FieldView field_;
    const ChainKernels& kernels_;
    int64_t width_, jump_rows_, span_;
    bool masked_;
    std::vector<int64_t> transition_places_, triple_places_;
    Buffer transitions_, jumps_, exp_jumps_, exp_transposed_, masks_;
    double shift_ = 0.0, range_ = 0.0;
};

// A field with one weight vector at a time. Refers to the caller's vector; set it again when it changes.
class PreparedWeights {
public:
    // `rows` are the label rows of the observed set.
    PreparedWeights(const FieldView& field, const ChainKernels& kernels, RowTable rows);
    void set(const double* w, int n_threads = 1, bool direction = false);
    const ChainWeights& view() const { return view_; }
    const JumpTables& jumps() const { return jumps_; }

private:
    FieldView field_;
    RowTable rows_;
    JumpTables jumps_;
    Buffer packed_, single_;
    ChainWeights view_{};
};

}  // namespace crfkit
