// Groups of weights under their largest absolute value. Members are indices into w, [offsets[S]]; those of group s lie
// at offsets[s] … offsets[s + 1] and rise.
#pragma once

#include <cstdint>

namespace crfkit {

// Of every group max_k |w_k|, to norms [S], which holds zeros.
void norms_linf(const int64_t* members, const int64_t* offsets, int64_t n_groups, const double* w, double* norms);

// Of every group: the nearest (w', α') to (w_s, α_s) with |w'_k| ≤ α'. out [n] holds a copy of w, radii [S] one of α.
void project_epigraph_linf(const int64_t* members, const int64_t* offsets, int64_t n_groups, double* out,
                           double* radii);

// The shortest sub-gradient of f + strength·Σ_s max_k |w_k| at w, where out [n] holds ∇f(w).
void least_subgradient_linf(const int64_t* members, const int64_t* offsets, int64_t n_groups, const double* w,
                            double strength, double* out);

}  // namespace crfkit
