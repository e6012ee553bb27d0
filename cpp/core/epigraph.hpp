// Projection onto the epigraph of the largest absolute value, group by group.
#pragma once

#include <cstdint>

namespace crfkit {

// Of every group s: the nearest (w', α') to (w_s, α_s) with |w'_k| ≤ α'. Members are indices into w, [offsets[S]];
// those of group s lie at offsets[s] … offsets[s + 1]. out [n] holds a copy of w, radii [S] one of α.
void project_epigraph_linf(const int64_t* members, const int64_t* offsets, int64_t n_groups, double* out, double* radii);

}  // namespace crfkit
