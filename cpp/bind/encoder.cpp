// Builders of encoded sequences: from column files, from rows of columns, from attribute items.
#include <cmath>
#include <deque>
#include <utility>

#include "../core/columns.hpp"
#include "../core/sequences.hpp"
#include "common.hpp"
#include "strings.hpp"

namespace crfkit {

namespace {

// Raised as crfkit.errors.DataError by the Python side, which knows the file's name.
struct BadInput : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Raised where a string cannot be UTF-8; callers add where it stands.
struct NotUnicode {};

// Guards against dicts that contain themselves, also when an error leaves the scope.
struct RecursionGuard {
    RecursionGuard() {
        if (Py_EnterRecursiveCall(" in a nested feature dict")) throw nb::python_error();
    }
    ~RecursionGuard() { Py_LeaveRecursiveCall(); }
};

std::string_view utf8(nb::handle text) {
    Py_ssize_t size = 0;
    const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (!data) {
        PyErr_Clear();
        throw NotUnicode();
    }
    return {data, static_cast<size_t>(size)};
}

std::string kind_of(nb::handle value) { return Py_TYPE(value.ptr())->tp_name; }

// Any iterable as a list or tuple whose items stay alive with it.
nb::object as_sequence(nb::handle iterable, const std::string& what) {
    if (PyUnicode_Check(iterable.ptr()) || PyBytes_Check(iterable.ptr()))
        throw BadInput(what + ", not the " + kind_of(iterable) + " " + nb::cast<std::string>(nb::repr(iterable)));
    nb::object fast = nb::steal(PySequence_Fast(iterable.ptr(), ""));
    if (!fast.is_valid()) {
        PyErr_Clear();
        throw BadInput(what + ", not " + kind_of(iterable));
    }
    return fast;
}

size_t size_of(const nb::object& fast) { return static_cast<size_t>(PySequence_Fast_GET_SIZE(fast.ptr())); }
nb::handle item_of(const nb::object& fast, size_t i) {
    return PySequence_Fast_GET_ITEM(fast.ptr(), static_cast<Py_ssize_t>(i));
}

class Encoder {
public:
    Encoder(std::optional<std::string> rules, std::optional<StringTable> attributes,
            std::optional<StringTable> pair_attributes, bool labelled, bool keep_lines)
        : attribute_table_(std::move(attributes)),
          pair_table_(std::move(pair_attributes)),
          labelled_(labelled),
          keep_lines_(keep_lines),
          parser_(labelled ? 2 : 1) {
        if (rules) rules_ = parse_template(*rules);
        if (attribute_table_) {
            attributes_ = Vocabulary(attribute_table_->view());
            pair_attributes_ = Vocabulary(pair_table_ ? pair_table_->view() : StringIndex{});
        }
    }

    // The next bytes of a column file; with end, the file's last.
    void feed(std::string_view bytes, bool end) {
        const auto sink = [&](const Columns& x, const std::vector<std::string_view>& lines, int64_t first_line) {
            take_columns(x, lines, first_line);
        };
        parser_.feed(bytes, sink);
        if (end) parser_.finish(sink);
    }

    // One sequence of rows: tuples or lists of column strings, or plain strings (one column).
    void add_rows(nb::handle sequence) {
        size_t t = 0;
        located(t, [&] { add_rows_from(sequence, t); });
    }

    // One sequence of items: lists of attribute strings, or dicts.
    void add_items(nb::handle sequence) {
        size_t t = 0;
        located(t, [&] { add_items_from(sequence, t); });
    }

    // What was encoded since the last call: starts, offsets, attributes, values, pair offsets, pair
    // attributes, labels.
    nb::tuple take() {
        Encoded data = std::exchange(data_, {});
        const bool pairs = rules_ && !rules_->bigrams.empty();
        const bool labelled = labelled_;
        return nb::make_tuple(to_numpy(std::move(data.starts)), to_numpy(std::move(data.offsets)),
                              to_numpy(std::move(data.attributes)),
                              data.values.empty() ? nb::none() : nb::cast(to_numpy(std::move(data.values))),
                              pairs ? nb::cast(to_numpy(std::move(data.pair_offsets))) : nb::none(),
                              pairs ? nb::cast(to_numpy(std::move(data.pair_attributes))) : nb::none(),
                              labelled ? nb::cast(to_numpy(std::move(data.labels))) : nb::none());
    }

