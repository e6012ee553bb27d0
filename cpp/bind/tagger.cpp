// One sequence of Python objects at a time: encoded, decoded and returned in one call.
#include "../core/chain/one_sequence.hpp"
#include "chain.hpp"
#include "encoder.hpp"
#include "python_sequences.hpp"

namespace crfkit {

namespace {

struct Tagger {
    nb::object encoder_object, decoder_object;
    Encoder& encoder;
    const Decoder& decoder;
    nb::list labels;
    bool rows;
    OneSequence chain;
    std::vector<int32_t> best;

    Tagger(nb::object encoder_, nb::object decoder_, nb::list labels_, bool rows_)
        : encoder_object(std::move(encoder_)),
          decoder_object(std::move(decoder_)),
          encoder(nb::cast<BoundEncoder&>(encoder_object).encoder),
          decoder(nb::cast<const Decoder&>(decoder_object)),
          labels(std::move(labels_)),
          rows(rows_),
          chain(decoder.field.view(), decoder.prepared.view(), decoder.kernels) {
        if (static_cast<int64_t>(nb::len(labels)) != decoder.field.n_labels)
            throw nb::value_error("a tagger needs a name for each label");
        clear();
    }

    // Leaves an empty sequence.
    void clear() {
        encoder.data().clear();
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
        chain.set(view);
    }

    void set(nb::handle sequence) {
        encoder.data().clear();
        try {
            (rows ? add_rows : add_items)(encoder, sequence);
        } catch (...) {
            clear();
            throw;
        }
        encoder.data().sort_positions();
        hand_over();
    }

    nb::list viterbi() {
        const auto length = static_cast<size_t>(chain.length());
        best.resize(length);
        if (chain.viterbi(best.data()) == -INFINITY)
            throw BadInput("the constraints allow no labelling of this sequence");
        nb::list names = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(length)));
        for (size_t t = 0; t < length; ++t)
            PyList_SET_ITEM(names.ptr(), static_cast<Py_ssize_t>(t),
                            Py_NewRef(PyList_GET_ITEM(labels.ptr(), static_cast<Py_ssize_t>(best[t]))));
        return names;
    }

    double score(const std::vector<int32_t>& given) {
        if (static_cast<int64_t>(given.size()) != chain.length())
            throw nb::value_error("there must be a label for every position");
        for (const int32_t j : given)
            if (j < 0 || j >= decoder.field.n_labels) throw nb::index_error("label id out of range");
        return chain.score(given.data());
    }

    double marginal(int64_t label, int64_t t) {
        if (label < 0 || label >= decoder.field.n_labels || t < 0 || t >= chain.length())
            throw nb::index_error("label or position out of range");
        return chain.marginals()[t * decoder.field.n_labels + label];
    }

    auto marginals() {
        const auto rows_ = static_cast<size_t>(chain.length()), columns = static_cast<size_t>(decoder.field.n_labels);
        nb::capsule owner;
        double* copy = allocate<double>(rows_ * columns, owner);
        std::copy_n(chain.marginals(), rows_ * columns, copy);
        return Numpy2<double>(copy, {rows_, columns}, owner);
    }
};

}  // namespace

void bind_tagger(nb::module_& m) {
    nb::class_<Tagger>(m, "Tagger", "Tags one sequence at a time; the sequence of the last call is kept.")
        .def(nb::init<nb::object, nb::object, nb::list, bool>(), "encoder"_a, "decoder"_a, "labels"_a, "rows"_a,
             nb::sig("def __init__(self, encoder: Encoder, decoder: Decoder, labels: list[typing.Any], rows: bool) -> None"))
        .def(
            "tag",
            [](Tagger& self, nb::handle sequence) {
                self.set(sequence);
                return self.viterbi();
            },
            "sequence"_a, "The best labels of a sequence.", nb::sig("def tag(self, sequence: object) -> list[typing.Any]"))
        .def(
            "set", [](Tagger& self, nb::handle sequence) { self.set(sequence); }, "sequence"_a,
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
