// One sequence of Python objects at a time: encoded, decoded and returned in one call.
#include "../core/chain/crfsuite_chain.hpp"
#include "../core/chain/one_sequence.hpp"
#include "chain.hpp"
#include "encoder.hpp"
#include "python_api.hpp"
#include "python_sequences.hpp"

namespace crfkit {

namespace {

// The names of label ids, which must be in range.
nb::list names_of(const nb::tuple& labels, const int32_t* ids, size_t n) {
    nb::list names = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(n)));
    for (size_t t = 0; t < n; ++t) {
        PyObject* name = tuple_item(labels.ptr(), static_cast<Py_ssize_t>(ids[t]));
        Py_INCREF(name);
        set_list_item(names.ptr(), static_cast<Py_ssize_t>(t), name);
    }
    return names;
}

// What tags: a field with its weights and an encoder of its attributes. The views are asked for after each encoding.
struct TaggerParts {
    virtual ~TaggerParts() = default;
    virtual Encoder& encoder() = 0;
    virtual const ChainKernels& kernels() const = 0;
    virtual FieldView field() const = 0;
    virtual ChainWeights weights() const = 0;
};

struct ModelParts : TaggerParts {
    nb::object encoder_object, decoder_object;
    Decoder& decoder;
    FieldView view;

    ModelParts(nb::object encoder_, nb::object decoder_)
        : encoder_object(std::move(encoder_)),
          decoder_object(std::move(decoder_)),
          decoder(nb::cast<Decoder&>(decoder_object)),
          view(decoder.field.view()) {
        view.n_wide = count_wide(view);
    }
    Encoder& encoder() override { return nb::cast<BoundEncoder&>(encoder_object).encoder; }
    const ChainKernels& kernels() const override { return decoder.kernels; }
    FieldView field() const override { return view; }
    ChainWeights weights() const override { return decoder.prepared.view(); }
};

struct FileParts : TaggerParts {
    nb::bytes file;
    const ChainKernels& kernels_;
    CrfsuiteChain chain;
    Encoder encoder_;

    explicit FileParts(nb::bytes file_)
        : file(std::move(file_)),
          kernels_(kernels_named("auto")),
          chain({file.c_str(), file.size()}, kernels_),
          encoder_(chain) {}
    Encoder& encoder() override { return encoder_; }
    const ChainKernels& kernels() const override { return kernels_; }
    FieldView field() const override { return chain.field(); }
    ChainWeights weights() const override { return chain.weights(); }
};

struct Tagger {
    std::unique_ptr<TaggerParts> parts;
    Encoder& encoder;
    nb::tuple labels;  // nobody can change it
    bool rows;
    int64_t n_labels;
    OneSequence chain;
    std::vector<int32_t> best;

    Tagger(std::unique_ptr<TaggerParts> parts_, const nb::list& labels_, bool rows_)
        : parts(std::move(parts_)),
          encoder(parts->encoder()),
          labels(labels_),
          rows(rows_),
          n_labels(parts->field().n_labels),
          chain(parts->kernels()) {
        if (static_cast<int64_t>(nb::len(labels)) != n_labels)
            throw nb::value_error("a tagger needs a name for each label");
        clear();
    }

    // Leaves an empty sequence.
    void clear() {
        encoder.clear();
        encoder.data().end_sequence();
        hand_over();
    }

    void hand_over() {
        const Encoded& data = encoder.data();
        SequenceView view;
        view.n_sequences = 1;
        view.n_positions = data.n_positions();
        view.starts = data.starts.data();
        view.offsets = data.offsets.data();
        view.attributes = data.attributes.data();
        view.values = data.values.empty() ? nullptr : data.values.data();
        if (encoder.has_pairs()) {
            view.pair_offsets = data.pair_offsets.data();
            view.pair_attributes = data.pair_attributes.data();
        }
        chain.set(view, parts->field(), parts->weights());
    }

    void set(nb::handle sequence) {
        try {
            (rows ? add_rows : add_items)(encoder, sequence, true);
            encoder.data().sort_positions();
            hand_over();
        } catch (...) {
            clear();
            throw;
        }
    }

    nb::list viterbi() {
        const auto length = static_cast<size_t>(chain.length());
        best.resize(length);
        if (chain.viterbi(best.data()) == -INFINITY)
            throw BadInput("the constraints allow no labelling of this sequence");
        return names_of(labels, best.data(), length);
    }

    double score(const std::vector<int32_t>& given) {
        if (static_cast<int64_t>(given.size()) != chain.length())
            throw nb::value_error("there must be a label for every position");
        for (const int32_t j : given)
            if (j < 0 || j >= n_labels) throw nb::index_error("label id out of range");
        return chain.score(given.data());
    }