    // The lines kept since the last call, each with `extra` of its position (columns separated by tabs)
    // appended, separated as the line itself is; a blank line after each sequence.
    nb::bytes lines_with(const nb::list& extra) {
        std::string out;
        out.reserve(lines_.size() * 2);
        if (static_cast<size_t>(nb::len(extra)) != line_ends_.size())
            throw nb::value_error("one string per line is needed");
        size_t begin = 0, next_end = 0;
        for (size_t t = 0; t < line_ends_.size(); ++t) {
            const std::string_view line(lines_.data() + begin, line_ends_[t] - begin);
            out += line;
            const bool spaces = line.find('\t') == std::string_view::npos && line.find(' ') != std::string_view::npos;
            const char separator = spaces ? ' ' : '\t';
            out += separator;
            for (const char c : utf8(extra[t])) out += c == '\t' ? separator : c;
            out += '\n';
            begin = line_ends_[t];
            if (next_end < sequence_ends_.size() && t + 1 == sequence_ends_[next_end]) {
                out += '\n';
                ++next_end;
            }
        }
        lines_.clear();
        line_ends_.clear();
        sequence_ends_.clear();
        return nb::bytes(out.data(), out.size());
    }

    int64_t n_columns() const { return parser_.n_columns(); }
    int64_t line() const { return parser_.line(); }
    nb::list label_names() const {
        nb::list names;
        for (uint64_t id = 0; id < labels_.size(); ++id) {
            const auto text = labels_.view().at(id);
            names.append(nb::str(text.data(), text.size()));
        }
        return names;
    }
    StringTable table(const Array<int64_t>& order, bool pairs) const {
        return make_table((pairs ? pair_attributes_ : attributes_).interner().view(), order.data(), order.size());
    }
    std::pair<uint64_t, uint64_t> sizes() const {
        return {attributes_.interner().size(), pair_attributes_.interner().size()};
    }

private:
    template <class Work>
    void located(const size_t& t, const Work& work) const {
        try {
            work();
        } catch (const NotUnicode&) {
            throw BadInput(at(t) + "a string that is not valid Unicode (a lone surrogate)");
        }
    }

    void add_rows_from(nb::handle sequence, size_t& t) {
        const nb::object rows = as_sequence(sequence, "a sequence must be a list of tokens");
        std::vector<std::string_view> cells;
        std::vector<nb::object> alive;
        size_t n_columns = 0;
        for (t = 0; t < size_of(rows); ++t) {
            const nb::handle row = item_of(rows, t);
            const size_t before = cells.size();
            if (PyUnicode_Check(row.ptr())) {
                cells.push_back(utf8(row));
            } else {
                alive.push_back(as_sequence(row, at(t) + "a token must be a list of column strings, or a string"));
                for (size_t c = 0; c < size_of(alive.back()); ++c) {
                    const nb::handle cell = item_of(alive.back(), c);
                    if (!PyUnicode_Check(cell.ptr()))
                        throw BadInput(at(t) + "column " + std::to_string(c) + " is " + kind_of(cell) + ", not str");
                    cells.push_back(utf8(cell));
                }
            }
            const size_t n = cells.size() - before;
            if (t == 0) n_columns = n;
            if (n != n_columns)
                throw BadInput(at(t) + counted(static_cast<int64_t>(n), "column") + ", but the tokens before have " +
                               std::to_string(n_columns));
        }
        const Columns x{cells.data(), static_cast<int64_t>(size_of(rows)), static_cast<int64_t>(n_columns)};
        if (x.length > 0) check_columns(x.n_columns, at(0));
        encode_columns(*rules_, x, attributes_, pair_attributes_, data_);
    }

