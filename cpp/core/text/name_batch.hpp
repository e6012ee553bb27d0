// Attributes of items, on their way into encoded sequences: read first, looked up many at a time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "../support/arena.hpp"
#include "sequences.hpp"

namespace crfkit {

// The names of the items of some sequences, with their values. Whoever reads them keeps the texts.
struct NameBatch {
    HashKey key;  // of the hashes
    std::vector<HashedName> names, pair_names;
    std::vector<double> values;                // of `names`; empty while all are 1
    std::vector<size_t> item_ends, pair_ends;  // of each item among the names
    std::vector<size_t> sequence_ends;         // of each sequence among the items
    Arena made;                                // names that were put together

    // Forgets everything but the memory; hashes will be of this key.
    void clear(HashKey new_key);
    // Forgets the sequence under way.
    void drop_sequence();
    // The place of a name: (sequence, item of it).
    std::pair<size_t, size_t> place_of(size_t name) const;
};

// Another thread that works through batches while the caller fills the next one.
class BatchThread {
public:
    explicit BatchThread(std::function<void(NameBatch&)> work);
    // Waits for the thread to end; the batch that it has is worked through.
    ~BatchThread();
    // Hands a batch over and leaves an empty one; waits for the one before. Throws what working on that threw.
    void hand_over(NameBatch& batch);
    // Waits until nothing is under way.
    void wait();

private:
    void run();

    std::function<void(NameBatch&)> work_;
    NameBatch batch_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool busy_ = false, ended_ = false;
    std::exception_ptr error_;
    std::thread thread_;
};

}  // namespace crfkit
