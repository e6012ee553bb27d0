// Vector work of the solvers, over threads. Sums are taken per chunk and added up in order of the chunks, so
// they are the same bits for any number of threads.
#pragma once

#include <cstdint>

namespace crfkit {

// out[i] = rows[i] · x for the k rows of length n.
void rows_dot(const double* rows, int64_t k, int64_t n, const double* x, double* out, int n_threads);

// out = a x + sum_i c[i] rows[i]; out may be x.
void rows_combine(const double* c, const double* rows, int64_t k, int64_t n, double a, const double* x, double* out,
                  int n_threads);

}  // namespace crfkit