    void add_items_from(nb::handle sequence, size_t& t) {
        forget_item();
        const nb::object items = as_sequence(sequence, "a sequence must be a list of items");
        for (t = 0; t < size_of(items); ++t) {
            const nb::handle item = item_of(items, t);
            nb::object names;  // alive until finish_item
            if (PyDict_Check(item.ptr())) {
                add_dict(item, "", t);
            } else {
                names = as_sequence(item, at(t) + "an item must be a list of attribute strings or a dict");
                for (size_t k = 0; k < size_of(names); ++k) {
                    const nb::handle name = item_of(names, k);
                    if (!PyUnicode_Check(name.ptr()))
                        throw BadInput(at(t) + "an attribute in a list must be a string, not " + kind_of(name) +
                                       "; use a dict for values");
                    add(utf8(name), 1.0);
                }
            }
            finish_item();
        }
        data_.end_sequence();
    }

    std::string at(size_t t) const {
        return "sequence " + std::to_string(data_.starts.size() - 1) + ", position " + std::to_string(t) + ": ";
    }

    void check_columns(int64_t n, const std::string& where) const {
        if (!rules_ || n >= rules_->n_columns) return;
        int64_t column = n;  // the first that is missing and named
        while (rules_->line_numbers[static_cast<size_t>(column)] == 0) ++column;
        throw BadInput(where + "line " + std::to_string(rules_->line_numbers[static_cast<size_t>(column)]) +
                       " of the template names column " + std::to_string(column) + ", but there " +
                       (n == 1 ? "is" : "are") + " only " + counted(n, "feature column") + ", numbered from 0");
    }

    void take_columns(const Columns& x, const std::vector<std::string_view>& lines, int64_t first_line) {
        const int64_t n = labelled_ ? x.n_columns - 1 : x.n_columns;
        if (rules_ && n < rules_->n_columns) {
            try {
                check_columns(n, "");
            } catch (const BadInput& e) {
                throw InputError{first_line, e.what()};
            }
        }
        if (rules_) {
            encode_columns(*rules_, x, attributes_, pair_attributes_, data_);
        } else {
            for (int64_t t = 0; t < x.length; ++t) data_.offsets.push_back(0);
            data_.end_sequence();
        }
        for (int64_t t = 0; labelled_ && t < x.length; ++t)
            data_.labels.push_back(labels_.intern(x.cells[t * x.n_columns + n]));
        if (!keep_lines_) return;
        for (const auto& line : lines) {
            lines_ += line;
            line_ends_.push_back(lines_.size());
        }
        sequence_ends_.push_back(line_ends_.size());
    }

    // Notes an attribute of the current item; `name` must live until finish_item.
    void add(std::string_view name, double value) {
        names_.push_back(name);
        name_values_.push_back(value);
    }
    void add(std::string&& name, double value) { add(std::string_view(made_.emplace_back(std::move(name))), value); }

    void forget_item() {
        names_.clear();
        name_values_.clear();
        made_.clear();
    }

    // Looks up the attributes of the current item.
    void finish_item() {
        ids_.clear();
        attributes_.ids(names_, ids_);
        for (size_t i = 0; i < ids_.size(); ++i) {
            if (ids_[i] < 0) continue;
            const double value = name_values_[i];
            if (value != 1.0 && data_.values.empty()) data_.values.assign(data_.attributes.size(), 1.0);
            data_.attributes.push_back(ids_[i]);
            if (value != 1.0 || !data_.values.empty()) data_.values.push_back(value);
        }
        forget_item();
        data_.offsets.push_back(static_cast<int64_t>(data_.attributes.size()));
    }

