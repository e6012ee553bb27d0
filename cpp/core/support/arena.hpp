// Text put together piece by piece, which stays where it is until everything is forgotten at once.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

namespace crfkit {

class Arena {
public:
    Arena() = default;
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    Arena(Arena&&) = default;
    Arena& operator=(Arena&&) = default;

    // The pieces, one after the other.
    std::string_view join(std::initializer_list<std::string_view> pieces) {
        size_t size = 0;
        for (const auto piece : pieces) size += piece.size();
        char* out = room(size);
        char* end = out;
        for (const auto piece : pieces) end += piece.copy(end, piece.size());
        used_ += size;
        return {out, size};
    }
    // Room for a text of at most `most` bytes; write(room) returns the end of what it wrote there, or null for nothing.
    template <class Write>
    std::string_view write(size_t most, const Write& write) {
        char* out = room(most);
        const char* end = write(out);
        if (!end) return {};
        used_ += static_cast<size_t>(end - out);
        return {out, static_cast<size_t>(end - out)};
    }
    // The memory is kept, except that of unusually long texts.
    void clear() {
        if (chunks_.size() > 1) chunks_.resize(1);
        used_ = 0;
    }

private:
    struct Chunk {
        std::unique_ptr<char[]> bytes;
        size_t size;
    };
    char* room(size_t size) {
        if (chunks_.empty() || chunks_.back().size - used_ < size) {
            const size_t wanted = std::max(size, kChunk);
            chunks_.push_back({std::make_unique_for_overwrite<char[]>(wanted), wanted});
            used_ = 0;
        }
        return chunks_.back().bytes.get() + used_;
    }

    static constexpr size_t kChunk = size_t{1} << 14;
    std::vector<Chunk> chunks_;
    size_t used_ = 0;  // of the last chunk
};

}  // namespace crfkit
