// Groups of weights under their largest absolute value.
#pragma once

#include <cstdint>
#include <vector>

namespace crfkit {

// Which weights are members of which group: those of group s lie at offsets[s] … offsets[s + 1] and rise.
struct GroupMembers {
    // Throws std::invalid_argument where they do not fit together.
    GroupMembers(std::vector<int64_t> members, std::vector<int64_t> offsets);
    int64_t n_groups() const { return static_cast<int64_t>(offsets.size()) - 1; }

    std::vector<int64_t> members, offsets;
    int64_t end = 0;  // one more than the largest member
};

// Of every group max_k |w_k|, to norms [S].
void norms_linf(const GroupMembers& groups, const double* w, double* norms);

// Of every group: the nearest (w', α') to (w_s, α_s) with |w'_k| ≤ α'. out [n] holds a copy of w, radii [S] one of α.
void project_epigraph_linf(const GroupMembers& groups, double* out, double* radii);

// The shortest sub-gradient of f + strength·Σ_s max_k |w_k| at w, where out [n] holds ∇f(w).
void least_subgradient_linf(const GroupMembers& groups, const double* w, double strength, double* out);

}  // namespace crfkit
