// A barrier for threads that meet every few microseconds: it spins, and yields when that takes long.
#pragma once

#include <atomic>
#include <thread>

namespace crfkit {

class Barrier {
public:
    explicit Barrier(int n_threads) : n_threads_(n_threads), waiting_(0) {}

    void wait() {
        if (n_threads_ == 1) return;
        const int phase = phase_.load(std::memory_order_relaxed);
        if (waiting_.fetch_add(1, std::memory_order_acq_rel) + 1 == n_threads_) {
            waiting_.store(0, std::memory_order_relaxed);
            phase_.store(phase + 1, std::memory_order_release);
            return;
        }
        for (int spins = 0; phase_.load(std::memory_order_acquire) == phase; ++spins)
            if (spins > 2000) std::this_thread::yield();
    }

private:
    const int n_threads_;
    std::atomic<int> waiting_;
    std::atomic<int> phase_{0};
};

}  // namespace crfkit
