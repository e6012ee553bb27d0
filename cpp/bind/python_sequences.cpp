#include "python_sequences.hpp"

#include <cmath>
#include <memory>

#include "python_api.hpp"

namespace crfkit {

namespace {

constexpr int kDeepest = 100;  // dicts within dicts

// Guards against dicts that contain themselves, also when an error leaves the scope.
class RecursionGuard {
public:
    RecursionGuard() {
        if (++depth_ <= kDeepest) return;
        --depth_;
        throw BadInput("the dicts of a position are nested more than " + std::to_string(kDeepest) +
                       " deep, or one contains itself");
    }
    ~RecursionGuard() { --depth_; }

private:
    static thread_local int depth_;
};
thread_local int RecursionGuard::depth_ = 0;

// The name of the type: of classes written in C with their module, as in numpy.ndarray; of others without.
std::string kind_of(nb::handle value) {
    const nb::object type = nb::borrow(value.type());  // a metaclass may run code of the caller's
    const auto name = nb::cast<std::string>(type.attr("__name__"));
    if (PyType_GetFlags(reinterpret_cast<PyTypeObject*>(type.ptr())) & Py_TPFLAGS_HEAPTYPE) return name;
    const auto module = nb::cast<std::string>(type.attr("__module__"));
    return module == "builtins" ? name : module + "." + name;
}

std::string repr_of(nb::handle value) {
    const nb::object text = nb::steal(PyUnicode_AsEncodedString(nb::repr(value).ptr(), "utf-8", "backslashreplace"));
    if (!text.is_valid()) throw nb::python_error();
    return std::string(bytes_view(text.ptr()));
}

bool is_iterable(nb::handle value) { return has_iter(value.ptr()) || PySequence_Check(value.ptr()); }

// Any iterable as a list or tuple whose items stay alive with it; `what` says what was expected. What an iterator
// raises is passed on.
nb::object as_sequence(nb::handle iterable, const char* what) {
    if (is_string(iterable.ptr()) || PyBytes_Check(iterable.ptr()))
        throw BadInput(std::string(what) + ", not the " + kind_of(iterable) + " " + repr_of(iterable));
    if (!is_iterable(iterable)) throw BadInput(std::string(what) + ", not " + kind_of(iterable));
    nb::object fast = nb::steal(PySequence_Fast(iterable.ptr(), ""));
    if (!fast.is_valid()) throw nb::python_error();
    return fast;
}

// Strings, and bytes that are UTF-8, name attributes.
bool is_text(nb::handle value) { return is_string(value.ptr()) || PyBytes_Check(value.ptr()); }

size_t size_of(const nb::object& fast) { return static_cast<size_t>(fast_size(fast.ptr())); }
nb::handle item_of(const nb::object& fast, size_t i) { return fast_item(fast.ptr(), static_cast<Py_ssize_t>(i)); }

// --- Generators, subclasses and other types of numbers run code of the caller's when they are read. That code may
// change the objects that it is part of, or come back to the same encoder. So it runs first; what it gave is plain and
// is then read in one go. Reading plain objects runs no such code and makes no Python objects, as the garbage collector
// runs code too.

bool is_plain_number(nb::handle value) { return PyFloat_Check(value.ptr()) || PyLong_CheckExact(value.ptr()); }
bool is_plain_list(nb::handle value) { return PyList_CheckExact(value.ptr()) || PyTuple_CheckExact(value.ptr()); }
bool is_plain_value(nb::handle value) {
    return is_text(value) || is_plain_number(value) || PyBool_Check(value.ptr()) || is_plain_list(value);
}
bool is_plain_dict(nb::handle dict) {
    PyObject* value = nullptr;
    Py_ssize_t cursor = 0;
    while (PyDict_Next(dict.ptr(), &cursor, nullptr, &value)) {
        if (is_plain_value(value)) continue;
        if (!PyDict_Check(value)) return false;
        const RecursionGuard guard;
        if (!is_plain_dict(value)) return false;
    }
    return true;
}

// A float, or the value itself, which is refused later, if it is no number.
nb::object plain_number(const nb::object& value) {
    if (!PyNumber_Check(value.ptr())) return value;
    nb::object number = nb::steal(PyNumber_Float(value.ptr()));
    if (number.is_valid()) return number;
    for (PyObject* usual : {PyExc_TypeError, PyExc_ValueError, PyExc_OverflowError})
        if (PyErr_ExceptionMatches(usual)) {
            PyErr_Clear();
            return value;
        }
    throw nb::python_error();
}

// A copy of the dict with plain values.
nb::object plain_dict(nb::handle dict) {
    const RecursionGuard guard;
    const auto given = nb::steal<nb::dict>(PyDict_Copy(dict.ptr()));
    if (!given.is_valid()) throw nb::python_error();
    nb::object copy = nb::steal(PyDict_Copy(given.ptr()));
    if (!copy.is_valid()) throw nb::python_error();
    for (const auto& [key, member] : given) {
        const nb::object value = nb::borrow(member);
        if (is_plain_value(value)) continue;
        const bool is_list = PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()) || PyAnySet_Check(value.ptr());
        const nb::object plain = PyDict_Check(value.ptr()) ? plain_dict(value)
                                 : is_list                 ? nb::steal(PySequence_List(value.ptr()))
                                                           : plain_number(value);
        if (!plain.is_valid() || PyDict_SetItem(copy.ptr(), key.ptr(), plain.ptr())) throw nb::python_error();
    }
    return copy;
}

// The members of what ought to be a plain list, which `plain_items` has made of everything that can be iterated.
template <class Where>
nb::object plain_list(nb::handle value, const char* what, const Where& where) {
    if (is_plain_list(value)) return nb::borrow(value);
    const nb::object given = nb::borrow(value);
    throw BadInput(where() + what + ", not " +
                   (is_text(given) ? "the " + kind_of(given) + " " + repr_of(given) : kind_of(given)));
}

bool is_plain(nb::handle item) {
    return PyDict_Check(item.ptr()) ? is_plain_dict(item) : is_plain_list(item) || is_text(item) || !is_iterable(item);
}

// The items, or rows, of a sequence, all plain.
nb::object plain_items(nb::handle sequence, const char* what) {
    nb::object items = as_sequence(sequence, what);
    size_t t = 0;
    while (t < size_of(items) && is_plain(item_of(items, t))) ++t;
    if (t == size_of(items)) return items;
    nb::object copy = nb::steal(PySequence_List(items.ptr()));
    if (!copy.is_valid()) throw nb::python_error();
    for (; t < size_of(copy); ++t) {
        const nb::object item = nb::borrow(item_of(copy, t));
        if (is_plain(item)) continue;
        const nb::object plain = PyDict_Check(item.ptr()) ? plain_dict(item) : nb::steal(PySequence_List(item.ptr()));
        if (!plain.is_valid()) throw nb::python_error();
        PyList_SetItem(copy.ptr(), static_cast<Py_ssize_t>(t), nb::object(plain).release().ptr());
    }
    return copy;
}

// Numbers and booleans are values, strings and lists of strings name attributes, dicts nest: `outer` is "outer:".
void add_dict(Encoder& encoder, nb::handle dict, std::string_view outer) {
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t cursor = 0;
    const auto quoted = [&](std::string_view name) { return std::string("'").append(outer).append(name).append("'"); };
    // Naming a type may run code of the caller's, so that everything else has been read before.
    const auto refuse = [&](const std::string& found, nb::handle what, const char* expected) {
        throw BadInput(encoder.where() + found + kind_of(what) + expected);
    };
    while (PyDict_Next(dict.ptr(), &cursor, &key, &value)) {
        if (!is_text(key)) throw BadInput(encoder.where() + "the key " + repr_of(key) + " is not a string");
        const std::string_view name = utf8(key, encoder);
        if (is_text(value)) {
            encoder.add_text(outer, name, utf8(value, encoder));
        } else if (PyBool_Check(value)) {
            encoder.add_number(outer, name, value == Py_True);
        } else if (PyDict_Check(value)) {
            const RecursionGuard guard;
            add_dict(encoder, value, encoder.nested(outer, name));
        } else if (is_plain_list(value)) {
            const nb::object members = nb::borrow(value);
            for (size_t k = 0, n = size_of(members); k < n; ++k) {
                const nb::handle member = item_of(members, k);
                if (!is_text(member))
                    refuse(quoted(name) + " holds a ", member, "; a list in a feature dict must hold strings");
                encoder.add_text(outer, name, utf8(member, encoder));
            }
        } else if (is_plain_number(value)) {
            const double number = PyFloat_AsDouble(value);
            if (number == -1.0 && PyErr_Occurred()) {
                PyErr_Clear();
                throw BadInput(encoder.where() + quoted(name) + " is a whole number that is too large for a float");
            }
            encoder.add_number(outer, name, number);
        } else {
            refuse(quoted(name) + " is a ", value,
                   "; expected a string, a number, a boolean, a list of strings or a dict");
        }
    }
}

}  // namespace

