// Conversions shared by the binding files.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "../core/support/parallel.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using OptionalArray = std::optional<Array<T>>;
template <class T>
using Numpy1 = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;
template <class T>
using Numpy2 = nb::ndarray<nb::numpy, T, nb::ndim<2>, nb::c_contig>;
template <class T>
using Numpy3 = nb::ndarray<nb::numpy, T, nb::ndim<3>, nb::c_contig>;

template <class T>
const T* pointer(const OptionalArray<T>& array) {
    return array ? array->data() : nullptr;
}

// A NumPy array that owns the vector's memory.
template <class T>
Numpy1<T> to_numpy(std::vector<T>&& values) {
    auto* owned = new std::vector<T>(std::move(values));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Numpy1<T>(owned->data(), {owned->size()}, owner);
}

// An uninitialised array of n elements for the kernels to fill.
template <class T>
T* allocate(size_t n, nb::capsule& owner) {
    T* data = new T[n > 0 ? n : 1];
    owner = nb::capsule(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return data;
}

// Asks Python whether Ctrl-C was pressed; for kernels that run without the GIL.
inline bool poll_signals() {
    nb::gil_scoped_acquire acquire;
    return PyErr_CheckSignals() != 0;
}

// Runs a kernel without the GIL. A pending KeyboardInterrupt comes out as itself.
template <class Work>
auto without_gil(const Work& work) {
    nb::gil_scoped_release release;
    return work();
}

// The same for kernels that poll for Ctrl-C.
template <class Work>
auto interruptible(const Work& work) {
    try {
        return without_gil(work);
    } catch (const Interrupted&) {
        throw nb::python_error();  // KeyboardInterrupt, set by the poll
    }
}

void bind_build(nb::module_& m);
void bind_strings(nb::module_& m);
void bind_buckets(nb::module_& m);
void bind_text_rules(nb::module_& m);
void bind_encoder(nb::module_& m);
void bind_sequences(nb::module_& m);
void bind_chain(nb::module_& m);
void bind_decoder(nb::module_& m);
void bind_tagger(nb::module_& m);
void bind_crfsuite_model(nb::module_& m);
void bind_online(nb::module_& m);
void bind_vectors(nb::module_& m);
void bind_group_linf(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_graph_messages(nb::module_& m);
void bind_graph_exact(nb::module_& m);
void bind_graph_gibbs(nb::module_& m);
void bind_graph_pseudo(nb::module_& m);
void bind_graph_icm(nb::module_& m);
void bind_inverted(nb::module_& m);
void bind_pseudo_table(nb::module_& m);

}  // namespace crfkit
