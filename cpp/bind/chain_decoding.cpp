// A field with its weights: marginals, best labellings, phrases, entropies and samples of sequences.
#include "../core/chain/decoding.hpp"
#include "chain.hpp"

namespace crfkit {

namespace {

// The data with what single positions allow, [positions, labels].
SequenceView limited(const Sequences& data, const Decoder& decoder, const OptionalArray<uint8_t>& allowed) {
    SequenceView view = checked_view(data, decoder.field);
    if (!allowed) return view;
    check_size(allowed->size(), checked_product({view.n_positions, decoder.field.n_labels}, "labels"), "allowed");
    view.allowed = allowed->data();
    return view;
}

ChainPhrases phrase_rules(const Decoder& decoder, const Array<uint8_t>& goes_on, const Array<int32_t>& types) {
    const int64_t l = decoder.field.n_labels;
    check_size(goes_on.size(), l * l, "goes_on");
    check_size(types.size(), l, "types");
    return {goes_on.data(), types.data()};
}

}  // namespace

void bind_decoder(nb::module_& m) {
    nb::class_<Decoder>(m, "Decoder", "A field with its weights: marginals and best labels of sequences.")
        .def(nb::init<Field, Array<double>, const std::string&>(), "field"_a, "weights"_a, "kernels"_a = "auto")
        .def(
            "marginals",
            [](const Decoder& self, const Sequences& data, Threads n_threads, bool nodes, bool edges,
               const OptionalArray<uint8_t>& allowed) {
                const SequenceView view = limited(data, self, allowed);
                const auto n = static_cast<size_t>(view.n_sequences), t = static_cast<size_t>(view.n_positions);
                const auto l = static_cast<size_t>(self.field.n_labels);
                nb::capsule log_z_owner, node_owner, edge_owner;
                double* log_z = allocate<double>(n, log_z_owner);
                double* node =
                    nodes ? allocate<double>(size_of({view.n_positions, self.field.n_labels}), node_owner) : nullptr;
                double* edge =
                    edges ? allocate<double>(size_of({view.n_positions, self.field.n_labels, self.field.n_labels}),
                                             edge_owner)
                          : nullptr;
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
            "viterbi",
            [](const Decoder& self, const Sequences& data, Threads n_threads, const OptionalArray<uint8_t>& allowed) {
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
            [](const Decoder& self, const Sequences& data, Threads n_threads, int64_t most,
               const OptionalArray<uint8_t>& allowed, const OptionalArray<int32_t>& groups,
               const OptionalArray<uint8_t>& goes_on, int64_t limit) {
                const SequenceView view = limited(data, self, allowed);
                OneRunEach rule{};
                if (groups) {
                    const int64_t l = self.field.n_labels;
                    require(goes_on.has_value(), "groups and goes_on go together");
                    check_size(groups->size(), l, "groups");
                    check_size(goes_on->size(), l * l, "goes_on");
                    check_ids(span_of(*groups), OneRunEach::kMost, "groups", -1);
                    rule = {groups->data(), goes_on->data(), limit};
                }
                ChainLabellings found;
                interruptible([&] {
                    found = chain_nbest(view, self.field.view(), self.prepared.view(), self.kernels, n_threads, most,
                                        groups ? &rule : nullptr, poll_signals);
                });
                return nb::make_tuple(to_numpy(std::move(found.counts)), to_numpy(std::move(found.scores)),
                                      to_numpy(std::move(found.labels)), to_numpy(std::move(found.exact)));
            },
            "data"_a, "n_threads"_a, "most"_a, "allowed"_a.none() = nb::none(), "groups"_a.none() = nb::none(),
            "goes_on"_a.none() = nb::none(), "limit"_a = 0,
            "(number of labellings per sequence, their scores, their labels, whether the search was complete). With "
            "groups (of each label, -1: none), only labellings in which each group has at most one run.",
            nb::sig("def nbest(self, data: Sequences, n_threads: int, most: int, "
                    "allowed: NDArray[numpy.uint8] | None = None, groups: NDArray[numpy.int32] | None = None, "
                    "goes_on: NDArray[numpy.uint8] | None = None, limit: int = 0) -> "
                    "tuple[NDArray[numpy.int64], NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.uint8]]"))
        .def(
            "best_spans",
            [](const Decoder& self, const Sequences& data, Threads n_threads, const Array<uint8_t>& goes_on,
               const Array<int32_t>& types, const OptionalArray<uint8_t>& allowed) {
                const SequenceView view = limited(data, self, allowed);
                const ChainPhrases rules = phrase_rules(self, goes_on, types);
                std::vector<std::vector<ChainSpan>> found;
                std::vector<double> log_z(static_cast<size_t>(view.n_sequences));
                std::vector<int64_t> counts, begins, ends;
                std::vector<int32_t> kinds;
                std::vector<double> chances;
                interruptible([&] {
                    found = chain_best_spans(view, self.field.view(), self.prepared.view(), self.kernels, n_threads,
                                             rules, log_z.data(), poll_signals);
                    for (const auto& spans : found) {
                        counts.push_back(static_cast<int64_t>(spans.size()));
                        for (const ChainSpan& span : spans) {
                            begins.push_back(span.begin);
                            ends.push_back(span.end);
                            kinds.push_back(span.type);
                            chances.push_back(span.probability);
                        }
                    }
                });
                return nb::make_tuple(to_numpy(std::move(log_z)), to_numpy(std::move(counts)),
                                      to_numpy(std::move(begins)), to_numpy(std::move(ends)),
                                      to_numpy(std::move(kinds)), to_numpy(std::move(chances)));
            },
            "data"_a, "n_threads"_a, "goes_on"_a, "types"_a, "allowed"_a.none() = nb::none(),
            "The phrases of the best labelling of each sequence: (log Z, how many; their begins, ends, types and "
            "probabilities).",
            nb::sig("def best_spans(self, data: Sequences, n_threads: int, goes_on: NDArray[numpy.uint8], "
                    "types: NDArray[numpy.int32], allowed: NDArray[numpy.uint8] | None = None) -> "
                    "tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.int64], "
                    "NDArray[numpy.int32], NDArray[numpy.float64]]"))
        .def(
            "span_probabilities",
            [](const Decoder& self, const Sequences& data, Threads n_threads, const Array<uint8_t>& goes_on,
               const Array<int32_t>& types, const Array<int64_t>& offsets, const Array<int64_t>& begins,
               const Array<int64_t>& ends, const Array<int32_t>& kinds, const OptionalArray<uint8_t>& allowed) {
                const SequenceView view = limited(data, self, allowed);
                const ChainPhrases rules = phrase_rules(self, goes_on, types);
                const size_t n = begins.size();
                check_size(offsets.size(), view.n_sequences + 1, "offsets");
                check_offsets(span_of(offsets), static_cast<int64_t>(n), "offsets");
                check_size(ends.size(), static_cast<int64_t>(n), "ends");
                check_size(kinds.size(), static_cast<int64_t>(n), "kinds");
                bool fits = true;
                std::vector<ChainSpan> spans;
                for (int64_t k = 0; fits && k < view.n_sequences; ++k) {
                    for (int64_t i = offsets.data()[k]; fits && i < offsets.data()[k + 1]; ++i) {
                        spans.push_back({begins.data()[i], ends.data()[i], kinds.data()[i], 0.0});
                        fits = spans.back().begin >= 0 && spans.back().begin < spans.back().end &&
                               spans.back().end <= view.starts[k + 1] - view.starts[k];
                    }
                }
                if (!fits) throw nb::value_error("the spans do not fit the data");
                std::vector<double> log_z(static_cast<size_t>(view.n_sequences)), chances(n);
                interruptible([&] {
                    chain_spans(view, self.field.view(), self.prepared.view(), self.kernels, n_threads, rules,
                                offsets.data(), spans.data(), log_z.data(), poll_signals);
                });
                for (size_t k = 0; k < n; ++k) chances[k] = spans[k].probability;
                return nb::make_tuple(to_numpy(std::move(log_z)), to_numpy(std::move(chances)));
            },
            "data"_a, "n_threads"_a, "goes_on"_a, "types"_a, "offsets"_a, "begins"_a, "ends"_a, "kinds"_a,
            "allowed"_a.none() = nb::none(), "(log Z, probabilities of spans). Spans offsets[n] … are of sequence n.",
            nb::sig("def span_probabilities(self, data: Sequences, n_threads: int, goes_on: NDArray[numpy.uint8], "
                    "types: NDArray[numpy.int32], offsets: NDArray[numpy.int64], begins: NDArray[numpy.int64], "
                    "ends: NDArray[numpy.int64], kinds: NDArray[numpy.int32], "
                    "allowed: NDArray[numpy.uint8] | None = None) -> "
                    "tuple[NDArray[numpy.float64], NDArray[numpy.float64]]"))
        .def(
            "entropies",
            [](const Decoder& self, const Sequences& data, Threads n_threads, const OptionalArray<uint8_t>& allowed) {
                const SequenceView view = limited(data, self, allowed);
                std::vector<double> log_z(static_cast<size_t>(view.n_sequences)), entropy(log_z.size());
                interruptible([&] {
                    chain_entropies(view, self.field.view(), self.prepared.view(), self.kernels, n_threads,
                                    log_z.data(), entropy.data(), poll_signals);
                });
                return nb::make_tuple(to_numpy(std::move(log_z)), to_numpy(std::move(entropy)));
            },
            "data"_a, "n_threads"_a, "allowed"_a.none() = nb::none(), "(log Z, entropy) of each sequence",
            nb::sig("def entropies(self, data: Sequences, n_threads: int, allowed: NDArray[numpy.uint8] | None = None) "
                    "-> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]"))
        .def(
            "sample",
            [](const Decoder& self, const Sequences& data, Threads n_threads, int64_t count, uint64_t seed,
               const OptionalArray<uint8_t>& allowed) {
                const SequenceView view = limited(data, self, allowed);
                const size_t size = size_of({count, view.n_positions});
                std::vector<double> log_z(static_cast<size_t>(view.n_sequences));
                std::vector<int32_t> labels(size);
                interruptible([&] {
                    chain_samples(view, self.field.view(), self.prepared.view(), self.kernels, n_threads, count, seed,
                                  log_z.data(), labels.data(), poll_signals);
                });
                return nb::make_tuple(to_numpy(std::move(log_z)), to_numpy(std::move(labels)));
            },
            "data"_a, "n_threads"_a, "count"_a, "seed"_a, "allowed"_a.none() = nb::none(),
            "(log Z, labels of `count` samples of each sequence, one sequence after the other)",
            nb::sig("def sample(self, data: Sequences, n_threads: int, count: int, seed: int, "
                    "allowed: NDArray[numpy.uint8] | None = None) -> "
                    "tuple[NDArray[numpy.float64], NDArray[numpy.int32]]"));
}

}  // namespace crfkit