namespace {

// Throws if a token is of another form ("a list") than the first of its sequence ("strings").
void check_form(bool same, const Encoder& encoder, const char* noun, const char* form, const char* expected) {
    if (same) return;
    throw BadInput(encoder.where() + "the " + noun + " is " + form + ", but the " + noun + "s before are " + expected +
                   "; give all " + noun + "s of a sequence in one form");
}

}  // namespace

std::string_view utf8(nb::handle text, const Encoder& encoder) {
    if (is_string(text.ptr()))
        if (const std::string_view ascii = ascii_view(text.ptr()); ascii.data()) return ascii;
    Py_ssize_t size = 0;
    if (PyBytes_Check(text.ptr())) {
        const std::string_view bytes = bytes_view(text.ptr());
        const auto length = static_cast<Py_ssize_t>(bytes.size());
        if (encoder.loose() || nb::steal(PyUnicode_DecodeUTF8(bytes.data(), length, nullptr)).is_valid()) return bytes;
        PyErr_Clear();
        throw BadInput(encoder.where() + "bytes that are not UTF-8, " + repr_of(text));
    }
    const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (!data) {
        PyErr_Clear();
        throw BadInput(encoder.where() + "a string is not valid Unicode: it has a lone surrogate");
    }
    return {data, static_cast<size_t>(size)};
}

