#include "hash.hpp"

#include <random>

namespace crfkit {

HashKey secret_key() {
    static const HashKey key = [] {
        std::random_device source;
        const auto word = [&] { return static_cast<uint64_t>(source()) << 32 | source(); };
        return HashKey{word() | 1, word()};
    }();
    return key;
}

}  // namespace crfkit
