// Which kernels this machine runs: one build has a table of kernels per instruction set and picks when it is called.
#pragma once

#include <cstring>
#include <stdexcept>

namespace crfkit {

// The environment variable CRFKIT_KERNELS names kernels that do not exist or that this machine cannot run.
struct UnavailableKernels : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Whether the build has kernels of that name ("avx512", "avx2", "generic") and this machine runs them.
bool runs_kernels(const char* name);

// The kernels that "auto" stands for: those of CRFKIT_KERNELS, else the widest that this machine runs. The variable is
// read once. Throws UnavailableKernels.
const char* default_kernels();

// Returns the kernels of that name ("auto": the default), or null if this machine does not run them. Where the build
// has no AVX kernels, avx2 and avx512 are null.
template <class Kernels>
const Kernels* choose_kernels(const char* name, const Kernels& generic, const Kernels* avx2, const Kernels* avx512) {
    if (std::strcmp(name, "auto") == 0) name = default_kernels();
    if (!runs_kernels(name)) return nullptr;
    if (std::strcmp(name, "avx512") == 0) return avx512;
    if (std::strcmp(name, "avx2") == 0) return avx2;
    return &generic;
}

}  // namespace crfkit
