// Aligned storage for numbers; large ones ask for huge pages, which random row access needs.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#ifdef __linux__
#include <sys/mman.h>
#endif
#ifdef _WIN32
#include <malloc.h>
#endif

namespace crfkit {

template <class Real>
class BufferOf {
public:
    BufferOf() = default;
    explicit BufferOf(int64_t size) : size_(size) {
        constexpr size_t kHugePage = size_t{1} << 21;
        if (size > int64_t{1} << 59) throw std::bad_alloc();
        size_t bytes = static_cast<size_t>(size > 0 ? size : 1) * sizeof(Real);
        const size_t alignment = bytes >= kHugePage / 4 ? kHugePage : 64;
        bytes = (bytes + alignment - 1) / alignment * alignment;
        data_ = static_cast<Real*>(allocate(alignment, bytes));
        if (!data_) throw std::bad_alloc();
#ifdef __linux__
        if (alignment == kHugePage) madvise(data_, bytes, MADV_HUGEPAGE);
#endif
    }
    BufferOf(BufferOf&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    BufferOf& operator=(BufferOf&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~BufferOf() { release(data_); }

    Real* data() const { return data_; }
    int64_t size() const { return size_; }
    void zero() { std::memset(data_, 0, static_cast<size_t>(size_) * sizeof(Real)); }
    void reserve(int64_t size) {
        if (size > size_) *this = BufferOf(size);
    }

private:
#ifdef _WIN32
    static void* allocate(size_t alignment, size_t bytes) { return _aligned_malloc(bytes, alignment); }
    static void release(void* data) { _aligned_free(data); }
#else
    static void* allocate(size_t alignment, size_t bytes) { return std::aligned_alloc(alignment, bytes); }
    static void release(void* data) { std::free(data); }
#endif

    Real* data_ = nullptr;
    int64_t size_ = 0;
};

using Buffer = BufferOf<double>;

}  // namespace crfkit
