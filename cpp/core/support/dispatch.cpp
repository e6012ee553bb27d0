#include "dispatch.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>

#ifdef CRFKIT_X86
#include <cpuid.h>
#endif

namespace crfkit {

namespace {

struct Machine {
    bool avx2 = false, avx512 = false;
};

#ifdef CRFKIT_X86

// The registers that the operating system saves (XCR0). Written out, as the compiler's intrinsic needs -mxsave.
// Volatile, so that it never runs before the test for xsave.
uint64_t saved_registers() {
    uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return uint64_t{high} << 32 | low;
}

// __builtin_cpu_supports would do, but clang-cl does not link the library that it needs.
Machine examine() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    const auto bit = [](unsigned word, int n) { return (word >> n & 1) != 0; };
    if (!__get_cpuid(1, &a, &b, &c, &d)) return {};
    const bool xsave = bit(c, 27), avx = bit(c, 28), fma = bit(c, 12);
    if (!xsave || !avx || !fma || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return {};
    const uint64_t saved = saved_registers();
    constexpr uint64_t kYmm = 0x06, kZmm = 0xe6;
    Machine machine;
    machine.avx2 = bit(b, 5) && (saved & kYmm) == kYmm;
    machine.avx512 = machine.avx2 && bit(b, 16) && bit(b, 17) && bit(b, 31) && (saved & kZmm) == kZmm;  // F, DQ, VL
    return machine;
}

#else

Machine examine() { return {}; }

#endif

constexpr const char* kNames[] = {"avx512", "avx2", "generic"};  // fastest first

const char* read_default() {
    const char* given = std::getenv("CRFKIT_KERNELS");
    const bool automatic = !given || !*given || std::strcmp(given, "auto") == 0;
    std::string available;
    for (const char* name : kNames) {
        if (!runs_kernels(name)) continue;
        if (automatic || std::strcmp(given, name) == 0) return name;
        available += (available.empty() ? "" : ", ") + std::string(name);
    }
    throw UnavailableKernels("the environment variable CRFKIT_KERNELS is '" + std::string(given) +
                             "', but this machine runs the kernels " + available +
                             "; set it to one of them, or unset it");
}

}  // namespace

bool runs_kernels(const char* name) {
    static const Machine machine = examine();
    if (std::strcmp(name, "avx512") == 0) return machine.avx512;
    if (std::strcmp(name, "avx2") == 0) return machine.avx2;
    return std::strcmp(name, "generic") == 0;
}

const char* default_kernels() {
    static const char* const name = read_default();
    return name;
}

}  // namespace crfkit
