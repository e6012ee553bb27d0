#include "group_linf.hpp"

#include <algorithm>
#include <cmath>

#include "../support/checks.hpp"

namespace crfkit {

GroupMembers::GroupMembers(std::vector<int64_t> m, std::vector<int64_t> o)
    : members(std::move(m)), offsets(std::move(o)) {
    check_offsets(offsets, static_cast<int64_t>(members.size()), "offsets");
    check_ids(std::span<const int64_t>(members), int64_t{1} << 59, "member");
    for (int64_t s = 0; s < n_groups(); ++s)
        for (int64_t k = offsets[s]; k < offsets[s + 1]; ++k) {
            require(k == offsets[s] || members[k] > members[k - 1], "members of a group that do not rise");
            end = std::max(end, members[k] + 1);
        }
}

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

// Calls work(s, places, size) for every group; they rise within it.
template <class Work>
void over_groups(const GroupMembers& groups, const Work& work) {
    for (int64_t s = 0; s < groups.n_groups(); ++s) {
        const int64_t *own = groups.members.data() + groups.offsets[s],
                      size = groups.offsets[s + 1] - groups.offsets[s];
        if (size > 0 && own[size - 1] - own[0] == size - 1)
            work(s, Together{own[0]}, size);
        else
            work(s, Apart{own}, size);
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

double sum(const double* x, int64_t size) {
    double sums[kLanes] = {}, total = 0.0;
    int64_t k = 0;
    for (; k + kLanes <= size; k += kLanes)
        for (int l = 0; l < kLanes; ++l) sums[l] += x[k + l];
    for (; k < size; ++k) total += x[k];
    for (int l = 0; l < kLanes; ++l) total += sums[l];
    return total;
}

// θ = (shift + Σ_{h∈A} h)/(more + |A|) with A = {h > θ}. From A = all, θ rises while the members that are not above it
// are dropped (Michelot 1986): a few passes in place of a sort. A becomes empty only if the sum is not a finite number.
double raised_mean(double* h, int64_t size, double shift, double more) {
    for (;;) {
        const double theta = (shift + sum(h, size)) / (more + static_cast<double>(size));
        int64_t kept = 0;
        for (int64_t k = 0; k < size; ++k) {
            const double x = h[k];
            h[kept] = x;
            kept += x > theta;
        }
        if (kept == size || kept == 0) return theta;
        size = kept;
    }
}

int64_t largest_size(const GroupMembers& groups) {
    int64_t size = 0;
    for (int64_t s = 0; s < groups.n_groups(); ++s) size = std::max(size, groups.offsets[s + 1] - groups.offsets[s]);
    return size;
}

}  // namespace

void norms_linf(const GroupMembers& groups, const double* w, double* norms) {
    over_groups(groups, [&](int64_t s, auto places, int64_t size) { norms[s] = largest(w, places, size); });
}

// α' = max(0, θ) with θ = (α + Σ_{k∈A} |w_k|)/(1 + |A|) and A = {k : |w_k| > θ}
void project_epigraph_linf(const GroupMembers& groups, double* out, double* radii) {
    std::vector<double> buffer(static_cast<size_t>(largest_size(groups)));
    over_groups(groups, [&](int64_t s, auto places, int64_t size) {
        const double alpha = radii[s];
        double *x = out, *above = buffer.data();
        int64_t n = 0;
        for (int64_t k = 0; k < size; ++k) {
            const double a = std::abs(x[places[k]]);
            above[n] = a;
            n += !(a <= alpha);  // θ ≥ α
        }
        if (n == 0 && alpha >= 0) return;
        const double theta = alpha + sum(above, n) <= 0 ? 0.0 : raised_mean(above, n, alpha, 1.0);  // NaN stays NaN
        radii[s] = theta;
        for (int64_t k = 0; k < size; ++k) {
            const double at = x[places[k]], low = at < -theta ? -theta : at;
            x[places[k]] = low > theta ? theta : low;
        }
    });
}

// At w = 0 the sub-differential of a group is the L1 ball of the strength: |g_k| is cut off at τ ≥ 0 where
// Σ max(|g_k| − τ, 0) = strength. Elsewhere it is strength times the convex hull of sgn(w_j)·e_j over the largest
// weights j, and with h = −sgn(w)·g the shortest is −sgn(w)·min(h, τ) there, Σ max(h_j − τ, 0) = strength, and g at the
// others.
void least_subgradient_linf(const GroupMembers& groups, const double* w, double strength, double* out) {
    std::vector<double> buffer(static_cast<size_t>(largest_size(groups)));
    std::vector<int64_t> indices(buffer.size());
    over_groups(groups, [&](int64_t, auto places, int64_t size) {
        const double top = largest(w, places, size);
        double *g = out, *above = buffer.data();
        if (top > 0.0) {
            if (strength == 0.0) return;
            int64_t *on_top = indices.data(), n = 0;
            for (int64_t k = 0; k < size; ++k) {
                on_top[n] = places[k];
                n += std::abs(w[places[k]]) == top;
            }
            for (int64_t k = 0; k < n; ++k) above[k] = -std::copysign(1.0, w[on_top[k]]) * g[on_top[k]];
            const double tau = raised_mean(above, n, -strength, 0.0);
            for (int64_t k = 0; k < n; ++k) {
                const double sign = -std::copysign(1.0, w[on_top[k]]), h = sign * g[on_top[k]];
                g[on_top[k]] = sign * (h < tau ? h : tau);
            }
            return;
        }
        for (int64_t k = 0; k < size; ++k) above[k] = std::abs(g[places[k]]);
        if (sum(above, size) <= strength) {
            for (int64_t k = 0; k < size; ++k) g[places[k]] = 0.0;
            return;
        }
        if (strength == 0.0) return;
        const double tau = raised_mean(above, size, -strength, 0.0);
        for (int64_t k = 0; k < size; ++k)
            g[places[k]] = std::copysign(std::min(std::abs(g[places[k]]), tau), g[places[k]]);
    });
}

}  // namespace crfkit
