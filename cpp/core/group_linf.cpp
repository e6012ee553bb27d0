#include "group_linf.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace crfkit {

namespace {

constexpr int kLanes = 8;  // independent sums and maxima: the compiler keeps them in vectors

// The members of a group that lie one after another, and those that do not.
struct Together {
    int64_t first;
    int64_t operator[](int64_t k) const { return first + k; }
};
struct Apart {
    const int64_t* members;
    int64_t operator[](int64_t k) const { return members[k]; }
};

// Calls work(s, places, size) for every group that has members. They rise within a group.
template <class Work>
void over_groups(const int64_t* members, const int64_t* offsets, int64_t n_groups, const Work& work) {
    for (int64_t s = 0; s < n_groups; ++s) {
        const int64_t* own = members + offsets[s];
        const int64_t size = offsets[s + 1] - offsets[s];
        if (size == 0) continue;
        if (own[size - 1] - own[0] == size - 1)
            work(s, Together{own[0]}, size);
        else
            work(s, Apart{own}, size);
    }
}

// θ = (shift + Σ_{h∈A} h)/(more + |A|) with A = {h > θ}. From A = all, θ rises while the members that are not above it
// are dropped (Michelot 1986): a few passes in place of a sort. A becomes empty only if more > 0.
double raised_mean(std::vector<double>& above, int64_t size, double shift, double more) {
    double* h = above.data();
    for (;;) {
        double sum = shift;
        for (int64_t k = 0; k < size; ++k) sum += h[k];
        const double theta = sum / (more + static_cast<double>(size));
        int64_t kept = 0;
        for (int64_t k = 0; k < size; ++k) {
            const double x = h[k];
            h[kept] = x;
            kept += x > theta;
        }
        if (kept == size || (kept == 0 && more == 0)) return theta;
        size = kept;
    }
}

// max_k |x_k|
template <class Places>
double largest(const double* x, Places places, int64_t size) {
    double top[kLanes] = {};
    int64_t k = 0;
    for (; k + kLanes <= size; k += kLanes)
        for (int l = 0; l < kLanes; ++l) {
            const double a = std::abs(x[places[k + l]]);
            top[l] = a > top[l] ? a : top[l];
        }
    for (; k < size; ++k) top[0] = std::max(top[0], std::abs(x[places[k]]));
    return *std::max_element(top, top + kLanes);
}

}  // namespace

void norms_linf(const int64_t* members, const int64_t* offsets, int64_t n_groups, const double* w, double* norms) {
    over_groups(members, offsets, n_groups,
                [&](int64_t s, auto places, int64_t size) { norms[s] = largest(w, places, size); });
}

// α' = max(0, θ) with θ = (α + Σ_{k∈A} |w_k|)/(1 + |A|) and A = {k : |w_k| > θ}
void project_epigraph_linf(const int64_t* members, const int64_t* offsets, int64_t n_groups, double* out,
                           double* radii) {
    std::vector<double> above;
    over_groups(members, offsets, n_groups, [&](int64_t s, auto places, int64_t size) {
        const double alpha = radii[s];
        if (above.size() < static_cast<size_t>(size)) above.resize(static_cast<size_t>(size));
        int64_t n = 0;
        for (int64_t k = 0; k < size; ++k) {
            const double x = std::abs(out[places[k]]);
            above[n] = x;
            n += !(x <= alpha);  // θ ≥ α
        }
        if (n == 0 && alpha >= 0) return;
        double sum = alpha;
        for (int64_t k = 0; k < n; ++k) sum += above[k];
        const double theta = sum > 0 ? raised_mean(above, n, alpha, 1.0) : 0.0;
        radii[s] = theta;
        for (int64_t k = 0; k < size; ++k) {
            double& x = out[places[k]];
            const double low = x < -theta ? -theta : x;
            x = low > theta ? theta : low;
        }
    });
    // a group without members: |·| ≤ α of none
    for (int64_t s = 0; s < n_groups; ++s)
        if (offsets[s + 1] == offsets[s]) radii[s] = std::max(radii[s], 0.0);
}

// At w = 0 the sub-differential of a group is the L1 ball of the strength: |g_k| is cut off at τ ≥ 0 where
// Σ max(|g_k| − τ, 0) = strength. Elsewhere it is strength times the convex hull of sgn(w_j)·e_j over the largest
// weights j, and with h = −sgn(w)·g the shortest is −sgn(w)·min(h, τ) there, Σ max(h_j − τ, 0) = strength, and g at the
// others.
void least_subgradient_linf(const int64_t* members, const int64_t* offsets, int64_t n_groups, const double* w,
                            double strength, double* out) {
    std::vector<double> above;
    std::vector<int64_t> on_top;
    over_groups(members, offsets, n_groups, [&](int64_t, auto places, int64_t size) {
        const double top = largest(w, places, size);
        above.clear();
        if (top > 0.0) {
            if (strength == 0.0) return;
            on_top.clear();
            for (int64_t k = 0; k < size; ++k)
                if (std::abs(w[places[k]]) == top) on_top.push_back(places[k]);
            for (const int64_t j : on_top) above.push_back(w[j] > 0 ? -out[j] : out[j]);
            const double tau = raised_mean(above, static_cast<int64_t>(above.size()), -strength, 0.0);
            for (const int64_t j : on_top) out[j] = w[j] > 0 ? -std::min(-out[j], tau) : std::min(out[j], tau);
            return;
        }
        double sum = 0.0;
        for (int64_t k = 0; k < size; ++k) {
            above.push_back(std::abs(out[places[k]]));
            sum += above.back();
        }
        if (sum <= strength) {
            for (int64_t k = 0; k < size; ++k) out[places[k]] = 0.0;
            return;
        }
        if (strength == 0.0) return;
        const double tau = raised_mean(above, size, -strength, 0.0);
        for (int64_t k = 0; k < size; ++k) {
            double& g = out[places[k]];
            g = std::copysign(std::min(std::abs(g), tau), g);
        }
    });
}

}  // namespace crfkit