    double marginal(int64_t label, int64_t t) {
        if (label < 0 || label >= n_labels || t < 0 || t >= chain.length())
            throw nb::index_error("label or position out of range");
        return chain.marginals()[t * n_labels + label];
    }

    auto marginals() {
        const auto rows_ = static_cast<size_t>(chain.length()), columns = static_cast<size_t>(n_labels);
        nb::capsule owner;
        double* copy = allocate<double>(rows_ * columns, owner);
        std::copy_n(chain.marginals(), rows_ * columns, copy);
        return Numpy2<double>(copy, {rows_, columns}, owner);
    }
};

}  // namespace

void bind_tagger(nb::module_& m) {
    m.def(
        "name_labels",
        [](const nb::list& listed, const Array<int32_t>& ids, const Array<int64_t>& starts) {
            const nb::tuple labels(listed);
            const auto n_labels = static_cast<int32_t>(nb::len(labels));
            for (size_t t = 0; t < ids.size(); ++t)
                if (ids.data()[t] < 0 || ids.data()[t] >= n_labels) throw nb::index_error("label id out of range");
            nb::list rows;
            for (size_t n = 0; n + 1 < starts.size(); ++n) {
                const int64_t begin = starts.data()[n], end = starts.data()[n + 1];
                if (begin < 0 || begin > end || end > static_cast<int64_t>(ids.size()))
                    throw nb::index_error("position out of range");
                rows.append(names_of(labels, ids.data() + begin, static_cast<size_t>(end - begin)));
            }
            return rows;
        },
        "labels"_a, "ids"_a, "starts"_a, "The names of label ids, a list for each sequence.",
        nb::sig("def name_labels(labels: list[typing.Any], ids: NDArray[numpy.int32], starts: NDArray[numpy.int64]) -> "
                "list[list[typing.Any]]"));
    nb::class_<Tagger>(m, "Tagger", "Tags one sequence at a time; the sequence of the last call is kept.")
        .def(
            "__init__",
            [](Tagger* self, nb::object encoder, nb::object decoder, const nb::list& labels, bool rows) {
                new (self) Tagger(std::make_unique<ModelParts>(std::move(encoder), std::move(decoder)), labels, rows);
            },
            "encoder"_a, "decoder"_a, "labels"_a, "rows"_a,
            nb::sig(
                "def __init__(self, encoder: Encoder, decoder: Decoder, labels: list[typing.Any], rows: bool) -> None"))
        .def_static(
            "open_crfsuite",
            [](nb::bytes file) {
                auto parts = std::make_unique<FileParts>(std::move(file));
                nb::list labels;
                for (const std::string& label : parts->chain.labels()) {
                    const nb::object name =
                        nb::steal(PyUnicode_DecodeUTF8(label.data(), static_cast<Py_ssize_t>(label.size()), nullptr));
                    if (!name.is_valid()) {
                        PyErr_Clear();
                        throw BadModel("a label is not UTF-8; crfkit.convert.load takes the encoding of a model");
                    }
                    labels.append(name);
                }
                return new Tagger(std::move(parts), labels, false);
            },
            "file"_a, "The tagger of a CRFsuite file, whose attributes are read when they occur. Raises BadModel.")
        .def_prop_ro(
            "labels", [](const Tagger& self) { return nb::list(self.labels); },
            nb::sig("def labels(self) -> list[typing.Any]"))
        .def(
            "tag",
            [](Tagger& self, nb::handle sequence) {
                self.set(sequence);
                return self.viterbi();
            },
            "sequence"_a.none(), "The best labels of a sequence.",
            nb::sig("def tag(self, sequence: object) -> list[typing.Any]"))
        .def(
            "set", [](Tagger& self, nb::handle sequence) { self.set(sequence); }, "sequence"_a.none(),
            "Encodes a sequence and keeps it.", nb::sig("def set(self, sequence: object) -> None"))
        .def("viterbi", &Tagger::viterbi, "The best labels.", nb::sig("def viterbi(self) -> list[typing.Any]"))
        .def("score", &Tagger::score, "labels"_a, "The score of labels, given by their ids.")
        .def_prop_ro("log_partition", [](Tagger& self) { return self.chain.log_z(); })
        .def_prop_ro("length", [](const Tagger& self) { return self.chain.length(); })
        .def("marginal", &Tagger::marginal, "label"_a, "position"_a, "p(label at position).")
        .def("marginals", &Tagger::marginals, "p(label) of every position: [positions, labels].",
             nb::sig("def marginals(self) -> NDArray[numpy.float64]"));
}

}  // namespace crfkit
