#include "vectors.hpp"

#include <algorithm>
#include <vector>

#include "parallel.hpp"

#define CRFKIT_LANES 2
#include "simd.hpp"

namespace crfkit {

namespace {

constexpr int64_t kChunk = 4096;            // doubles: a chunk of x stays in the first cache
constexpr int64_t kWorthThreads = 1 << 17;  // doubles read in all, below which threads cost more than they save

double dot(const double* x, const double* y, int64_t n) {
    V total[4] = {};
    int64_t i = 0;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes)
        for (int b = 0; b < 4; ++b) total[b] += load(x + i + b * kLanes) * load(y + i + b * kLanes);
    double rest = 0.0;
    for (; i < n; ++i) rest += x[i] * y[i];
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

}  // namespace

void rows_dot(const double* rows, int64_t k, int64_t n, const double* x, double* out, int n_threads) {
    std::vector<double> parts(static_cast<size_t>((n + kChunk - 1) / kChunk * k));
    over_chunks(n, (k + 1) * n, n_threads, [&](int64_t c, int64_t begin, int64_t end) {
        for (int64_t i = 0; i < k; ++i)
            parts[static_cast<size_t>(c * k + i)] = dot(rows + i * n + begin, x + begin, end - begin);
    });
    std::fill(out, out + k, 0.0);
    for (size_t p = 0; p < parts.size(); ++p) out[static_cast<int64_t>(p) % k] += parts[p];
}

void rows_combine(const double* c, const double* rows, int64_t k, int64_t n, double a, const double* x, double* out,
                  int n_threads) {
    over_chunks(n, (k + 2) * n, n_threads, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) out[j] = a * x[j];
        for (int64_t i = 0; i < k; ++i) {
            const double* row = rows + i * n;
            const double scale = c[i];
            for (int64_t j = begin; j < end; ++j) out[j] += scale * row[j];
        }
    });
}

}  // namespace crfkit