    // sklearn-crfsuite's rules: {"w": "the"} is the attribute "w:the"; numbers and booleans are values
    // of the attribute "w"; a list or set gives "w:a" for each of its strings; dicts nest, "w:…".
    void add_dict(nb::handle dict, const std::string& prefix, size_t t) {
        PyObject *key = nullptr, *value = nullptr;
        Py_ssize_t cursor = 0;
        while (PyDict_Next(dict.ptr(), &cursor, &key, &value)) {
            if (!PyUnicode_Check(key))
                throw BadInput(at(t) + "the key " + nb::cast<std::string>(nb::repr(nb::handle(key))) +
                               " is not a string");
            std::string name = prefix;
            name += utf8(key);
            if (PyUnicode_Check(value)) {
                name += ':';
                name += utf8(value);
                add(std::move(name), 1.0);
            } else if (PyDict_Check(value)) {
                const RecursionGuard guard;
                add_dict(value, name + ":", t);
            } else if (PyList_Check(value) || PyTuple_Check(value) || PyAnySet_Check(value)) {
                const nb::object members = as_sequence(value, "");
                for (size_t k = 0; k < size_of(members); ++k) {
                    if (!PyUnicode_Check(item_of(members, k).ptr()))
                        throw BadInput(at(t) + "'" + name + "' holds a " + kind_of(item_of(members, k)) +
                                       "; a list in a feature dict must hold strings");
                    add(name + ":" + std::string(utf8(item_of(members, k))), 1.0);
                }
            } else {
                const double number = PyFloat_AsDouble(value);
                if (number == -1.0 && PyErr_Occurred()) {
                    PyErr_Clear();
                    throw BadInput(at(t) + "'" + name + "' is a " + kind_of(value) +
                                   "; expected a string, a number, a boolean, a list of strings or a dict");
                }
                if (!std::isfinite(number))
                    throw BadInput(at(t) + "'" + name + "' is " + nb::cast<std::string>(nb::str(nb::handle(value))) +
                                   "; feature values must be finite");
                add(std::move(name), number);
            }
        }
    }

