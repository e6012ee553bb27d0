// Threads over parts of the work. The parts depend on the data and the thread count only, and their results are reduced
// in their order, so that the same input gives the same bits. Threads are started per call: tens of microseconds
// against milliseconds of work, nothing spins, fork is safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
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

// Runs work(0) on the calling thread and work(1) … work(n_threads - 1) on others as far as they come in time; rethrows
// the first exception. Each call of `work` is to take up what is left to do until nothing is. A thread that has not
// begun by the time the calling one is done is not waited for: on a busy machine it may get its turn much later.
template <class Work>
void share_threads(int n_threads, const Work& work) {
    struct Shared {
        std::mutex mutex;
        std::condition_variable left;
        int working = 0;
        bool closed = false;
        std::exception_ptr error;
    };
    const auto shared = std::make_shared<Shared>();
    const auto fail = [&] {
        const std::lock_guard lock(shared->mutex);
        if (!shared->error) shared->error = std::current_exception();
    };
    for (int thread = 1; thread < n_threads; ++thread) try {
            std::thread([shared, thread, &work] {
                {
                    const std::lock_guard lock(shared->mutex);
                    if (shared->closed) return;  // `work` may be gone
                    ++shared->working;
                }
                std::exception_ptr error;
                try {
                    work(thread);
                } catch (...) {
                    error = std::current_exception();
                }
                const std::lock_guard lock(shared->mutex);
                if (error && !shared->error) shared->error = error;
                if (--shared->working == 0) shared->left.notify_all();
            }).detach();
        } catch (const std::system_error&) {
            break;  // there are no more threads to be had
        }
    try {
        work(0);
    } catch (...) {
        fail();
    }
    std::unique_lock lock(shared->mutex);
    shared->closed = true;
    shared->left.wait(lock, [&] { return shared->working == 0; });
    if (shared->error) std::rethrow_exception(shared->error);
}

// Calls work(begin, end) for the blocks of 0 … n, on the calling thread and others.
template <class Work>
void share_range(int n_threads, int64_t n, int64_t block, const Work& work) {
    std::atomic<int64_t> next{0};
    share_threads(n > block ? n_threads : 1, [&](int) {
        for (int64_t begin = next.fetch_add(block); begin < n; begin = next.fetch_add(block))
            work(begin, std::min(begin + block, n));
    });
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
