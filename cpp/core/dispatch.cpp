// Which kernels this machine runs.
#include <cstring>

#include "chain.hpp"
#include "messages.hpp"
#include "pseudo_table.hpp"

namespace crfkit {

#ifdef CRFKIT_X86
static bool runs_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
static bool runs_avx512() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && runs_avx2();
}
#endif

namespace {

// The kernels of that name, "auto" the widest, if this machine runs them.
template <class Kernels>
const Kernels* find(const char* name, const Kernels& generic, [[maybe_unused]] const Kernels* avx2,
                    [[maybe_unused]] const Kernels* avx512) {
    const bool automatic = std::strcmp(name, "auto") == 0;
#ifdef CRFKIT_X86
    if ((automatic || std::strcmp(name, "avx512") == 0) && runs_avx512()) return avx512;
    if ((automatic || std::strcmp(name, "avx2") == 0) && runs_avx2()) return avx2;
#endif
    return automatic || std::strcmp(name, "generic") == 0 ? &generic : nullptr;
}

}  // namespace

#ifdef CRFKIT_X86
const ChainKernels* find_kernels(const char* name) {
    return find(name, kernels_generic(), &kernels_avx2(), &kernels_avx512());
}
const MessageKernels* find_message_kernels(const char* name) {
    return find(name, message_kernels_generic(), &message_kernels_avx2(), &message_kernels_avx512());
}
const PseudoKernels* find_pseudo_kernels(const char* name) {
    return find(name, pseudo_kernels_generic(), &pseudo_kernels_avx2(), &pseudo_kernels_avx512());
}
#else
const ChainKernels* find_kernels(const char* name) {
    return find<ChainKernels>(name, kernels_generic(), nullptr, nullptr);
}
const MessageKernels* find_message_kernels(const char* name) {
    return find<MessageKernels>(name, message_kernels_generic(), nullptr, nullptr);
}
const PseudoKernels* find_pseudo_kernels(const char* name) {
    return find<PseudoKernels>(name, pseudo_kernels_generic(), nullptr, nullptr);
}
#endif

}  // namespace crfkit
