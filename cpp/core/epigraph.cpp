#include "epigraph.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace crfkit {

// α' = max(0, θ) where θ = (α + Σ_{k∈A} |w_k|)/(1 + |A|) and A = {k : |w_k| > θ}. From A = all, θ rises while the
// members that are not above it are dropped (Michelot 1986): a few passes in place of a sort.
void project_epigraph_linf(const int64_t* members, const int64_t* offsets, int64_t n_groups, double* out,
                           double* radii) {
    std::vector<double> above;  // [|A|] sizes
    for (int64_t s = 0; s < n_groups; ++s) {
        const int64_t *begin = members + offsets[s], *end = members + offsets[s + 1];
        const double alpha = radii[s];
        above.clear();
        double sum = alpha;
        for (const int64_t* k = begin; k != end; ++k) {
            const double size = std::abs(out[*k]);
            if (size <= alpha) continue;  // θ ≥ α
            above.push_back(size);
            sum += size;
        }
        if (above.empty() && alpha >= 0) continue;
        double theta = sum / (1.0 + static_cast<double>(above.size()));
        for (size_t before = above.size() + 1; theta > 0 && above.size() < before;) {
            before = above.size();
            above.erase(std::remove_if(above.begin(), above.end(), [&](double size) { return size <= theta; }),
                        above.end());
            sum = alpha;
            for (const double size : above) sum += size;
            theta = sum / (1.0 + static_cast<double>(above.size()));
        }
        radii[s] = theta = std::max(theta, 0.0);
        for (const int64_t* k = begin; k != end; ++k) out[*k] = std::clamp(out[*k], -theta, theta);
    }
}

}  // namespace crfkit