void add_rows(Encoder& encoder, nb::handle sequence, bool alone) {
    const nb::object rows = plain_items(sequence, "a sequence must be a list of tokens");
    if (alone) encoder.clear();
    std::vector<nb::object> alive;  // until end_rows
    const auto where = [&] { return encoder.where(); };
    encoder.begin_rows();
    const bool words = size_of(rows) > 0 && is_string(item_of(rows, 0).ptr());
    for (size_t t = 0; t < size_of(rows); ++t) {
        const nb::handle row = item_of(rows, t);
        if (is_string(row.ptr()) || is_plain_list(row)) {
            const bool word = is_string(row.ptr());
            check_form(word == words, encoder, "token", word ? "a string" : "a list of columns",
                       words ? "strings" : "lists of columns");
        }
        if (is_string(row.ptr())) {
            encoder.add_cell(utf8(row, encoder));
        } else {
            alive.push_back(plain_list(row, "a token must be a list of column strings, or a string", where));
            for (size_t c = 0, n = size_of(alive.back()); c < n; ++c) {
                const nb::handle cell = item_of(alive.back(), c);
                if (!is_string(cell.ptr()))
                    throw BadInput(where() + "column " + std::to_string(c) + " is " + kind_of(cell) + ", not str");
                encoder.add_cell(utf8(cell, encoder));
            }
        }
        encoder.end_row();
    }
    encoder.end_rows();
}

