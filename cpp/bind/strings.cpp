#include "strings.hpp"

#include <cmath>
#include <numeric>

#include "../core/support/buffer.hpp"
#include "../core/support/weight_codes.hpp"
#include "../core/text/encoder.hpp"
#include "../core/text/wapiti_weights.hpp"

namespace crfkit {

StringTable make_table(StringArrays&& arrays) {
    return {Array<uint64_t>(to_numpy(std::move(arrays.offsets))), Array<uint8_t>(to_numpy(std::move(arrays.bytes))),
            Array<uint64_t>(to_numpy(std::move(arrays.slots)))};
}

namespace {

// An uninitialised array in huge pages: a large one is filled several times as fast as one of new small pages.
template <class T>
T* allocate_large(size_t n, nb::capsule& owner) {
    if (n > size_t{1} << 59) throw std::bad_alloc();
    auto* buffer = new BufferOf<T>(static_cast<int64_t>(n));
    owner = nb::capsule(buffer, [](void* p) noexcept { delete static_cast<BufferOf<T>*>(p); });
    return buffer->data();
}

nb::object decode(std::string_view text) {
    return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

// The strings in UTF-8; throws if one of them cannot be.
std::vector<std::string> texts_of(const nb::list& strings) {
    std::vector<std::string> texts;
    for (size_t k = 0; k < nb::len(strings); ++k) {
        const nb::object text = strings[k];
        Py_ssize_t size = 0;
        if (!PyUnicode_Check(text.ptr()))
            throw BadInput("string " + std::to_string(k) + " is " +
                           nb::cast<std::string>(text.type().attr("__name__")) + ", not str");
        const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
        if (!data) {
            PyErr_Clear();
            throw BadInput("string " + std::to_string(k) + " is not valid Unicode: it has a lone surrogate");
        }
        texts.emplace_back(data, static_cast<size_t>(size));
    }
    return texts;
}

// A read-only NumPy view of one of the arrays.
template <class T>
auto member(nb::handle self, Array<T> StringTable::* array) {
    const Array<T>& values = nb::cast<const StringTable&>(self).*array;
    return Numpy1<const T>(values.data(), {values.size()}, self);
}

}  // namespace

void bind_strings(nb::module_& m) {
    nb::class_<StringTable>(m, "StringTable", "Strings with ids 0, 1, …: a frozen hash table over three arrays.")
        .def(
            "__init__",
            [](StringTable* self, Array<uint64_t> offsets, Array<uint8_t> bytes, Array<uint64_t> slots) {
                if (offsets.size() == 0) throw nb::value_error("a string table needs at least one offset");
                new (self) StringTable{std::move(offsets), std::move(bytes), std::move(slots)};
                const std::string wrong = check_index(self->view(), self->bytes.size());
                if (!wrong.empty()) {
                    self->~StringTable();
                    throw nb::value_error(wrong.c_str());
                }
            },
            "offsets"_a, "bytes"_a, "slots"_a, "Checks that the arrays make a table.")
        .def_static(
            "from_strings", [](const nb::list& strings) { return make_table(freeze(texts_of(strings))); }, "strings"_a,
            nb::sig("def from_strings(strings: list[str]) -> StringTable"))
        .def_static(
            "from_bytes",
            [](const Array<uint64_t>& offsets, const Array<uint8_t>& bytes) {
                if (offsets.size() == 0) throw nb::value_error("a string table needs at least one offset");
                const size_t n = offsets.size() - 1;
                for (size_t i = 0; i < n; ++i)
                    if (offsets(i) > offsets(i + 1)) throw nb::value_error("the offsets must ascend");
                if (offsets(0) != 0 || offsets(n) != bytes.size())
                    throw nb::value_error("the offsets must go from 0 to the number of bytes");
                std::vector<int64_t> order(n);
                std::iota(order.begin(), order.end(), 0);
                const StringIndex index{nullptr, 0, offsets.data(), reinterpret_cast<const char*>(bytes.data()), n};
                return make_table(freeze(index, order));
            },
            "offsets"_a, "bytes"_a, "The table of the strings bytes[offsets[i] : offsets[i + 1]], in any encoding.")
        .def("__len__", [](const StringTable& t) { return t.offsets.size() - 1; })
        .def(
            "__getitem__",
            [](const StringTable& t, int64_t id) {
                if (id < 0 || static_cast<size_t>(id) + 1 >= t.offsets.size())
                    throw nb::index_error("string id out of range");
                return decode(t.view().at(static_cast<uint64_t>(id)));
            },
            "id"_a, nb::sig("def __getitem__(self, id: int) -> str"))
        .def(
            "find",
            [](const StringTable& t, const nb::str& text) {
                const char* data = nullptr;
                Py_ssize_t size = 0;
                if (!(data = PyUnicode_AsUTF8AndSize(text.ptr(), &size))) {
                    PyErr_Clear();  // a lone surrogate: no table has it
                    return int32_t{-1};
                }
                return t.view().find({data, static_cast<size_t>(size)});
            },
            "text"_a, "The id of text, or -1.")
        .def(
            "find_all",
            [](const StringTable& t, const StringTable& other) {
                std::vector<int64_t> ids;
                for (uint64_t id = 0; id < other.view().size; ++id) ids.push_back(t.view().find(other.view().at(id)));
                return to_numpy(std::move(ids));
            },
            "other"_a, "The ids here of the strings of another table, -1 for those that are not here.")
        .def(
            "to_list",
            [](const StringTable& t) {
                nb::list result;
                for (uint64_t id = 0; id < t.view().size; ++id) result.append(decode(t.view().at(id)));
                return result;
            },
            nb::sig("def to_list(self) -> list[str]"))
        .def(
            "take",
            [](const StringTable& t, const Array<int64_t>& order) {
                return make_table(freeze(t.view(), {order.data(), order.size()}));
            },
            "order"_a, "The table of these ids' strings, renumbered in this order.")
        .def_prop_ro("offsets", [](nb::handle self) { return member(self, &StringTable::offsets); })
        .def_prop_ro("bytes", [](nb::handle self) { return member(self, &StringTable::bytes); })
        .def_prop_ro("slots", [](nb::handle self) { return member(self, &StringTable::slots); });
    m.def(
        "parse_wapiti_weights",
        [](const Array<uint8_t>& text) {
            WapitiWeights found = without_gil(
                [&] { return parse_wapiti_weights({reinterpret_cast<const char*>(text.data()), text.size()}); });
            return nb::make_tuple(to_numpy(std::move(found.index)), to_numpy(std::move(found.values)));
        },
        "text"_a, "(places, weights) of the lines at the end of a Wapiti model",
        nb::sig("def parse_wapiti_weights(text: NDArray[numpy.uint8]) -> "
                "tuple[NDArray[numpy.int64], NDArray[numpy.float64]]"));
    m.def(
        "format_wapiti_weights",
        [](const Array<int64_t>& index, const Array<double>& weights) {
            if (index.size() != weights.size()) throw nb::value_error("one place per weight is needed");
            const std::string text =
                format_wapiti_weights({index.data(), index.size()}, {weights.data(), weights.size()});
            return nb::bytes(text.data(), text.size());
        },
        "index"_a, "weights"_a, "The lines at the end of a Wapiti model.");
    m.def(
        "all_within",
        [](const Array<double>& values, double most) {
            return without_gil([&] {
                int64_t outside = 0;
                for (const double value : span_of(values)) outside += !(std::abs(value) <= most);
                return outside == 0;
            });
        },
        "values"_a, "most"_a, "Whether all values lie between -most and most; NaN does not.");
    m.def(
        "empty_bytes",
        [](size_t n) {
            nb::capsule owner;
            uint8_t* bytes = allocate_large<uint8_t>(n, owner);
            return Numpy1<uint8_t>(bytes, {n}, owner);
        },
        "n"_a, "An array whose bytes are to be set.", nb::sig("def empty_bytes(n: int) -> NDArray[numpy.uint8]"));
    m.def(
        "encode_weights",
        [](const Array<double>& weights) {
            std::vector<uint8_t> codes(weights.size());
            std::vector<double> steps(weight_blocks(weights.size()));
            without_gil([&] { encode_weights(span_of(weights), codes.data(), steps.data()); });
            return nb::make_tuple(to_numpy(std::move(codes)), to_numpy(std::move(steps)));
        },
        "weights"_a, "(a byte for each weight, a step for each block of them)",
        nb::sig("def encode_weights(weights: NDArray[numpy.float64]) -> "
                "tuple[NDArray[numpy.uint8], NDArray[numpy.float64]]"));
    m.def(
        "decode_weights",
        [](const Array<uint8_t>& codes, const Array<double>& steps) {
            if (steps.size() != weight_blocks(codes.size()))
                throw nb::value_error("the number of steps does not fit the number of weights");
            nb::capsule owner;
            double* weights = allocate_large<double>(codes.size(), owner);
            without_gil([&] { decode_weights(span_of(codes), steps.data(), weights); });
            return Numpy1<double>(weights, {codes.size()}, owner);
        },
        "codes"_a, "steps"_a, "The weights that encode_weights wrote.",
        nb::sig("def decode_weights(codes: NDArray[numpy.uint8], steps: NDArray[numpy.float64]) -> "
                "NDArray[numpy.float64]"));
    m.def(
        "checksum",
        [](const Array<uint8_t>& bytes) {
            return without_gil([&] { return hash_bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size()); });
        },
        "bytes"_a, "64-bit hash of the bytes.");
}

}  // namespace crfkit
