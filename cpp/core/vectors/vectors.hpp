// Vector work of the solvers, over threads. Sums are taken per chunk and added up in order of the chunks, so
// they are the same bits for any number of threads. Rows may be float: half the memory and half the time to read it.
#pragma once

#include <cstdint>
#include <utility>

namespace crfkit {

// out[i] = rows[i] · x for the k rows of length n.
template <class T>
void rows_dot(const T* rows, int64_t k, int64_t n, const double* x, double* out, int n_threads);

// out = a x + sum_i c[i] rows[i]; out may be x.
template <class T>
void rows_combine(const double* c, const T* rows, int64_t k, int64_t n, double a, const double* x, double* out,
                  int n_threads);

// s = (x_new - x) / scale, y = (g_new - g) * scale, without a scale where that is null; returns (s · y, y · y).
template <class T>
std::pair<double, double> curvature_pair(const double* x, const double* g, const double* x_new, const double* g_new,
                                         const double* scale, int64_t n, T* s, T* y, int n_threads);

}  // namespace crfkit
