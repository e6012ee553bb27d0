// Aligned storage for doubles; large ones ask for huge pages, which random row access needs.
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

class Buffer {
public:
    Buffer() = default;
    explicit Buffer(int64_t size) : size_(size) {
        constexpr size_t kHugePage = size_t{1} << 21;
        if (size > int64_t{1} << 59) throw std::bad_alloc();
        size_t bytes = static_cast<size_t>(size > 0 ? size : 1) * sizeof(double);
        const size_t alignment = bytes >= kHugePage / 4 ? kHugePage : 64;
        bytes = (bytes + alignment - 1) / alignment * alignment;
        data_ = static_cast<double*>(allocate(alignment, bytes));
        if (!data_) throw std::bad_alloc();
#ifdef __linux__
        if (alignment == kHugePage) madvise(data_, bytes, MADV_HUGEPAGE);
#endif
    }
    Buffer(Buffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Buffer() { release(data_); }

    double* data() const { return data_; }
    int64_t size() const { return size_; }
    void zero() { std::memset(data_, 0, static_cast<size_t>(size_) * sizeof(double)); }
    void reserve(int64_t size) {
        if (size > size_) *this = Buffer(size);
    }

private:
#ifdef _WIN32
    static void* allocate(size_t alignment, size_t bytes) { return _aligned_malloc(bytes, alignment); }
    static void release(void* data) { _aligned_free(data); }
#else
    static void* allocate(size_t alignment, size_t bytes) { return std::aligned_alloc(alignment, bytes); }
    static void release(void* data) { std::free(data); }
#endif

    double* data_ = nullptr;
    int64_t size_ = 0;
};

}  // namespace crfkit
