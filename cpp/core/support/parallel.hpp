// Threads over contiguous ranges of sequences. Ranges depend on the data and the thread count only,
// and partial results are reduced in thread order, so the same input gives the same bits. Threads are
// started per call: tens of microseconds against milliseconds of work, nothing spins, fork is safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace crfkit {

struct Interrupted : std::exception {
    const char* what() const noexcept override { return "interrupted"; }
};

// Lets the calling thread ask every 50 ms whether to go on; the others see its answer.
class Interrupt {
public:
    explicit Interrupt(std::function<bool()> poll) : poll_(std::move(poll)) {}
    // Throws Interrupted once the poll has said stop.
    void check(int thread) {
        if (thread == 0 && poll_) {
            const auto now = std::chrono::steady_clock::now();
            if (now - last_ > std::chrono::milliseconds(50)) {
                last_ = now;
                if (poll_()) stop_ = true;
            }
        }
        if (stop_.load(std::memory_order_relaxed)) throw Interrupted();
    }

private:
    std::function<bool()> poll_;
    std::atomic<bool> stop_{false};
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Threads that are waited for, also when an exception leaves the scope. (libc++ has no std::jthread before version 20.)
struct JoiningThreads {
    std::vector<std::thread> started;
    ~JoiningThreads() {
        for (auto& thread : started) thread.join();
    }
};

// Runs work(0) … work(n_threads - 1), the first on the calling thread; rethrows the first exception.
template <class Work>
void run_threads(int n_threads, const Work& work) {
    std::vector<std::exception_ptr> errors(static_cast<size_t>(n_threads));
    const auto guarded = [&](int thread) {
        try {
            work(thread);
        } catch (...) {
            errors[static_cast<size_t>(thread)] = std::current_exception();
        }
    };
    {
        // Nobody begins before all are there: work that waits for the others would wait for ever if one cannot start.
        std::atomic<int> gate{0};
        constexpr int kGo = 1, kCancelled = 2;
        const auto open = [&](int how) {
            gate.store(how);
            gate.notify_all();
        };
        JoiningThreads threads;
        try {
            for (int thread = 1; thread < n_threads; ++thread)
                threads.started.emplace_back([&, thread] {
                    gate.wait(0);
                    if (gate.load() == kGo) guarded(thread);
                });
        } catch (...) {
            open(kCancelled);
            throw;
        }
        open(kGo);
        guarded(0);
    }
    for (const auto& error : errors)
        if (error) std::rethrow_exception(error);
}

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
