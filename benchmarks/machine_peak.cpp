// What this machine can do, with the vector instructions that it is compiled for. phases.py compiles it for each set of
// kernels and runs it.
//
//     machine_peak memory THREADS MEGABYTES    gigabytes per second of a[i] = b[i] + s * c[i]
//     machine_peak arithmetic THREADS          10^9 floating-point operations per second in registers
//
// Prints "name threads figure" lines, for one thread and for all.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

double seconds(const std::function<void()>& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double core_seconds() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

void on_threads(int n, const std::function<void(int)>& work) {
    std::vector<std::thread> threads;
    for (int k = 1; k < n; ++k) threads.emplace_back(work, k);
    work(0);
    for (auto& thread : threads) thread.join();
}

// Three vectors of `size` doubles each, shared out over the threads; the best of several runs.
double bandwidth(int n_threads, std::size_t size, int repeats) {
    std::vector<double> a(size, 0.0), b(size, 1.0), c(size, 2.0);
    const std::size_t share = size / n_threads;
    double best = 0.0;
    for (int run = 0; run < 5; ++run) {
        const double taken = seconds([&] {
            on_threads(n_threads, [&](int k) {
                double* __restrict x = a.data() + k * share;
                const double* __restrict y = b.data() + k * share;
                const double* __restrict z = c.data() + k * share;
                for (int r = 0; r < repeats; ++r) {
                    for (std::size_t i = 0; i < share; ++i) x[i] = y[i] + 3.0 * z[i];
                    asm volatile("" ::: "memory");
                }
            });
        });
        best = std::max(best, 3.0 * 8.0 * share * n_threads * repeats / taken / 1e9);
    }
    return best;
}

#if defined(__AVX512F__)
constexpr int vector_bytes = 64, chains = 16;  // of 32 registers
#elif defined(__AVX__)
constexpr int vector_bytes = 32, chains = 12;  // of 16 registers
#else
constexpr int vector_bytes = 16, chains = 12;
#endif

// Two units that take 4 cycles need 8 independent accumulators to be busy; there are more, and all of them, the factor
// and the summand fit into the registers. Without fused multiply-adds the compiler makes a product and a sum of each.
template <typename T>
double work(long steps) {
    typedef T Vector __attribute__((vector_size(vector_bytes)));
    Vector x[chains];
#pragma GCC unroll 16
    for (int j = 0; j < chains; ++j) x[j] = Vector{} + T(1 + j);
    Vector m = Vector{} + T(0.999), d = Vector{} + T(0.001);
    asm volatile("" : "+v"(m), "+v"(d));  // not read from memory again
    for (long s = 0; s < steps; ++s) {
#pragma GCC unroll 16
        for (int j = 0; j < chains; ++j) {
            x[j] = x[j] * m + d;
            asm volatile("" : "+v"(x[j]));  // stays in a register, and is computed in every step
        }
    }
    Vector total = x[0];
#pragma GCC unroll 16
    for (int j = 1; j < chains; ++j) total += x[j];
    T sum = 0;
    for (unsigned i = 0; i < vector_bytes / sizeof(T); ++i) sum += total[i];
    return sum;
}

// The sum of what the threads reach at the same time. Seconds are those that a thread had a core, so that other
// programs on the machine matter little.
template <typename T>
double arithmetic(int n_threads) {
    constexpr double lanes = vector_bytes / sizeof(T);
    const long steps = 1'000'000;
    std::vector<double> best(n_threads), sums(n_threads);
    on_threads(n_threads, [&](int k) {
        for (int run = 0; run < 50; ++run) {
            const double begin = core_seconds();
            sums[k] += work<T>(steps);
            best[k] = std::max(best[k], 2.0 * lanes * chains * steps / (core_seconds() - begin) / 1e9);
        }
    });
    if (sums[0] == -1.0) std::puts("");  // the sums are used
    return std::accumulate(best.begin(), best.end(), 0.0);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    const int most = argc > 2 ? std::atoi(argv[2]) : 1;
    const std::size_t large = std::size_t(argc > 3 ? std::atoi(argv[3]) : 512) << 17;  // doubles of one vector
    for (const int n : most > 1 ? std::vector<int>{1, most} : std::vector<int>{1}) {
        if (what == "memory") {
            std::printf("memory %d %.3f\n", n, bandwidth(n, large, 1));
            std::printf("cache %d %.3f\n", n, bandwidth(n, std::size_t(1) << 18, 400));  // three vectors of 2 MB
        } else if (what == "arithmetic") {
            std::printf("double %d %.3f\n", n, arithmetic<double>(n));
            std::printf("single %d %.3f\n", n, arithmetic<float>(n));
        } else {
            std::fputs("usage: machine_peak memory|arithmetic THREADS [MEGABYTES]\n", stderr);
            return 2;
        }
    }
}
