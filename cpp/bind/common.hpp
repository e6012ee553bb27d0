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

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "../core/support/checks.hpp"
#include "../core/support/parallel.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {

// An array from Python whose elements lie where their type wants them. NumPy also has others (np.frombuffer with an
// offset, fields of packed records), from which the kernels' loads would fault: what is read is copied then, what is
// written to is refused. All bindings take their arrays as this type.
template <class T, int N>
struct Aligned : nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu> {
    using Base = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
    Aligned() = default;
    template <class... Config>
    explicit Aligned(nb::ndarray<Config...> array) : Base(std::move(array)) {}
};

template <class T>
using Array = Aligned<const T, 1>;
template <class T>
using OptionalArray = std::optional<Array<T>>;
// An array that the core writes to.
template <class T>
using OutputArray = Aligned<T, 1>;
using Matrix = Aligned<const double, 2>;
using Tables = Aligned<const double, 3>;
using Pairs = Aligned<const int32_t, 2>;
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

template <class T, int N>
std::span<T> span_of(const Aligned<T, N>& array) {
    return {array.data(), array.size()};
}

// A number of threads that there could be.
struct Threads {
    int n = 1;
    operator int() const { return n; }
};

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

// The size of an array [n][width] …, for `allocate`.
inline size_t size_of(std::initializer_list<int64_t> shape) {
    return static_cast<size_t>(checked_product(shape, "entries"));
}

void bind_build(nb::module_& m);
void bind_strings(nb::module_& m);
void bind_buckets(nb::module_& m);
void bind_text_rules(nb::module_& m);
void bind_encoder(nb::module_& m);
void bind_sequences(nb::module_& m);
void bind_chain(nb::module_& m);
void bind_chain_dense(nb::module_& m);
void bind_decoder(nb::module_& m);
void bind_tagger(nb::module_& m);
void bind_crfsuite_model(nb::module_& m);
void bind_online(nb::module_& m);
void bind_vectors(nb::module_& m);
void bind_group_linf(nb::module_& m);
void bind_orthants(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_graph_messages(nb::module_& m);
void bind_graph_exact(nb::module_& m);
void bind_graph_gibbs(nb::module_& m);
void bind_graph_pseudo(nb::module_& m);
void bind_graph_icm(nb::module_& m);
void bind_inverted(nb::module_& m);
void bind_pseudo_table(nb::module_& m);

}  // namespace crfkit

namespace nanobind::detail {

template <class T, int N>
struct type_caster<crfkit::Aligned<T, N>> {
    using Array = crfkit::Aligned<T, N>;
    using Plain = type_caster<typename Array::Base>;
    NB_TYPE_CASTER(Array, Plain::Name)

    template <class Flags>
    bool from_python(handle source, Flags flags, cleanup_list* cleanup) noexcept {
        if (take(source, flags, cleanup)) return true;
        if (!std::is_const_v<T> || !value.is_valid()) return false;
        const object copy = steal(PyObject_CallMethod(source.ptr(), "copy", nullptr));
        if (copy.is_valid()) return take(copy, flags, cleanup);
        PyErr_Clear();
        return false;
    }

    static handle from_cpp(const Array& array, rv_policy policy, cleanup_list* cleanup) noexcept {
        return Plain::from_cpp(array, policy, cleanup);
    }

private:
    template <class Flags>
    bool take(handle source, Flags flags, cleanup_list* cleanup) noexcept {
        Plain plain;
        value = Array();
        if (!plain.from_python(source, flags, cleanup)) return false;
        value = Array(std::move(plain.value));
        return value.size() == 0 || reinterpret_cast<uintptr_t>(value.data()) % alignof(T) == 0;
    }
};

template <>
struct type_caster<crfkit::Threads> {
    NB_TYPE_CASTER(crfkit::Threads, const_name("int"))

    template <class Flags>
    bool from_python(handle source, Flags flags, cleanup_list* cleanup) noexcept {
        make_caster<int> number;
        if (!number.from_python(source, flags, cleanup)) return false;
        value.n = std::clamp(number.value, 1, 1024);
        return true;
    }
};

}  // namespace nanobind::detail
