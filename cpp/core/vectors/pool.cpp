#include "pool.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace crfkit {

namespace {

constexpr int64_t kLarge = int64_t{1} << 17;  // doubles: malloc keeps the pages of smaller vectors itself
constexpr size_t kMost = 4;                   // vectors that are kept: as many as an iteration makes and drops

struct Pool {
    std::mutex mutex;
    std::vector<Buffer> kept;  // of one size
};

Pool& pool() {
    static Pool* const only = new Pool;  // never destroyed: arrays may be freed after all else when Python ends
    return *only;
}

}  // namespace

Buffer take_vector(int64_t n) {
    {
        const std::lock_guard lock(pool().mutex);
        std::vector<Buffer>& kept = pool().kept;
        if (!kept.empty() && kept.back().size() == n) {
            Buffer vector = std::move(kept.back());
            kept.pop_back();
            return vector;
        }
    }
    return Buffer(n);
}

void give_vector(Buffer&& vector) {
    if (vector.size() < kLarge) return;
    const std::lock_guard lock(pool().mutex);
    std::vector<Buffer>& kept = pool().kept;
    if (!kept.empty() && kept.back().size() != vector.size()) kept.clear();
    if (kept.size() < kMost) kept.push_back(std::move(vector));
}

void free_vectors() {
    const std::lock_guard lock(pool().mutex);
    pool().kept.clear();
}

}  // namespace crfkit
