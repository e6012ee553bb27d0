// What this machine can do: gigabytes per second of a[i] = b[i] + s * c[i], and 10^9 floating-point operations per
// second of fused multiply-adds. Prints "name threads figure" lines. phases.py compiles and runs it.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

namespace {

double seconds(const std::function<void()>& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
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

// Independent accumulators in registers, so that the units are never idle.
template <typename T>
double fma_rate(int n_threads) {
    typedef T Vector __attribute__((vector_size(64)));
    constexpr int lanes = 64 / sizeof(T), chains = 12;
    const long steps = 20'000'000;
    double best = 0.0;
    for (int run = 0; run < 3; ++run) {
        std::vector<T> sums(n_threads);
        const double taken = seconds([&] {
            on_threads(n_threads, [&](int k) {
                Vector x[chains];
                for (int j = 0; j < chains; ++j) x[j] = Vector{} + T(1 + j);
                const Vector m = Vector{} + T(0.999), d = Vector{} + T(0.001);
                for (long s = 0; s < steps; ++s) {
#pragma GCC unroll 12
                    for (int j = 0; j < chains; ++j) x[j] = x[j] * m + d;
                }
                T sum = 0;
                for (int j = 0; j < chains; ++j)
                    for (int i = 0; i < lanes; ++i) sum += x[j][i];
                sums[k] = sum;
            });
        });
        if (sums[0] == T(-1)) std::puts("");  // the sums are used
        best = std::max(best, 2.0 * lanes * chains * steps * n_threads / taken / 1e9);
    }
    return best;
}

}  // namespace

int main(int argc, char** argv) {
    const int most = argc > 1 ? std::atoi(argv[1]) : 2;
    const std::size_t large = std::size_t(argc > 2 ? std::atoi(argv[2]) : 512) << 17;  // megabytes of one vector
    for (int n = 1; n <= most; ++n) {
        std::printf("memory %d %.3f\n", n, bandwidth(n, large, 1));
        std::printf("cache %d %.3f\n", n, bandwidth(n, std::size_t(1) << 18, 400));  // three vectors of 2 MB
        std::printf("double %d %.3f\n", n, fma_rate<double>(n));
        std::printf("single %d %.3f\n", n, fma_rate<float>(n));
    }
}
