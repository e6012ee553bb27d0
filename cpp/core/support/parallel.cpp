#include "parallel.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace crfkit {

namespace {

constexpr int64_t kAskEvery = 50;  // milliseconds

int64_t milliseconds() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// Threads that are waited for, also when an exception leaves the scope. (libc++ has no std::jthread before version 20.)
struct JoiningThreads {
    std::vector<std::thread> started;
    ~JoiningThreads() {
        for (auto& thread : started) thread.join();
    }
};

}  // namespace

Interrupt::Interrupt(std::function<bool()> poll) : poll_(std::move(poll)), last_(milliseconds()) {}

void Interrupt::ask() {
    const int64_t now = milliseconds();
    if (now - last_ <= kAskEvery) return;
    last_ = now;
    if (poll_()) stop_ = true;
}

void run_threads(int n_threads, const std::function<void(int)>& work) {
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

void share_threads(int n_threads, const std::function<void(int)>& work) {
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

void share_range(int n_threads, int64_t n, int64_t block, const std::function<void(int64_t, int64_t)>& work) {
    std::atomic<int64_t> next{0};
    share_threads(n > block ? n_threads : 1, [&](int) {
        for (int64_t begin = next.fetch_add(block); begin < n; begin = next.fetch_add(block))
            work(begin, std::min(begin + block, n));
    });
}

}  // namespace crfkit
