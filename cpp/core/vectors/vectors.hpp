// Vector work of the solvers, over threads. Sums are taken per chunk and added up in order of the chunks, so
// they are the same bits for any number of threads. Rows may be float: half the memory and half the time to read it; or
// uint16_t, the upper halves of floats (bfloat16): a quarter of both, two to three digits. A scale may be null for 1.
#pragma once

#include <cstdint>
#include <utility>

#include "chunks.hpp"

namespace crfkit {

template <class T>
using RowScale = typename ScaleOf<T>::type;

// out[i] = rows[i] · (scale x) for the k rows of length n.
template <class T>
void rows_dot(const T* rows, int64_t k, int64_t n, const double* x, const RowScale<T>* scale, double* out,
              int n_threads);

// out = scale (a scale x + sum_i c[i] rows[i]); out may be x. Where `product` is not null, it is set to x · out.
template <class T>
void rows_combine(const double* c, const T* rows, int64_t k, int64_t n, double a, const double* x,
                  const RowScale<T>* scale, double* out, double* product, int n_threads);

// row = a scale x + sum_i c[i] rows[i], rounded; returns x · (scale row).
template <class T>
double rows_direction(const double* c, const T* rows, int64_t k, int64_t n, double a, const double* x,
                      const RowScale<T>* scale, T* row, int n_threads);

// out = x + a scale row.
template <class T>
void advance(const double* x, double a, const T* row, const RowScale<T>* scale, int64_t n, double* out, int n_threads);

// x · (scale row).
template <class T>
double row_dot(const T* row, const RowScale<T>* scale, int64_t n, const double* x, int n_threads);

// y += a x; returns (x · x, y · y).
std::pair<double, double> add_and_measure(double a, const double* x, double* y, int64_t n, int n_threads);

// s = (x_new - x) / scale, y = (g_new - g) * scale, without a scale where that is null; returns (s · y, y · y).
template <class T>
std::pair<double, double> curvature_pair(const double* x, const double* g, const double* x_new, const double* g_new,
                                         const RowScale<T>* scale, int64_t n, T* s, T* y, int n_threads);

// The pair of a step from the gradient g to g_new: rows[s] = a row, rows[y] = (g_new - g) * scale. Then
// out[i] = rows[i] · (scale g_new) for all k rows; returns (s · y, y · y). `row` is none of the rows.
template <class T>
std::pair<double, double> add_step(T* rows, int64_t k, int64_t n, int64_t s, int64_t y, double a, const T* row,
                                   const double* g, const double* g_new, const RowScale<T>* scale, double* out,
                                   int n_threads);

}  // namespace crfkit