namespace {

// Adds the attributes of each item and calls end(); at last calls done(), while their texts are still there.
template <class End, class Done>
void each_item(Encoder& encoder, nb::handle sequence, bool alone, const End& end, const Done& done) {
    const nb::object items = plain_items(sequence, "a sequence must be a list of items");
    if (alone) encoder.clear();
    const auto where = [&] { return encoder.where(); };
    encoder.begin_items();
    for (size_t t = 0; t < size_of(items); ++t) {
        const nb::handle item = item_of(items, t);
        nb::object names;  // `items` keeps its strings until end_items
        if (PyDict_Check(item.ptr())) {
            add_dict(encoder, item, {});
        } else {
            names = plain_list(item, "an item must be a list of attribute strings or a dict", where);
            for (size_t k = 0, n = size_of(names); k < n; ++k) {
                const nb::handle name = item_of(names, k);
                if (!is_text(name))
                    throw BadInput(where() + "an attribute in a list must be a string, not " + kind_of(name) +
                                   "; use a dict for values");
                encoder.add(utf8(name, encoder));
            }
        }
        end();
    }
    done();
}

}  // namespace

PreparedItems::PreparedItems(nb::handle sequence) {
    if (const PreparedItems* other = prepared(sequence)) {
        *this = *other;
        return;
    }
    // kept from call to call; taken away meanwhile, as an iterator of the caller may come here again
    static std::unique_ptr<Encoder> kept;
    std::unique_ptr<Encoder> encoder = std::move(kept);
    if (!encoder) encoder = std::make_unique<Encoder>(std::nullopt, Vocabulary(), Vocabulary(), EncoderOptions{});
    each_item(
        *encoder, sequence, true,
        [&] {
            encoder->hand_out([&](std::string_view name, double value) {
                text += name;
                name_ends.push_back(text.size());
                values.push_back(value);
            });
            item_ends.push_back(values.size());
        },
        [] {});
    kept = std::move(encoder);
}

template <class Visit, class End>
void PreparedItems::each(const Visit& visit, const End& end_item) const {
    size_t name = 0, begin = 0;
    for (const size_t end : item_ends) {
        for (; name < end; ++name) {
            visit(std::string_view(text).substr(begin, name_ends[name] - begin), values[name]);
            begin = name_ends[name];
        }
        end_item();
    }
}

nb::list PreparedItems::items() const {
    nb::list all;
    nb::dict item;
    each([&](std::string_view name, double value) { item[nb::str(name.data(), name.size())] = nb::float_(value); },
         [&] {
             all.append(item);
             item = nb::dict();
         });
    return all;
}

const PreparedItems* prepared(nb::handle sequence) {
    if (PyList_Check(sequence.ptr()) || PyTuple_Check(sequence.ptr())) return nullptr;
    PreparedItems* found = nullptr;
    return nb::try_cast(sequence, found) ? found : nullptr;
}

