// Reading Python objects fast. A build for one version of Python looks inside them; one for all versions (the stable
// ABI, Py_LIMITED_API) calls functions, which is a little slower.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

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

#endif

}  // namespace crfkit
