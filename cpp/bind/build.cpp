#include <string>

#include "../core/support/dispatch.hpp"
#include "common.hpp"

namespace crfkit {

namespace {

#define CRFKIT_QUOTED_(text) #text
#define CRFKIT_QUOTED(text) CRFKIT_QUOTED_(text)

std::string compiler() {
#if defined(__clang__)
    return "Clang " __clang_version__;
#else
    return "GCC " __VERSION__;
#endif
}

}  // namespace

void bind_build(nb::module_& m) {
    nb::register_exception_translator([](const std::exception_ptr& p, void*) {
        try {
            std::rethrow_exception(p);
        } catch (const UnavailableKernels& e) {
            const nb::object kind = nb::module_::import_("crfkit.errors").attr("ParameterError");
            PyErr_SetString(kind.ptr(), e.what());
        }
    });
    m.def(
        "available_kernels",
        [] {
            std::vector<std::string> names;
            for (const char* name : {"avx512", "avx2", "generic"})
                if (runs_kernels(name)) names.emplace_back(name);
            return names;
        },
        "Instruction sets that this machine runs, fastest first.");
    m.def("default_kernels", &default_kernels, "The kernels that \"auto\" stands for; CRFKIT_KERNELS chooses others.");
    m.def(
        "build",
        [] {
#ifdef Py_LIMITED_API
            constexpr bool kStableAbi = true;
#else
            constexpr bool kStableAbi = false;
#endif
            return std::make_tuple(std::string(CRFKIT_QUOTED(CRFKIT_BUILD_TYPE)), compiler(), kStableAbi);
        },
        "(type of the build, compiler, whether it is for all versions of Python from 3.12 on)");
}

}  // namespace crfkit
