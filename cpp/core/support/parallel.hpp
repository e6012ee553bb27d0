// Threads over parts of the work. The parts depend on the data and the thread count only, and their results are reduced
// in their order, so that the same input gives the same bits. Threads are started per call: tens of microseconds
// against milliseconds of work, nothing spins, fork is safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <utility>
#include <vector>

namespace crfkit {

struct Interrupted : std::exception {
    const char* what() const noexcept override { return "interrupted"; }
};

// Lets the calling thread ask every 50 ms whether to go on; the others see its answer.
class Interrupt {
public:
    explicit Interrupt(std::function<bool()> poll);
    // Throws Interrupted once the poll has said stop.
    void check(int thread) {
        if (thread == 0 && poll_) ask();
        if (stop_.load(std::memory_order_relaxed)) throw Interrupted();
    }

private:
    void ask();
    std::function<bool()> poll_;
    std::atomic<bool> stop_{false};
    int64_t last_;  // milliseconds of the steady clock
};

// Runs work(0) … work(n_threads - 1), the first on the calling thread; rethrows the first exception.
void run_threads(int n_threads, const std::function<void(int)>& work);

// Runs work(0) on the calling thread and work(1) … work(n_threads - 1) on others as far as they come in time; rethrows
// the first exception. Each call of `work` is to take up what is left to do until nothing is. A thread that has not
// begun by the time the calling one is done is not waited for: on a busy machine it may get its turn much later.
void share_threads(int n_threads, const std::function<void(int)>& work);

// Calls work(begin, end) for the blocks of 0 … n, on the calling thread and others.
void share_range(int n_threads, int64_t n, int64_t block, const std::function<void(int64_t, int64_t)>& work);

// Splits 0 … n into n_parts ranges of about equal cost; cumulative(i) is the cost of the first i.
template <class Cumulative>
std::vector<int64_t> split_by_cost(int64_t n, int n_parts, const Cumulative& cumulative) {
    std::vector<int64_t> bounds{0};
    for (int part = 1; part < n_parts; ++part) {
        const double target = cumulative(n) * part / n_parts;
        int64_t low = bounds.back(), high = n;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            (cumulative(middle) < target) ? low = middle + 1 : high = middle;
        }
        bounds.push_back(low);
    }
    bounds.push_back(n);
    return bounds;
}

}  // namespace crfkit
