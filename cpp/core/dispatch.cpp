// Which kernels this machine runs.
#include <cstring>

#include "chain.hpp"

namespace crfkit {

#ifdef CRFKIT_X86
static bool runs_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
static bool runs_avx512() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && runs_avx2();
}
#endif

const ChainKernels* find_kernels(const char* name) {
    const bool automatic = std::strcmp(name, "auto") == 0;
#ifdef CRFKIT_X86
    if ((automatic || std::strcmp(name, "avx512") == 0) && runs_avx512()) return &kernels_avx512();
    if ((automatic || std::strcmp(name, "avx2") == 0) && runs_avx2()) return &kernels_avx2();
#endif
    if (automatic || std::strcmp(name, "generic") == 0) return &kernels_generic();
    return nullptr;
}

}  // namespace crfkit
