#include "orthants.hpp"

#include <algorithm>
#include <cmath>

#include "../support/parallel.hpp"

namespace crfkit {

namespace {

constexpr int64_t kChunk = 8192;
constexpr int64_t kWorthThreads = 1 << 16;  // weights, below which threads cost more than they save
constexpr double kCurved = 1e-10;           // s·y of a pair that is used, relative to y·H₀·y

int64_t count_chunks(int64_t n) { return (n + kChunk - 1) / kChunk; }

// Calls work(chunk, begin, end) for every chunk of 0 … n.
template <class Work>
void over_chunks(int64_t n, int n_threads, const Work& work) {
    const int64_t chunks = count_chunks(n);
    if (n < kWorthThreads) n_threads = 1;
    run_threads(n_threads, [&](int thread) {
        for (int64_t c = chunks * thread / n_threads; c < chunks * (thread + 1) / n_threads; ++c)
            work(static_cast<size_t>(c), c * kChunk, std::min(n, (c + 1) * kChunk));
    });
}

// −(the shortest sub-gradient) of one weight.
double descent(double w, double g, double strength) {
    if (w != 0.0) return -g - std::copysign(strength, w);
    return std::copysign(std::max(std::abs(g) - strength, 0.0), -g);
}

constexpr int kSums = 8;  // partial sums, so that additions do not wait for each other

template <class Term>
double sum_of(int64_t n, const Term& term) {
    double sums[kSums] = {};
    int64_t i = 0;
    for (; i + kSums <= n; i += kSums)
        for (int b = 0; b < kSums; ++b) sums[b] += term(i + b);
    double total = 0.0;
    for (; i < n; ++i) total += term(i);
    for (const double sum : sums) total += sum;
    return total;
}

}  // namespace

double sum_absolute(const double* w, int64_t n, int n_threads) {
    std::vector<double> parts(static_cast<size_t>(count_chunks(n)));
    over_chunks(n, n_threads, [&](size_t c, int64_t begin, int64_t end) {
        parts[c] = sum_of(end - begin, [&](int64_t i) { return std::abs(w[begin + i]); });
    });
    double total = 0.0;
    for (const double part : parts) total += part;
    return total;
}

MovingWeights moving_weights(const double* w, const double* g, double strength, int64_t n, int n_threads) {
    // A weight that is not finite is "free", so that its p shows in ‖p‖².
    std::vector<MovingWeights> parts(static_cast<size_t>(count_chunks(n)));
    over_chunks(n, n_threads, [&](size_t c, int64_t begin, int64_t end) {
        MovingWeights& part = parts[c];
        for (int64_t j = begin; j < end; ++j) {
            if (w[j] == 0.0 && std::abs(g[j]) <= strength) continue;
            const double p = descent(w[j], g[j], strength);
            part.square += p * p;
            (w[j] != 0.0 ? part.free : part.entering).push_back(j);
            (w[j] != 0.0 ? part.p_free : part.p_entering).push_back(p);
        }
    });
    MovingWeights all;
    size_t n_free = 0, n_entering = 0;
    for (const MovingWeights& part : parts) n_free += part.free.size(), n_entering += part.entering.size();
    all.free.reserve(n_free), all.p_free.reserve(n_free);
    all.entering.reserve(n_entering), all.p_entering.reserve(n_entering);
    const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    for (const MovingWeights& part : parts) {
        append(all.free, part.free), append(all.p_free, part.p_free);
        append(all.entering, part.entering), append(all.p_entering, part.p_entering);
        all.square += part.square;
    }
    return all;
}

void move_columns(const double* rows, int64_t k, const int64_t* from, int64_t n_from, const int64_t* to, int64_t n_to,
                  double* out) {
    std::vector<int64_t> place(static_cast<size_t>(n_to), -1);
    for (int64_t a = 0, b = 0; a < n_from && b < n_to;) {
        if (from[a] == to[b])
            place[static_cast<size_t>(b++)] = a++;
        else if (from[a] < to[b])
            ++a;
        else
            ++b;
    }
    for (int64_t i = 0; i < k; ++i)
        for (int64_t b = 0; b < n_to; ++b) {
            const int64_t a = place[static_cast<size_t>(b)];
            out[i * n_to + b] = a < 0 ? 0.0 : rows[i * n_from + a];
        }
}

namespace {

// excess·x of the head.
std::vector<double> beyond_diagonal(const Head& head, const double* x) {
    std::vector<double> out(static_cast<size_t>(head.size), 0.0);
    for (int64_t i = 0; i < head.size; ++i) {
        const double xi = x[head.places[i]];
        const double* row = head.excess + i * head.size;  // symmetric: a row is a column
        for (int64_t j = 0; j < head.size; ++j) out[static_cast<size_t>(j)] += xi * row[j];
    }
    return out;
}

}  // namespace

double two_loop(const double* g, const double* s, const double* y, int64_t k, int64_t n, const double* diagonal,
                const Head& head, double* d) {
    const auto dot = [n](const double* a, const double* b) {
        return sum_of(n, [&](int64_t i) { return a[i] * b[i]; });
    };
    std::vector<double> sy(static_cast<size_t>(k)), alpha(static_cast<size_t>(k));
    double gamma = 0.0, newest = 0.0;
    int64_t last = -1;
    for (int64_t i = 0; i < k; ++i) {
        const double* yi = y + i * n;
        const double curvature = dot(s + i * n, yi);
        const double yy = sum_of(n, [&](int64_t j) { return yi[j] * diagonal[j] * yi[j]; });
        const bool used = yy > 0.0 && curvature > kCurved * yy;
        sy[static_cast<size_t>(i)] = used ? curvature : 0.0;
        if (used) last = i, newest = yy;
    }
    if (last >= 0) {
        const double* yi = y + last * n;
        const std::vector<double> more = beyond_diagonal(head, yi);
        for (int64_t j = 0; j < head.size; ++j) newest += yi[head.places[j]] * more[static_cast<size_t>(j)];
        gamma = newest > 0.0 ? sy[static_cast<size_t>(last)] / newest : 1.0;
    }
    std::copy(g, g + n, d);
    for (int64_t i = k; i-- > 0;) {
        const auto at = static_cast<size_t>(i);
        if (sy[at] == 0.0) continue;
        alpha[at] = dot(s + i * n, d) / sy[at];
        for (int64_t j = 0; j < n; ++j) d[j] -= alpha[at] * y[i * n + j];
    }
    const double scale = gamma > 0.0 ? gamma : 1.0;
    const std::vector<double> more = beyond_diagonal(head, d);
    for (int64_t j = 0; j < n; ++j) d[j] *= scale * diagonal[j];
    for (int64_t j = 0; j < head.size; ++j) d[head.places[j]] += scale * more[static_cast<size_t>(j)];
    for (int64_t i = 0; i < k; ++i) {
        const auto at = static_cast<size_t>(i);
        if (sy[at] == 0.0) continue;
        const double beta = alpha[at] - dot(y + i * n, d) / sy[at];
        for (int64_t j = 0; j < n; ++j) d[j] += beta * s[i * n + j];
    }
    return gamma;
}

}  // namespace crfkit