    std::optional<Template> rules_;
    std::optional<StringTable> attribute_table_, pair_table_;
    Vocabulary attributes_, pair_attributes_;
    Interner labels_;
    bool labelled_, keep_lines_;
    ColumnParser parser_;
    Encoded data_;
    // The current item's attributes; `made_` owns the names that are not Python's.
    std::vector<std::string_view> names_;
    std::vector<double> name_values_;
    std::deque<std::string> made_;
    std::vector<int32_t> ids_;
    std::string lines_;
    std::vector<size_t> line_ends_, sequence_ends_;
};

SequenceView view_of(const Array<int64_t>& offsets, const Array<int32_t>& ids, const Array<int32_t>& labels) {
    if (offsets.size() == 0 || labels.size() + 1 != offsets.size())
        throw nb::value_error("offsets must have one entry more than labels");
    SequenceView view;
    view.n_positions = static_cast<int64_t>(labels.size());
    view.offsets = view.pair_offsets = offsets.data();
    view.attributes = view.pair_attributes = ids.data();
    view.labels = labels.data();
    return view;
}

}  // namespace

void bind_encoder(nb::module_& m) {
    nb::exception<BadInput>(m, "BadInput", PyExc_ValueError);
    // Carries (line, message); line 0: the whole file.
    static PyObject* line_error = PyErr_NewException("crfkit._core.LineError", PyExc_ValueError, nullptr);
    m.attr("LineError") = nb::steal(nb::handle(line_error).inc_ref());
    nb::register_exception_translator([](const std::exception_ptr& p, void*) {
        const auto raise = [](int64_t line, const std::string& message) {
            const nb::object value = nb::make_tuple(line, message);
            PyErr_SetObject(line_error, value.ptr());
        };
        try {
            std::rethrow_exception(p);
        } catch (const InputError& e) {
            raise(e.line, e.message);
        } catch (const TemplateError& e) {
            raise(e.line, e.message);
        }
    });

    nb::class_<Encoder>(m, "Encoder", "Builds encoded sequences; see crfkit.data.")
        .def(nb::init<std::optional<std::string>, std::optional<StringTable>, std::optional<StringTable>, bool, bool>(),
             "template"_a = nb::none(), "attributes"_a = nb::none(), "pair_attributes"_a = nb::none(),
             "labelled"_a = false, "keep_lines"_a = false)
        .def(
            "feed",
            [](Encoder& self, const nb::bytes& bytes, bool end) {
                const std::string_view view(bytes.c_str(), bytes.size());
                without_gil([&] { self.feed(view, end); });
            },
            "bytes"_a, "end"_a = false)
        .def("add_rows", &Encoder::add_rows, "sequence"_a, nb::sig("def add_rows(self, sequence: object) -> None"))
        .def("add_items", &Encoder::add_items, "sequence"_a, nb::sig("def add_items(self, sequence: object) -> None"))
        .def("take", &Encoder::take, nb::sig("def take(self) -> tuple[typing.Any, ...]"))
        .def("lines_with", &Encoder::lines_with, "extra"_a, nb::sig("def lines_with(self, extra: list[str]) -> bytes"))
        .def("table", &Encoder::table, "order"_a, "pairs"_a = false)
        .def_prop_ro(
            "sizes", [](const Encoder& e) { return nb::make_tuple(e.sizes().first, e.sizes().second); },
            nb::sig("def sizes(self) -> tuple[int, int]"))
        .def_prop_ro("label_names", &Encoder::label_names, nb::sig("def label_names(self) -> list[str]"))
        .def_prop_ro("n_columns", &Encoder::n_columns)
        .def_prop_ro("line", &Encoder::line);

    m.def(
        "template_summary",
        [](const std::string& text) {
            const Template rules = parse_template(text);
            std::vector<std::string> unigrams, bigrams;
            for (const auto& line : rules.unigrams) unigrams.push_back(line.source);
            for (const auto& line : rules.bigrams) bigrams.push_back(line.source);
            return std::make_tuple(unigrams, bigrams, rules.transitions, rules.n_columns);
        },
        "text"_a, "(unigram lines, bigram lines other than a bare B, whether there is a bare B, columns needed)");
    m.def(
        "expand_template",
        [](const std::string& text, const std::vector<std::vector<std::string>>& rows) {
            const Template rules = parse_template(text);
            std::vector<std::string_view> cells;
            for (const auto& row : rows) {
                if (static_cast<int64_t>(row.size()) < rules.n_columns || row.size() != rows[0].size())
                    throw nb::value_error("a row has too few columns, or not as many as the first");
                cells.insert(cells.end(), row.begin(), row.end());
            }
            const Columns x{cells.data(), static_cast<int64_t>(rows.size()),
                            rows.empty() ? 0 : static_cast<int64_t>(rows[0].size())};
            std::vector<std::tuple<std::vector<std::string>, std::vector<std::string>>> result(rows.size());
            for (int64_t t = 0; t < x.length; ++t) {
                auto& [unigrams, bigrams] = result[static_cast<size_t>(t)];
                for (const auto& line : rules.unigrams) expand(line, x, t, unigrams.emplace_back());
                for (const auto& line : rules.bigrams) expand(line, x, t, bigrams.emplace_back());
            }
            return result;
        },
        "template"_a, "rows"_a, "Per position, the unigram and the bigram attributes.");
    m.def(
        "count_labels",
        [](const Array<int64_t>& offsets, const Array<int32_t>& ids, const Array<int32_t>& labels, int64_t n_ids,
           int64_t n_labels) { return to_numpy(count_labels(view_of(offsets, ids, labels), n_ids, n_labels)); },
        "offsets"_a, "ids"_a, "labels"_a, "n_ids"_a, "n_labels"_a);
    m.def(
        "observed_pairs",
        [](const Array<int64_t>& offsets, const Array<int32_t>& ids, const Array<int32_t>& labels, int64_t n_ids,
           int64_t n_labels, bool pairs) {
            std::vector<int64_t> first;
            std::vector<int32_t> codes;
            (pairs ? observed_triples : observed_pairs)(view_of(offsets, ids, labels), n_ids, n_labels, first, codes);
            return std::make_tuple(to_numpy(std::move(first)), to_numpy(std::move(codes)));
        },
        "offsets"_a, "ids"_a, "labels"_a, "n_ids"_a, "n_labels"_a, "pairs"_a = false);
    m.def(
        "renumber",
        [](nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> offsets,
           nb::ndarray<int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> ids,
           std::optional<nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>> values,
           const Array<int32_t>& rank) {
            return renumber(static_cast<int64_t>(offsets.size()) - 1, offsets.data(), ids.data(),
                            values ? values->data() : nullptr, rank.data());
        },
        "offsets"_a, "ids"_a, "values"_a.none(), "rank"_a,
        "Renumbers in place, dropping negative ranks; returns the number of entries that remain.");
}

}  // namespace crfkit
