#include "name_batch.hpp"

#include <algorithm>

namespace crfkit {

void NameBatch::clear(HashKey new_key) {
    key = new_key;
    names.clear();
    pair_names.clear();
    values.clear();
    for (auto* ends : {&item_ends, &pair_ends, &sequence_ends}) ends->clear();
    made.clear();
}

void NameBatch::drop_sequence() {
    item_ends.resize(sequence_ends.empty() ? 0 : sequence_ends.back());
    const size_t kept = item_ends.empty() ? 0 : item_ends.back();
    names.resize(kept);
    if (!values.empty()) values.resize(kept);
    if (pair_ends.size() > item_ends.size()) pair_ends.resize(item_ends.size());
    pair_names.resize(pair_ends.empty() ? 0 : pair_ends.back());
}

std::pair<size_t, size_t> NameBatch::place_of(size_t name) const {
    const auto after = [](const std::vector<size_t>& ends, size_t at) {
        return static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), at) - ends.begin());
    };
    const size_t item = after(item_ends, name), sequence = after(sequence_ends, item);
    return {sequence, item - (sequence > 0 ? sequence_ends[sequence - 1] : 0)};
}

BatchThread::BatchThread(std::function<void(NameBatch&)> work) : work_(std::move(work)), thread_([this] { run(); }) {}

BatchThread::~BatchThread() {
    {
        const std::lock_guard lock(mutex_);
        ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void BatchThread::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return busy_ || ended_; });
        if (!busy_) return;
        lock.unlock();
        try {
            work_(batch_);
        } catch (...) {
            error_ = std::current_exception();
        }
        lock.lock();
        busy_ = false;
        changed_.notify_all();
    }
}

void BatchThread::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !busy_; });
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void BatchThread::hand_over(NameBatch& batch) {
    wait();
    {
        const std::lock_guard lock(mutex_);
        std::swap(batch, batch_);
        busy_ = true;
    }
    changed_.notify_all();
}

}  // namespace crfkit
