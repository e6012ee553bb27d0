#include "chain.hpp"
#include "../core/chain/engine.hpp"
#include "common.hpp"

namespace crfkit {

namespace {

struct Objective {
    Sequences data;
    Field field;
    ChainObjective objective;

    Objective(Sequences d, Field f, int n_threads, const std::string& kernels, const OptionalArray<double>& cost,
              bool hinge)
        : data(std::move(d)),
          field(std::move(f)),
          objective(data.view(), field.view(), kernels_named(kernels), n_threads, pointer(cost), hinge) {
        if (cost && static_cast<int64_t>(cost->size()) != field.n_labels * field.n_labels)
            throw nb::value_error("the cost must be a matrix of labels by labels");
    }
};

// The data with what single positions allow, [positions, labels].
SequenceView limited(const Sequences& data, const Decoder& decoder, const OptionalArray<uint8_t>& allowed) {
    SequenceView view = data.view();
    if (!allowed) return view;
    if (static_cast<int64_t>(allowed->size()) != view.n_positions * decoder.field.n_labels)
        throw nb::value_error("allowed must have an entry for every label of every position");
    view.allowed = allowed->data();
    return view;
}

}  // namespace

void bind_chain(nb::module_& m) {
    nb::class_<Sequences>(m, "Sequences")
        .def(
            "__init__",
            [](Sequences* self, Array<int64_t> starts, Array<int64_t> offsets, Array<int32_t> attributes,
               OptionalArray<double> values, OptionalArray<int64_t> pair_offsets,
               OptionalArray<int32_t> pair_attributes, OptionalArray<int32_t> labels, OptionalArray<double> weights,
               OptionalArray<uint8_t> targets, OptionalArray<double> token_weights) {
                new (self) Sequences{std::move(starts),       std::move(offsets),      std::move(attributes),
                                     std::move(values),       std::move(pair_offsets), std::move(pair_attributes),
                                     std::move(labels),       std::move(weights),      std::move(targets),
                                     std::move(token_weights)};
            },
            "starts"_a, "offsets"_a, "attributes"_a, "values"_a.none(), "pair_offsets"_a.none(),
            "pair_attributes"_a.none(), "labels"_a.none(), "weights"_a.none(), "targets"_a.none() = nb::none(),
            "token_weights"_a.none() = nb::none());

    nb::class_<Field>(m, "Field")
        .def(
            "__init__",
            [](Field* self, int64_t n_labels, int64_t n_attributes, int64_t n_pair_attributes,
               OptionalArray<int64_t> state_offsets, OptionalArray<int32_t> state_labels,
               OptionalArray<int32_t> transition_codes, int64_t n_transition, OptionalArray<int64_t> pair_offsets,
               OptionalArray<int32_t> pair_codes, int64_t order, OptionalArray<int32_t> triple_codes, int64_t n_triple,
               OptionalArray<uint8_t> allowed, OptionalArray<uint8_t> allowed_start, OptionalArray<uint8_t> allowed_end,
               OptionalArray<int32_t> label_classes, int64_t n_classes, OptionalArray<int64_t> class_offsets,
               OptionalArray<int32_t> class_codes) {
                new (self) Field{n_labels,
                                 n_attributes,
                                 n_pair_attributes,
                                 std::move(state_offsets),
                                 std::move(state_labels),
                                 std::move(transition_codes),
                                 n_transition,
                                 std::move(pair_offsets),
                                 std::move(pair_codes),
                                 order,
                                 std::move(triple_codes),
                                 n_triple,
                                 std::move(allowed),
                                 std::move(allowed_start),
                                 std::move(allowed_end),
                                 std::move(label_classes),
                                 n_classes,
                                 std::move(class_offsets),
                                 std::move(class_codes)};
            },
            "n_labels"_a, "n_attributes"_a, "n_pair_attributes"_a, "state_offsets"_a.none(), "state_labels"_a.none(),
            "transition_codes"_a.none(), "n_transition"_a, "pair_offsets"_a.none(), "pair_codes"_a.none(), "order"_a,
            "triple_codes"_a.none(), "n_triple"_a, "allowed"_a.none(), "allowed_start"_a.none(), "allowed_end"_a.none(),
            "label_classes"_a.none(), "n_classes"_a, "class_offsets"_a.none(), "class_codes"_a.none())
        .def_prop_ro("size", [](const Field& f) { return f.view().size(); });

    nb::class_<Objective>(m, "Objective", "Negative log-likelihood or hinge loss of chains and its derivatives.")
        .def(nb::init<Sequences, Field, int, const std::string&, const OptionalArray<double>&, bool>(), "data"_a,
             "field"_a, "n_threads"_a, "kernels"_a = "auto", "cost"_a.none() = nb::none(), "hinge"_a = false)
        .def(
            "value_gradient",
            [](Objective& self, const Array<double>& w, Output gradient, bool keep) {
                check_size(self.field.view(), w.size());
                check_size(self.field.view(), gradient.size());
                return interruptible(
                    [&] { return self.objective.value_gradient(w.data(), gradient.data(), keep, poll_signals); });
            },
            "w"_a, "gradient"_a, "keep"_a = false,
            "Fills gradient, returns the value. With keep, Hessian products at w start from what is left behind.")
        .def(
            "hessian_product",
            [](Objective& self, const Array<double>& v, Output product) {
                check_size(self.field.view(), v.size());
                check_size(self.field.view(), product.size());
                interruptible([&] { self.objective.hessian_product(v.data(), product.data(), poll_signals); });
            },
            "v"_a, "product"_a, "product = Hessian times v, at the w of the last value_gradient; w must be alive.")
        .def(
            "hessian_diagonal",
            [](Objective& self, const Array<double>& w, Output diagonal) {
                check_size(self.field.view(), w.size());
                check_size(self.field.view(), diagonal.size());
                interruptible([&] { self.objective.hessian_diagonal(w.data(), diagonal.data(), poll_signals); });
            },
            "w"_a, "diagonal"_a, "diagonal = sum of p (1 - p) over the occurrences of each feature.")
        .def_prop_ro("cache_bytes", [](const Objective& self) { return self.objective.cache_bytes(); });

    nb::class_<Decoder>(m, "Decoder", "A field with its weights: marginals and best labels of sequences.")
        .def(nb::init<Field, Array<double>, const std::string&>(), "field"_a, "weights"_a, "kernels"_a = "auto")
        .def(
            "marginals",
            [](const Decoder& self, const Sequences& data, int n_threads, bool nodes, bool edges,
               const OptionalArray<uint8_t>& allowed) {
                const SequenceView view = limited(data, self, allowed);
                const auto n = static_cast<size_t>(view.n_sequences), t = static_cast<size_t>(view.n_positions);
                const auto l = static_cast<size_t>(self.field.n_labels);
                nb::capsule log_z_owner, node_owner, edge_owner;
                double* log_z = allocate<double>(n, log_z_owner);
                double* node = nodes ? allocate<double>(t * l, node_owner) : nullptr;
                double* edge = edges ? allocate<double>(t * l * l, edge_owner) : nullptr;
                interruptible([&] {
                    chain_marginals(view, self.field.view(), self.prepared.view(), self.kernels, n_threads, log_z, node,
                                    edge, poll_signals);
                });
                return nb::make_tuple(Numpy1<double>(log_z, {n}, log_z_owner),
                                      nodes ? nb::cast(Numpy2<double>(node, {t, l}, node_owner)) : nb::none(),
                                      edges ? nb::cast(Numpy3<double>(edge, {t, l, l}, edge_owner)) : nb::none());
            },
            "data"_a, "n_threads"_a, "nodes"_a = true, "edges"_a = false, "allowed"_a.none() = nb::none(),
            "(log Z per sequence, node marginals, edge marginals)",
            nb::sig("def marginals(self, data: Sequences, n_threads: int, nodes: bool = True, edges: bool = False, "
                    "allowed: NDArray[numpy.uint8] | None = None) -> "
                    "tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]"))
        .def(
            "picked_edges",
            [](const Decoder& self, const Sequences& data, int n_threads, const Array<int64_t>& offsets,
               const Array<int32_t>& codes) {
                const SequenceView view = data.view();
                const auto n = static_cast<size_t>(view.n_sequences), t = static_cast<size_t>(view.n_positions);
                const auto l = static_cast<size_t>(self.field.n_labels);
                bool fits = offsets.size() == t + 1 && offsets.data()[0] == 0 &&
                            offsets.data()[t] == static_cast<int64_t>(codes.size());
                for (size_t k = 0; fits && k < t; ++k) fits = offsets.data()[k] <= offsets.data()[k + 1];
                for (size_t k = 0; fits && k < codes.size(); ++k)
                    fits = codes.data()[k] >= 0 && codes.data()[k] < static_cast<int64_t>(l * l);
                if (!fits) throw nb::value_error("the offsets and codes of the picked edges do not fit the data");
                nb::capsule node_owner, picked_owner;
                double* node = allocate<double>(t * l, node_owner);
                double* picked = allocate<double>(codes.size(), picked_owner);
                std::vector<double> log_z(n);
                interruptible([&] {
                    chain_picked_edges(view, self.field.view(), self.prepared.view(), self.kernels, n_threads,
                                       offsets.data(), codes.data(), log_z.data(), node, picked, poll_signals);
                });
                return nb::make_tuple(Numpy2<double>(node, {t, l}, node_owner),
                                      Numpy1<double>(picked, {codes.size()}, picked_owner));
            },
            "data"_a, "n_threads"_a, "offsets"_a, "codes"_a,
            "(node marginals, the edge marginals of each position t at codes[offsets[t]] …)",
            nb::sig("def picked_edges(self, data: Sequences, n_threads: int, offsets: NDArray[numpy.int64], "
                    "codes: NDArray[numpy.int32]) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]"))
        .def(
            "viterbi",
            [](const Decoder& self, const Sequences& data, int n_threads, const OptionalArray<uint8_t>& allowed) {
                const SequenceView view = limited(data, self, allowed);
                const auto n = static_cast<size_t>(view.n_sequences), t = static_cast<size_t>(view.n_positions);
                nb::capsule label_owner, score_owner;
                auto* labels = allocate<int32_t>(t, label_owner);
                auto* scores = allocate<double>(n, score_owner);
                interruptible([&] {
                    chain_viterbi(view, self.field.view(), self.prepared.view(), self.kernels, n_threads, labels,
                                  scores, poll_signals);
                });
                return nb::make_tuple(Numpy1<int32_t>(labels, {t}, label_owner),
                                      Numpy1<double>(scores, {n}, score_owner));
            },
            "data"_a, "n_threads"_a, "allowed"_a.none() = nb::none(), "(best labels, their scores)",
            nb::sig(
                "def viterbi(self, data: Sequences, n_threads: int, allowed: NDArray[numpy.uint8] | None = None) -> "
                "tuple[NDArray[numpy.int32], NDArray[numpy.float64]]"))
        .def(
            "nbest",
            [](const Decoder& self, const Sequences& data, int n_threads, int64_t most,
               const OptionalArray<uint8_t>& allowed) {
                const SequenceView view = limited(data, self, allowed);
                ChainLabellings found;
                interruptible([&] {
                    found = chain_nbest(view, self.field.view(), self.prepared.view(), self.kernels, n_threads, most,
                                        poll_signals);
                });
                return nb::make_tuple(to_numpy(std::move(found.counts)), to_numpy(std::move(found.scores)),
                                      to_numpy(std::move(found.labels)));
            },
            "data"_a, "n_threads"_a, "most"_a, "allowed"_a.none() = nb::none(),
            "(number of labellings per sequence, their scores, their labels)",
            nb::sig("def nbest(self, data: Sequences, n_threads: int, most: int, "
                    "allowed: NDArray[numpy.uint8] | None = None) -> "
                    "tuple[NDArray[numpy.int64], NDArray[numpy.float64], NDArray[numpy.int32]]"));

    m.def(
        "available_kernels",
        [] {
            std::vector<std::string> names;
            for (const char* name : {"avx512", "avx2", "generic"})
                if (find_kernels(name)) names.emplace_back(name);
            return names;
        },
        "Instruction sets that this machine runs, fastest first.");
}

}  // namespace crfkit
