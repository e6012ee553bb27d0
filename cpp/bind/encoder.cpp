// The encoder of sequences, with its errors.
#include "encoder.hpp"

#include "python_sequences.hpp"

namespace crfkit {

namespace {

template <class T>
nb::object array_or_none(bool given, std::vector<T>&& values) {
    return given ? nb::cast(to_numpy(std::move(values))) : nb::none();
}

// What was encoded since the last call: starts, offsets, attributes, values, pair offsets, pair attributes, labels.
// `ordered`: with ascending ids at every position.
nb::tuple take(BoundEncoder& self, bool ordered) {
    Encoded data = self.encoder.take();
    if (ordered) data.sort_positions();
    const bool pairs = self.encoder.has_pairs(), values = !data.values.empty();
    return nb::make_tuple(to_numpy(std::move(data.starts)), to_numpy(std::move(data.offsets)),
                          to_numpy(std::move(data.attributes)), array_or_none(values, std::move(data.values)),
                          array_or_none(pairs, std::move(data.pair_offsets)),
                          array_or_none(pairs, std::move(data.pair_attributes)),
                          array_or_none(self.encoder.labelled(), std::move(data.labels)));
}

nb::bytes lines_with(BoundEncoder& self, const nb::list& extra) {
    std::vector<std::string_view> columns;
    columns.reserve(nb::len(extra));
    for (const nb::handle text : extra) columns.push_back(utf8(text, self.encoder));
    const std::string out = self.encoder.kept_lines().take_with(columns);
    return nb::bytes(out.data(), out.size());
}

nb::bytes lines_with_columns(KeptLines& self, const nb::list& extra) {
    std::vector<std::string_view> columns;
    columns.reserve(nb::len(extra));
    for (const nb::handle text : extra) {
        Py_ssize_t size = 0;
        const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
        if (!data) throw nb::python_error();
        columns.emplace_back(data, static_cast<size_t>(size));
    }
    const std::string out = self.take_with(columns);
    return nb::bytes(out.data(), out.size());
}

// The lines with the names of label ids appended.
nb::bytes lines_labelled(KeptLines& self, const nb::list& names, const Array<int32_t>& ids) {
    std::vector<std::string> texts;
    for (const nb::handle name : names) {
        const nb::object bytes = nb::steal(PyUnicode_AsEncodedString(name.ptr(), "utf-8", "surrogatepass"));
        if (!bytes.is_valid()) throw nb::python_error();
        texts.emplace_back(nb::cast<nb::bytes>(bytes).c_str(), nb::len(bytes));
    }
    for (const int32_t id : span_of(ids))
        if (id < 0 || static_cast<size_t>(id) >= texts.size()) throw nb::index_error("label id out of range");
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    const std::string out = self.take_with(views, span_of(ids));
    return nb::bytes(out.data(), out.size());
}

nb::list label_names(const BoundEncoder& self) {
    nb::list names;
    const StringIndex labels = self.encoder.labels();
    for (uint64_t id = 0; id < labels.size; ++id) names.append(nb::str(labels.at(id).data(), labels.at(id).size()));
    return names;
}

}  // namespace

void bind_encoder(nb::module_& m) {
    // Raised as a DataError with more to say by the Python side where it knows the file's name.
    nb::exception<BadInput>(m, "BadInput", nb::module_::import_("crfkit.errors").attr("DataError"));
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
        } catch (const BadTextRule& e) {
            raise(e.rule, e.message);
        }
    });

    m.def("number_labels", &number_labels, "rows"_a,
          "(different labels as they occur, number of each label, length of each row); None if they are not all str.",
          nb::sig("def number_labels(rows: list[typing.Any]) -> tuple[list[str], NDArray[numpy.int32], "
                  "NDArray[numpy.int64]] | None"));
    nb::class_<PreparedItems>(m, "Items", "A sequence of items whose attributes have been worked out.")
        .def(nb::init<nb::handle>(), "sequence"_a.none(), nb::sig("def __init__(self, sequence: object) -> None"))
        .def("__len__", [](const PreparedItems& self) { return self.item_ends.size(); })
        .def("items", &PreparedItems::items, "The attributes of each item with their values.",
             nb::sig("def items(self) -> list[dict[str, float]]"));
    nb::class_<KeptLines>(m, "Lines", "Lines of a column file that wait for their labels.")
        .def("with_columns", &lines_with_columns, "extra"_a,
             "Hands out the lines, each followed by its string; tabs in it separate columns.",
             nb::sig("def with_columns(self, extra: list[str]) -> bytes"))
        .def("with_labels", &lines_labelled, "names"_a, "ids"_a, "Hands out the lines with a further column each.",
             nb::sig("def with_labels(self, names: list[str], ids: NDArray[numpy.int32]) -> bytes"));
    nb::class_<BoundEncoder>(m, "Encoder", "Builds encoded sequences; see crfkit.chain.data.")
        .def(nb::init<const std::optional<std::string>&, std::optional<AttributeTable>, std::optional<AttributeTable>,
                      bool, bool, const std::string&, bool, nb::object, int64_t, uint64_t>(),
             "template"_a = nb::none(), "attributes"_a = nb::none(), "pair_attributes"_a = nb::none(),
             "labelled"_a = false, "keep_lines"_a = false, "syntax"_a = "crf++", "loose"_a = false,
             "text"_a = nb::none(), "hash_bits"_a = 0, "most"_a = kMostStrings,
             nb::sig("def __init__(self, template: str | None = None, attributes: StringTable | BucketTable | None = "
                     "None, pair_attributes: StringTable | BucketTable | None = None, labelled: bool = False, "
                     "keep_lines: bool = False, syntax: str = 'crf++', loose: bool = False, text: TextRules | None = "
                     "None, hash_bits: int = 0, most: int = 2147483647) -> None"))
        .def(
            "feed",
            [](BoundEncoder& self, const nb::bytes& bytes, bool end) {
                const std::string_view view(bytes.c_str(), bytes.size());
                without_gil([&] { self.encoder.feed(view, end); });
            },
            "bytes"_a, "end"_a = false)
        .def(
            "add_rows", [](BoundEncoder& self, nb::handle sequence) { add_rows(self.encoder, sequence); },
            "sequence"_a.none(), nb::sig("def add_rows(self, sequence: object) -> None"))
        .def(
            "add_items", [](BoundEncoder& self, nb::handle sequence) { add_items(self.encoder, sequence); },
            "sequence"_a.none(), nb::sig("def add_items(self, sequence: object) -> None"))
        .def(
            "add_all_items",
            [](BoundEncoder& self, const nb::list& sequences, int n_threads) {
                add_all_items(self.encoder, sequences, n_threads);
            },
            "sequences"_a, "n_threads"_a = 1, "Adds sequences. The number of threads changes nothing but the time.",
            nb::sig("def add_all_items(self, sequences: list[typing.Any], n_threads: int = 1) -> None"))
        .def("take", &take, "ordered"_a = false,
             nb::sig("def take(self, ordered: bool = False) -> tuple[typing.Any, ...]"))
        .def("take_lines", [](BoundEncoder& self) { return self.encoder.take_lines(); })
        .def("lines_with", &lines_with, "extra"_a, nb::sig("def lines_with(self, extra: list[str]) -> bytes"))
        .def(
            "table",
            [](const BoundEncoder& self, const Array<int64_t>& order, bool pairs) -> AttributeTable {
                const Vocabulary& names = pairs ? self.encoder.pair_attributes() : self.encoder.attributes();
                if (names.buckets().bits > 0) return taken(names.buckets(), order);
                return make_table(freeze(names.interner(), {order.data(), order.size()}));
            },
            "order"_a, "pairs"_a = false)
        .def_prop_ro(
            "sizes",
            [](const BoundEncoder& self) {
                return nb::make_tuple(self.encoder.attributes().size(), self.encoder.pair_attributes().size());
            },
            nb::sig("def sizes(self) -> tuple[int, int]"))
        .def_prop_ro("label_names", &label_names, nb::sig("def label_names(self) -> list[str]"))
        .def_prop_ro("n_columns", [](const BoundEncoder& self) { return self.encoder.n_columns(); })
        .def_prop_ro("line", [](const BoundEncoder& self) { return self.encoder.line(); });
}

}  // namespace crfkit
