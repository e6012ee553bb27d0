// A binary heap of the numbers 0 … n-1 by a key that may change; the largest key is on top.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace crfkit {

class IndexedHeap {
public:
    explicit IndexedHeap(int64_t n) : keys_(static_cast<size_t>(n), 0.0), heap_(keys_.size()), where_(keys_.size()) {
        for (size_t k = 0; k < heap_.size(); ++k) heap_[k] = where_[k] = static_cast<int64_t>(k);
    }

    int64_t top() const { return heap_[0]; }
    double largest() const { return keys_[heap_[0]]; }

    void set(int64_t item, double key) {
        const bool up = key > keys_[item];
        keys_[item] = key;
        up ? rise(where_[item]) : sink(where_[item]);
    }

private:
    void swap(int64_t a, int64_t b) {
        std::swap(heap_[a], heap_[b]);
        where_[heap_[a]] = a;
        where_[heap_[b]] = b;
    }
    void rise(int64_t k) {
        for (; k > 0 && keys_[heap_[(k - 1) / 2]] < keys_[heap_[k]]; k = (k - 1) / 2) swap(k, (k - 1) / 2);
    }
    void sink(int64_t k) {
        const int64_t n = static_cast<int64_t>(heap_.size());
        for (int64_t child; (child = 2 * k + 1) < n; k = child) {
            if (child + 1 < n && keys_[heap_[child + 1]] > keys_[heap_[child]]) ++child;
            if (keys_[heap_[child]] <= keys_[heap_[k]]) return;
            swap(k, child);
        }
    }

    std::vector<double> keys_;
    std::vector<int64_t> heap_, where_;
};

}  // namespace crfkit
