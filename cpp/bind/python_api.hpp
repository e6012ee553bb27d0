// Reading Python objects fast. A build for one version of Python looks inside them; one for all versions (the stable
// ABI, Py_LIMITED_API) calls functions, which is a little slower.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string_view>

#include "../core/support/arena.hpp"

namespace crfkit {

namespace nb = nanobind;

#ifdef Py_LIMITED_API

// Comparing types is quick; PyList_Check and PyUnicode_Check call a function here.
inline bool is_list(PyObject* value) { return Py_IS_TYPE(value, &PyList_Type) || PyList_Check(value); }
inline bool is_string(PyObject* value) { return Py_IS_TYPE(value, &PyUnicode_Type) || PyUnicode_Check(value); }
// Of what PySequence_Fast returned, which is a list or a tuple.
inline Py_ssize_t fast_size(PyObject* fast) { return is_list(fast) ? PyList_Size(fast) : PyTuple_Size(fast); }
inline PyObject* fast_item(PyObject* fast, Py_ssize_t i) {
    return is_list(fast) ? PyList_GetItem(fast, i) : PyTuple_GetItem(fast, i);
}
inline PyObject* tuple_item(PyObject* tuple, Py_ssize_t i) { return PyTuple_GetItem(tuple, i); }
inline void set_list_item(PyObject* list, Py_ssize_t i, PyObject* stolen) { PyList_SetItem(list, i, stolen); }
inline bool has_iter(PyObject* value) { return PyType_GetSlot(Py_TYPE(value), Py_tp_iter) != nullptr; }
inline std::string_view bytes_view(PyObject* bytes) {
    return {PyBytes_AsString(bytes), static_cast<size_t>(PyBytes_Size(bytes))};
}
// The characters of an ASCII string, or a view without data if it has to be encoded.
inline std::string_view ascii_view(PyObject*) { return {}; }
// Whether several threads may read plain lists, dicts, floats and strings while one of them holds the GIL.
constexpr bool kReadsInParallel = false;
// The text of a str in UTF-8; without data if it has a lone surrogate. The str keeps it.
inline std::string_view utf8_view(PyObject* text, Arena&) {
    Py_ssize_t size = 0;
    const char* data = PyUnicode_AsUTF8AndSize(text, &size);
    if (!data) PyErr_Clear();
    return {data, data ? static_cast<size_t>(size) : 0};
}

#else

inline bool is_string(PyObject* value) { return PyUnicode_Check(value); }
inline Py_ssize_t fast_size(PyObject* fast) { return PySequence_Fast_GET_SIZE(fast); }
inline PyObject* fast_item(PyObject* fast, Py_ssize_t i) { return PySequence_Fast_GET_ITEM(fast, i); }
inline PyObject* tuple_item(PyObject* tuple, Py_ssize_t i) { return PyTuple_GET_ITEM(tuple, i); }
inline void set_list_item(PyObject* list, Py_ssize_t i, PyObject* stolen) { PyList_SET_ITEM(list, i, stolen); }
inline bool has_iter(PyObject* value) { return Py_TYPE(value)->tp_iter != nullptr; }
inline std::string_view bytes_view(PyObject* bytes) {
    return {PyBytes_AS_STRING(bytes), static_cast<size_t>(PyBytes_GET_SIZE(bytes))};
}
inline std::string_view ascii_view(PyObject* text) {
    if (!PyUnicode_IS_COMPACT_ASCII(text)) return {};
    return {reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(text)), static_cast<size_t>(PyUnicode_GET_LENGTH(text))};
}
#ifdef Py_GIL_DISABLED
constexpr bool kReadsInParallel = false;
#else
constexpr bool kReadsInParallel = true;
#endif
// Of a str that is not ASCII; the arena keeps it. Nothing is asked of Python, which could change the str.
template <class Character>
char* write_utf8(const Character* from, Py_ssize_t n, char* out) {
    for (Py_ssize_t k = 0; k < n; ++k) {
        const uint32_t c = from[k];
        if (c >= 0xd800 && c < 0xe000) return nullptr;
        if (c < 0x80) {
            *out++ = static_cast<char>(c);
            continue;
        }
        const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;  // bytes after the first
        *out++ = static_cast<char>((0xff00 >> (more + 1) & 0xff) | c >> 6 * more);
        for (int shift = 6 * more - 6; shift >= 0; shift -= 6) *out++ = static_cast<char>(0x80 | (c >> shift & 0x3f));
    }
    return out;
}
inline std::string_view utf8_view(PyObject* text, Arena& arena) {
    if (!PyUnicode_IS_COMPACT(text)) return {};
    const Py_ssize_t n = PyUnicode_GET_LENGTH(text);
    const int kind = PyUnicode_KIND(text);
    return arena.write(static_cast<size_t>(n) * 4, [&](char* out) -> const char* {
        if (kind == PyUnicode_1BYTE_KIND) return write_utf8(PyUnicode_1BYTE_DATA(text), n, out);
        if (kind == PyUnicode_2BYTE_KIND) return write_utf8(PyUnicode_2BYTE_DATA(text), n, out);
        return write_utf8(PyUnicode_4BYTE_DATA(text), n, out);
    });
}

#endif

}  // namespace crfkit
