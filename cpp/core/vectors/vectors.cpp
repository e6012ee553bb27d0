#include "vectors.hpp"

#include <algorithm>
#include <vector>

#include "../support/parallel.hpp"

#define CRFKIT_LANES 2
#include "../support/simd.hpp"

namespace crfkit {

namespace {

constexpr int64_t kChunk = 4096;            // doubles: a chunk of x stays in the first cache
constexpr int64_t kWorthThreads = 1 << 17;  // doubles read in all, below which threads cost more than they save

V load_wide(const double* p) { return load(p); }
V load_wide(const float* p) {
    typedef float Narrow __attribute__((vector_size(4 * CRFKIT_LANES)));
    Narrow v;
    __builtin_memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, V);
}

template <class A, class B>
double dot(const A* x, const B* y, int64_t n) {
    V total[4] = {};
    int64_t i = 0;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes)
        for (int b = 0; b < 4; ++b) total[b] += load_wide(x + i + b * kLanes) * load_wide(y + i + b * kLanes);
    double rest = 0.0;
    for (; i < n; ++i) rest += static_cast<double>(x[i]) * static_cast<double>(y[i]);
    return sum((total[0] + total[1]) + (total[2] + total[3])) + rest;
}

// Calls work(chunk, begin, end) for every chunk of 0 … n.
template <class Work>
void over_chunks(int64_t n, int64_t reads, int n_threads, const Work& work) {
    const int64_t n_chunks = (n + kChunk - 1) / kChunk;
    if (reads < kWorthThreads) n_threads = 1;
    run_threads(n_threads, [&](int thread) {
        for (int64_t c = n_chunks * thread / n_threads; c < n_chunks * (thread + 1) / n_threads; ++c)
            work(c, c * kChunk, std::min(n, (c + 1) * kChunk));
    });
}

// The k sums of parts[chunk][k].
std::vector<double> add_up(const std::vector<double>& parts, size_t k) {
    std::vector<double> sums(k, 0.0);
    for (size_t p = 0; p < parts.size(); ++p) sums[p % k] += parts[p];
    return sums;
}

std::vector<double> parts_of(int64_t n, int64_t k) {
    return std::vector<double>(static_cast<size_t>((n + kChunk - 1) / kChunk * k));
}

}  // namespace

template <class T>
void rows_dot(const T* rows, int64_t k, int64_t n, const double* x, double* out, int n_threads) {
    std::vector<double> parts = parts_of(n, k);
    over_chunks(n, (k + 1) * n, n_threads, [&](int64_t c, int64_t begin, int64_t end) {
        for (int64_t i = 0; i < k; ++i)
            parts[static_cast<size_t>(c * k + i)] = dot(rows + i * n + begin, x + begin, end - begin);
    });
    const std::vector<double> sums = add_up(parts, static_cast<size_t>(k));
    std::copy(sums.begin(), sums.end(), out);
}

template <class T>
void rows_combine(const double* c, const T* rows, int64_t k, int64_t n, double a, const double* x, double* out,
                  int n_threads) {
    over_chunks(n, (k + 2) * n, n_threads, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) out[j] = a * x[j];
        for (int64_t i = 0; i < k; ++i) {
            const T* row = rows + i * n;
            const double scale = c[i];
            for (int64_t j = begin; j < end; ++j) out[j] += scale * static_cast<double>(row[j]);
        }
    });
}

template <class T>
std::pair<double, double> curvature_pair(const double* x, const double* g, const double* x_new, const double* g_new,
                                         const double* scale, int64_t n, T* s, T* y, int n_threads) {
    std::vector<double> parts = parts_of(n, 2);
    over_chunks(n, 6 * n, n_threads, [&](int64_t c, int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) {
            const double f = scale ? scale[j] : 1.0;
            s[j] = static_cast<T>((x_new[j] - x[j]) / f);
            y[j] = static_cast<T>((g_new[j] - g[j]) * f);
        }
        parts[static_cast<size_t>(2 * c)] = dot(s + begin, y + begin, end - begin);
        parts[static_cast<size_t>(2 * c + 1)] = dot(y + begin, y + begin, end - begin);
    });
    const std::vector<double> sums = add_up(parts, 2);
    return {sums[0], sums[1]};
}

#define CRFKIT_INSTANTIATE(T)                                                                                     \
    template void rows_dot(const T*, int64_t, int64_t, const double*, double*, int);                              \
    template void rows_combine(const double*, const T*, int64_t, int64_t, double, const double*, double*, int);   \
    template std::pair<double, double> curvature_pair(const double*, const double*, const double*, const double*, \
                                                      const double*, int64_t, T*, T*, int);
CRFKIT_INSTANTIATE(double)
CRFKIT_INSTANTIATE(float)
#undef CRFKIT_INSTANTIATE

}  // namespace crfkit
