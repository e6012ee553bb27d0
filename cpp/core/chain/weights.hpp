// One weight vector laid out for the chain kernels.
#pragma once

#include <type_traits>
#include <vector>

#include "../support/buffer.hpp"
#include "../support/views.hpp"
#include "grouping.hpp"
#include "kernels/kernels.hpp"

namespace crfkit {

// Jump potentials and masks of a field.
template <class Real>
class JumpTables {
public:
    JumpTables(const FieldView& field, const TrainingKernels<Real>& kernels);
    // Lays out scale * (transition and triple weights). As a direction nothing is forbidden or exponentiated.
    // Order 1: the transitions are scale * table, which is [L][P].
    void set_table(const Real* table, double scale);
    template <class Given>
    void set(const Given* transition, const Given* triple, double scale, bool direction);
    // Points the view's tables at ours.
    void describe(ChainWeightsOf<Real>& view) const;
    int64_t jump_size() const { return jump_rows_ * width_; }
    // transposed = the transpose of a table of jumps.
    void transpose(const Real* table, Real* transposed) const;
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
    void exponentiate();
    void make_places();
    void make_masks();

    FieldView field_;
    const TrainingKernels<Real>& kernels_;
    int64_t width_, jump_rows_, span_;
    bool masked_;
    std::vector<int64_t> transition_places_, triple_places_;
    BufferOf<Real> transitions_, jumps_, exp_jumps_, exp_transposed_, masks_;
    double shift_ = 0.0, range_ = 0.0;
};

// A field with one weight vector at a time. In double precision it may refer to the caller's vector: set it again when
// that changes.
template <class Real>
class PreparedWeights {
public:
    // `rows` are the label rows of the observed set.
    PreparedWeights(const FieldView& field, const TrainingKernels<Real>& kernels, RowTable rows);
    void set(const double* w, int n_threads = 1, bool direction = false);
    const ChainWeightsOf<Real>& view() const { return view_; }
    const JumpTables<Real>& jumps() const { return jumps_; }
    double largest() const;  // size of a weight, of vectors that were converted; NaN stays NaN

private:
    // Rows of the full set in the caller's vector; only doubles can.
    static constexpr bool kInPlace = std::is_same_v<Real, double>;
    void set_observed(const double* w, int n_threads);
    void set_full(const double* w, int n_threads);

    FieldView field_;
    RowTable rows_;
    JumpTables<Real> jumps_;
    BufferOf<Real> packed_, single_, pair_;
    ChainWeightsOf<Real> view_{};
    std::vector<double> largest_;  // of each block of weights, and of the rest
};

}  // namespace crfkit
