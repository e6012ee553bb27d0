// The states of a scored lattice, for searches through it.
#pragma once

#include <cstdint>

#include "kernels/kernels.hpp"

namespace crfkit {

// The states of the lattice as kernels.hpp numbers them.
struct LatticeStates {
    const ChainWeights& w;
    const ChainScores& scores;

    const double* jumps(int64_t t) const { return scores.pairs ? scores.pairs + t * w.n_labels * w.width : w.jumps; }
    int32_t label(int64_t s) const { return static_cast<int32_t>(w.order == 1 ? s : s % w.width); }
    int64_t state(const int32_t* y, int64_t t) const {
        return w.order == 1 ? y[t] : (t > 0 ? y[t - 1] : w.n_labels) * w.width + y[t];
    }
    template <class F>
    void each(const F& f) const {
        const int64_t rows = w.order == 1 ? 1 : w.n_labels + 1;
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < w.n_labels; ++j) f(i * w.width + j);
    }
    // Calls f(r) for the states that may come before s.
    template <class F>
    void each_before(int64_t s, const F& f) const {
        const int64_t n = w.order == 1 ? w.n_labels : w.n_labels + 1;
        for (int64_t i = 0; i < n; ++i) f(w.order == 1 ? i : i * w.width + s / w.width);
    }
};

}  // namespace crfkit
