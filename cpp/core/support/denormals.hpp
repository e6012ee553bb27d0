// Arithmetic on denormal numbers takes a hundred times longer than on others. While one of these lives, results that
// would be denormal are zero, in this thread; single floats get there from e^-87 on. Elsewhere than on x86 it does
// nothing.
#pragma once

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace crfkit {

class FlushDenormals {
public:
    explicit FlushDenormals([[maybe_unused]] bool flush) {
#ifdef __SSE2__
        before_ = _mm_getcsr();
        if (flush) _mm_setcsr(before_ | 0x8040);  // flush to zero, denormals are zeros
#endif
    }
    FlushDenormals(const FlushDenormals&) = delete;
    FlushDenormals& operator=(const FlushDenormals&) = delete;
    ~FlushDenormals() {
#ifdef __SSE2__
        _mm_setcsr(before_);
#endif
    }

private:
#ifdef __SSE2__
    unsigned before_;
#endif
};

}  // namespace crfkit
