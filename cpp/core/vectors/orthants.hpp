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

// What H₀ has besides its diagonal: excess[i][j] at (places[i], places[j]); no places: nothing.
struct Head {
    const int64_t* places;
    const double* excess;
    int64_t size;
};

// d = H·g by the two-loop recursion over the k pairs (rows of s and y, oldest first) with H₀ = γ·(diag(diagonal) +
// head), γ = s·y / y·H₀·y of the newest pair that is used; returns γ. Pairs without positive curvature are dropped; if
// none is left, γ is 1 in H₀ and returned as 0.
double two_loop(const double* g, const double* s, const double* y, int64_t k, int64_t n, const double* diagonal,
                const Head& head, double* d);

}  // namespace crfkit
