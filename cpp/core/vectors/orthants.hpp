// Vector work of orthant-wise methods for f(w) + strength·‖w‖₁. Most weights are zero and stay so: one pass over all of
// them finds those that can move, and all else is about these. The same bits for any number of threads.
#pragma once

#include <cstdint>
#include <vector>

namespace crfkit {

// Σ |w_j|
double sum_absolute(const double* w, int64_t n, int n_threads);

// The weights that can move at a point, with p = −(the shortest sub-gradient):
//   free      w ≠ 0    p = −g − strength·sgn(w)
//   entering  w = 0    p = −sgn(g)·(|g| − strength), where |g| > strength
struct MovingWeights {
    std::vector<int64_t> free, entering;  // places, ascending
    std::vector<double> p_free, p_entering;
    double square = 0.0;  // ‖p‖²
};
MovingWeights moving_weights(const double* w, const double* g, double strength, int64_t n, int n_threads);

// out[i][b] = rows[i][a] where to[b] = from[a], and 0 where `from` does not have to[b]; both ascend.
void move_columns(const double* rows, int64_t k, const int64_t* from, int64_t n_from, const int64_t* to, int64_t n_to,
                  double* out);

// d = H·g by the two-loop recursion over the k pairs (rows of s and y, oldest first) with H₀ = γ·diag(diagonal),
// γ = s·y / y·diag·y of the newest pair that is used; returns γ. Pairs without positive curvature are left out; if none
// is left, H₀ is the diagonal itself, and γ is returned as 0.
double two_loop(const double* g, const double* s, const double* y, int64_t k, int64_t n, const double* diagonal,
                double* d);

}  // namespace crfkit
