#include "group_linf.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace crfkit {

namespace {

// θ = (shift + Σ_{h∈A} h)/(more + |A|) with A = {h > θ}. From A = all, θ rises while the members that are not above it
// are dropped (Michelot 1986): a few passes in place of a sort. A becomes empty only if more > 0.
double raised_mean(std::vector<double>& above, double shift, double more) {
    for (;;) {
        double sum = shift;
        for (const double h : above) sum += h;
        const double theta = sum / (more + static_cast<double>(above.size()));
        const size_t before = above.size();
        const auto dropped = std::remove_if(above.begin(), above.end(), [&](double h) { return h <= theta; });
        if (dropped == above.end() || (dropped == above.begin() && more == 0)) return theta;
        above.erase(dropped, above.end());
        if (above.size() == before) return theta;
    }
}

}  // namespace

// α' = max(0, θ) with θ = (α + Σ_{k∈A} |w_k|)/(1 + |A|) and A = {k : |w_k| > θ}
void project_epigraph_linf(const int64_t* members, const int64_t* offsets, int64_t n_groups, double* out,
                           double* radii) {
    std::vector<double> above;
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
        const double theta = sum > 0 ? raised_mean(above, alpha, 1.0) : 0.0;
        radii[s] = theta;
        for (const int64_t* k = begin; k != end; ++k) out[*k] = std::clamp(out[*k], -theta, theta);
    }
}

// At w = 0 the sub-differential of a group is the L1 ball of the strength: |g_k| is cut off at τ ≥ 0 where
// Σ max(|g_k| − τ, 0) = strength. Elsewhere it is strength times the convex hull of sgn(w_j)·e_j over the largest
// weights j, and with h = −sgn(w)·g the shortest is −sgn(w)·min(h, τ) there, Σ max(h_j − τ, 0) = strength, and g at the
// others.
void least_subgradient_linf(const int64_t* members, const int64_t* offsets, int64_t n_groups, const double* w,
                            double strength, double* out) {
    std::vector<double> above;
    for (int64_t s = 0; s < n_groups; ++s) {
        const int64_t *begin = members + offsets[s], *end = members + offsets[s + 1];
        double top = 0.0, sum = 0.0;
        for (const int64_t* k = begin; k != end; ++k) {
            top = std::max(top, std::abs(w[*k]));
            sum += std::abs(out[*k]);
        }
        if (top == 0.0 && sum <= strength) {
            for (const int64_t* k = begin; k != end; ++k) out[*k] = 0.0;
            continue;
        }
        if (strength == 0.0) continue;
        above.clear();
        for (const int64_t* k = begin; k != end; ++k) {
            if (top == 0.0) above.push_back(std::abs(out[*k]));
            if (top > 0.0 && std::abs(w[*k]) == top) above.push_back(w[*k] > 0 ? -out[*k] : out[*k]);
        }
        const double tau = raised_mean(above, -strength, 0.0);
        for (const int64_t* k = begin; k != end; ++k) {
            double& g = out[*k];
            if (top == 0.0) g = std::copysign(std::min(std::abs(g), tau), g);
            if (top > 0.0 && std::abs(w[*k]) == top) g = w[*k] > 0 ? -std::min(-g, tau) : std::min(g, tau);
        }
    }
}

}  // namespace crfkit