namespace {

// The text of an exact str, or null: for lone surrogates and everything else. Runs no code of the caller's.
inline bool plain_text(PyObject* value, Arena& arena, std::string_view& text) {
    if (!Py_IS_TYPE(value, &PyUnicode_Type)) return false;
    text = ascii_view(value);
    if (!text.data()) [[unlikely]]
        text = utf8_view(value, arena);
    return text.data() != nullptr;
}

template <class Sink>
bool add_plain_dict(Sink& sink, PyObject* dict, Arena& arena) {
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t cursor = 0;
    std::string_view name, text;
    while (PyDict_Next(dict, &cursor, &key, &value)) {
        if (!plain_text(key, arena, name)) return false;
        if (plain_text(value, arena, text)) {
            sink.add_text({}, name, text);
        } else if (PyBool_Check(value)) {
            sink.add(name, value == Py_True);
        } else if (PyFloat_CheckExact(value)) {
            const double number = PyFloat_AsDouble(value);
            if (!std::isfinite(number)) return false;
            sink.add(name, number);
        } else {
            return false;
        }
    }
    return true;
}

// Asks for the strings of an item that will be read soon.
void prefetch_item(PyObject* item) {
    if (!PyList_CheckExact(item)) return;
    for (Py_ssize_t k = 0, n = fast_size(item); k < n; ++k) {
        const char* text = reinterpret_cast<const char*>(fast_item(item, k));
        __builtin_prefetch(text);
        __builtin_prefetch(text + 64);
    }
}

// Adds a sequence of plain lists of str and of plain dicts. Returns false, and leaves it under way, if there is
// anything else in it. Runs no code of the caller's, and makes no objects: threads that do not hold the GIL may call it
// if kReadsInParallel and the one that does waits for them.
template <class Sink>
bool add_plain_items(Sink& sink, PyObject* sequence, Arena& arena) {
    if (!is_plain_list(sequence)) return false;
    sink.begin_items();
    std::string_view text;
    const Py_ssize_t n = fast_size(sequence);
    for (Py_ssize_t t = 0; t < n; ++t) {
        PyObject* item = fast_item(sequence, t);
        if (t + 1 < n) prefetch_item(fast_item(sequence, t + 1));
        if (is_plain_list(item)) {
            const Py_ssize_t size = fast_size(item);
            sink.expect(static_cast<size_t>(size));
            for (Py_ssize_t k = 0; k < size; ++k) {
                if (!plain_text(fast_item(item, k), arena, text)) return false;
                sink.add(text);
            }
        } else if (!PyDict_CheckExact(item) || !add_plain_dict(sink, item, arena)) {
            return false;
        }
        sink.end_item();
    }
    sink.end_items();
    return true;
}

}  // namespace

void add_items(Encoder& encoder, nb::handle sequence, bool alone) {
    if (const PreparedItems* items = prepared(sequence)) {
        if (alone) encoder.clear();
        encoder.begin_items();
        items->each([&](std::string_view name, double value) { encoder.add(name, value); },
                    [&] { encoder.end_item(); });
        encoder.end_items();
        return;
    }
    if (alone) encoder.clear();
    if (add_plain_items(encoder, sequence.ptr(), encoder.made())) return;
    each_item(encoder, sequence, alone, [&] { encoder.end_item(); }, [&] { encoder.end_items(); });
}

void add_all_items(Encoder& encoder, nb::handle sequences, int n_threads) {
    constexpr size_t kBetweenSignals = size_t{1} << 12;  // sequences
    const nb::object all = nb::borrow(sequences);
    const auto pause = [] {
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    };
    const auto read = [&](size_t n, NameBatch& batch) {
        return n < size_of(all) && add_plain_items(batch, item_of(all, n).ptr(), batch.made);
    };
    size_t n = 0;
    if (kReadsInParallel && n_threads > 1) n = encoder.add_in_parallel(size_of(all), n_threads, read, pause);
    // Code of the caller's runs where a sequence is not plain. It may change the list, or come back to this encoder:
    // from then on there is one thread.
    for (; n < size_of(all); ++n) {
        const nb::object sequence = nb::borrow(item_of(all, n));
        if (n % kBetweenSignals == kBetweenSignals - 1) pause();
        add_items(encoder, sequence);
    }
}

nb::object number_labels(const nb::list& rows) {
    Interner names;
    Arena arena;
    nb::list found;
    std::vector<int32_t> ids;
    std::vector<int64_t> lengths;
    std::string_view text;
    for (size_t n = 0; n < nb::len(rows); ++n) {
        PyObject* row = fast_item(rows.ptr(), static_cast<Py_ssize_t>(n));
        if (!is_plain_list(row)) return nb::none();
        const Py_ssize_t size = fast_size(row);
        lengths.push_back(size);
        for (Py_ssize_t t = 0; t < size; ++t) {
            PyObject* label = fast_item(row, t);
            if (!plain_text(label, arena, text)) return nb::none();
            ids.push_back(names.intern(text));
            if (names.size() > nb::len(found)) found.append(nb::handle(label));
        }
        arena.clear();
    }
    return nb::make_tuple(found, to_numpy(std::move(ids)), to_numpy(std::move(lengths)));
}

}  // namespace crfkit
