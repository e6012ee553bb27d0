// Which kernels this machine runs: one build has a table of kernels per instruction set and picks when it is called.
#pragma once

#include <cstring>

namespace crfkit {

#ifdef CRFKIT_X86
inline bool runs_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
inline bool runs_avx512() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && runs_avx2();
}
#endif

// Returns the kernels of that name ("auto": the widest), or null if this machine does not run them. Where the build
// has no AVX kernels, avx2 and avx512 are null.
template <class Kernels>
const Kernels* choose_kernels(const char* name, const Kernels& generic, [[maybe_unused]] const Kernels* avx2,
                              [[maybe_unused]] const Kernels* avx512) {
    const bool automatic = std::strcmp(name, "auto") == 0;
#ifdef CRFKIT_X86
    if ((automatic || std::strcmp(name, "avx512") == 0) && runs_avx512()) return avx512;
    if ((automatic || std::strcmp(name, "avx2") == 0) && runs_avx2()) return avx2;
#endif
    return automatic || std::strcmp(name, "generic") == 0 ? &generic : nullptr;
}

}  // namespace crfkit
