#include "vectors.hpp"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "../support/parallel.hpp"
#include "chunks.hpp"

namespace crfkit {

namespace {

constexpr int64_t kChunk = 4096;            // doubles: a chunk of x, scaled or not, stays in the first cache
constexpr int64_t kTogether = 8;            // chunks that a thread takes at a time
constexpr int64_t kWorthThreads = 1 << 17;  // doubles read in all, below which threads cost more than they save

template <class T>
const ChunkKernels<T>& kernels() {
    if constexpr (std::is_same_v<T, double>)
        return vector_kernels().doubles;
    else if constexpr (std::is_same_v<T, float>)
        return vector_kernels().floats;
    else
        return vector_kernels().halves;
}

// Calls work(chunk, begin, end) for every chunk of 0 … n.
template <class Work>
void over_chunks(int64_t n, int64_t reads, int n_threads, const Work& work) {
    const int64_t n_chunks = (n + kChunk - 1) / kChunk;
    share_range(reads < kWorthThreads ? 1 : n_threads, n_chunks, kTogether, [&](int64_t first, int64_t last) {
        for (int64_t c = first; c < last; ++c) work(c, c * kChunk, std::min(n, (c + 1) * kChunk));
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
void rows_dot(const T* rows, int64_t k, int64_t n, const double* x, const RowScale<T>* scale, double* out,
              int n_threads) {
    const ChunkKernels<T>& loops = kernels<T>();
    std::vector<double> parts = parts_of(n, k);
    over_chunks(n, (k + 1) * n, n_threads, [&](int64_t c, int64_t begin, int64_t end) {
        double scaled[kChunk];
        if (scale) loops.multiply(scale + begin, x + begin, end - begin, scaled);
        const double* own = scale ? scaled : x + begin;
        loops.dot_rows(rows + begin, k, n, own, end - begin, parts.data() + c * k);
    });
    const std::vector<double> sums = add_up(parts, static_cast<size_t>(k));
    std::copy(sums.begin(), sums.end(), out);
}

template <class T>
void rows_combine(const double* c, const T* rows, int64_t k, int64_t n, double a, const double* x,
                  const RowScale<T>* scale, double* out, double* product, int n_threads) {
    const ChunkKernels<T>& loops = kernels<T>();
    std::vector<double> parts = parts_of(n, 1);
    over_chunks(n, (k + 2) * n, n_threads, [&](int64_t chunk, int64_t begin, int64_t end) {
        double scaled[kChunk];
        if (scale) loops.multiply(scale + begin, x + begin, end - begin, scaled);
        loops.combine(c, rows + begin, k, n, end - begin, a, scale ? scaled : x + begin, out + begin);
        if (scale) loops.multiply(scale + begin, out + begin, end - begin, out + begin);
        if (product) parts[static_cast<size_t>(chunk)] = kernels<double>().dot(x + begin, out + begin, end - begin);
    });
    if (product) *product = add_up(parts, 1)[0];
}

template <class T>
double rows_direction(const double* c, const T* rows, int64_t k, int64_t n, double a, const double* x,
                      const RowScale<T>* scale, T* row, int n_threads) {
    const ChunkKernels<T>& loops = kernels<T>();
    std::vector<double> parts = parts_of(n, 1);
    over_chunks(n, (k + 2) * n, n_threads, [&](int64_t chunk, int64_t begin, int64_t end) {
        const int64_t size = end - begin;
        double sum[kChunk];
        const double* own = x + begin;
        if (scale) loops.multiply(scale + begin, own, size, sum);
        loops.combine(c, rows + begin, k, n, size, a, scale ? sum : own, sum);
        loops.round(sum, size, row + begin);
        loops.widen(row + begin, scale ? scale + begin : nullptr, size, sum);
        parts[static_cast<size_t>(chunk)] = kernels<double>().dot(own, sum, size);
    });
    return add_up(parts, 1)[0];
}

template <class T>
void advance(const double* x, double a, const T* row, const RowScale<T>* scale, int64_t n, double* out, int n_threads) {
    const ChunkKernels<T>& loops = kernels<T>();
    over_chunks(n, 3 * n, n_threads, [&](int64_t, int64_t begin, int64_t end) {
        double d[kChunk];
        loops.widen(row + begin, scale ? scale + begin : nullptr, end - begin, d);
        kernels<double>().combine(&a, d, 1, 0, end - begin, 1.0, x + begin, out + begin);
    });
}

template <class T>
double row_dot(const T* row, const RowScale<T>* scale, int64_t n, const double* x, int n_threads) {
    std::vector<double> parts = parts_of(n, 1);
    over_chunks(n, 2 * n, n_threads, [&](int64_t c, int64_t begin, int64_t end) {
        double d[kChunk];
        kernels<T>().widen(row + begin, scale ? scale + begin : nullptr, end - begin, d);
        parts[static_cast<size_t>(c)] = kernels<double>().dot(x + begin, d, end - begin);
    });
    return add_up(parts, 1)[0];
}

std::pair<double, double> add_and_measure(double a, const double* x, double* y, int64_t n, int n_threads) {
    const ChunkKernels<double>& loops = kernels<double>();
    std::vector<double> parts = parts_of(n, 2);
    over_chunks(n, 2 * n, n_threads, [&](int64_t c, int64_t begin, int64_t end) {
        loops.combine(&a, x + begin, 1, n, end - begin, 1.0, y + begin, y + begin);
        parts[static_cast<size_t>(2 * c)] = loops.dot(x + begin, x + begin, end - begin);
        parts[static_cast<size_t>(2 * c + 1)] = loops.dot(y + begin, y + begin, end - begin);
    });
    const std::vector<double> sums = add_up(parts, 2);
    return {sums[0], sums[1]};
}

template <class T>
std::pair<double, double> add_step(T* rows, int64_t k, int64_t n, int64_t s, int64_t y, double a, const T* row,
                                   const double* g, const double* g_new, const RowScale<T>* scale, double* out,
                                   int n_threads) {
    const ChunkKernels<T>& loops = kernels<T>();
    std::vector<double> parts = parts_of(n, k + 2);
    over_chunks(n, (k + 4) * n, n_threads, [&](int64_t c, int64_t begin, int64_t end) {
        const int64_t size = end - begin;
        double* const products = parts.data() + c * (k + 2);
        T *const own_s = rows + s * n + begin, *const own_y = rows + y * n + begin;
        double scaled[kChunk];
        loops.step(a, row + begin, g + begin, g_new + begin, scale ? scale + begin : nullptr, size, own_s, own_y);
        if (scale) loops.multiply(scale + begin, g_new + begin, size, scaled);
        loops.dot_rows(rows + begin, k, n, scale ? scaled : g_new + begin, size, products);
        products[k] = loops.dot(own_s, own_y, size);
        products[k + 1] = loops.dot(own_y, own_y, size);
    });
    const std::vector<double> sums = add_up(parts, static_cast<size_t>(k + 2));
    std::copy(sums.begin(), sums.begin() + k, out);
    return {sums[static_cast<size_t>(k)], sums[static_cast<size_t>(k + 1)]};
}

template <class T>
std::pair<double, double> curvature_pair(const double* x, const double* g, const double* x_new, const double* g_new,
                                         const RowScale<T>* scale, int64_t n, T* s, T* y, int n_threads) {
    const ChunkKernels<T>& loops = kernels<T>();
    std::vector<double> parts = parts_of(n, 2);
    over_chunks(n, 6 * n, n_threads, [&](int64_t c, int64_t begin, int64_t end) {
        loops.differences(x + begin, g + begin, x_new + begin, g_new + begin, scale ? scale + begin : nullptr,
                          end - begin, s + begin, y + begin);
        parts[static_cast<size_t>(2 * c)] = loops.dot(s + begin, y + begin, end - begin);
        parts[static_cast<size_t>(2 * c + 1)] = loops.dot(y + begin, y + begin, end - begin);
    });
    const std::vector<double> sums = add_up(parts, 2);
    return {sums[0], sums[1]};
}

#define CRFKIT_INSTANTIATE(T)                                                                                        \
    template void rows_dot(const T*, int64_t, int64_t, const double*, const RowScale<T>*, double*, int);             \
    template void rows_combine(const double*, const T*, int64_t, int64_t, double, const double*, const RowScale<T>*, \
                               double*, double*, int);                                                               \
    template std::pair<double, double> curvature_pair(const double*, const double*, const double*, const double*,    \
                                                      const RowScale<T>*, int64_t, T*, T*, int);
CRFKIT_INSTANTIATE(double)
CRFKIT_INSTANTIATE(float)
CRFKIT_INSTANTIATE(uint16_t)
#undef CRFKIT_INSTANTIATE

#define CRFKIT_INSTANTIATE(T)                                                                             \
    template double rows_direction(const double*, const T*, int64_t, int64_t, double, const double*,      \
                                   const RowScale<T>*, T*, int);                                          \
    template void advance(const double*, double, const T*, const RowScale<T>*, int64_t, double*, int);    \
    template double row_dot(const T*, const RowScale<T>*, int64_t, const double*, int);                   \
    template std::pair<double, double> add_step(T*, int64_t, int64_t, int64_t, int64_t, double, const T*, \
                                                const double*, const double*, const RowScale<T>*, double*, int);
CRFKIT_INSTANTIATE(float)
CRFKIT_INSTANTIATE(uint16_t)
#undef CRFKIT_INSTANTIATE

}  // namespace crfkit
