// Chains whose label scores come as a padded array: what layers of networks call.
#include "../core/chain/dense.hpp"
#include "chain.hpp"

namespace crfkit {

namespace {

template <class Real>
using Scores = Aligned<const Real, 3>;
template <class Real>
using Transitions = Aligned<const Real, 2>;

// [batch][time][L], or [time][batch][L].
template <class Real, class Jump>
ChainDenseOf<Real> dense_data(const Scores<Real>& u, bool time_first, const Array<Real>& start,
                              const Transitions<Jump>& transitions, const Array<Real>& end,
                              const Array<int64_t>& lengths) {
    const auto rows = static_cast<int64_t>(u.shape(0)), columns = static_cast<int64_t>(u.shape(1));
    const auto l = static_cast<int64_t>(u.shape(2));
    check_labels(l, 1);
    require(l > 0, "there are no labels");
    check_size(start.size(), l, "start");
    check_size(end.size(), l, "end");
    check_size(transitions.shape(0), l, "transitions");
    check_size(transitions.shape(1), l, "transitions");
    const int64_t batch = time_first ? columns : rows, steps = time_first ? rows : columns;
    check_size(lengths.size(), batch, "lengths");
    return {batch,
            steps,
            l,
            u.data(),
            time_first ? l : steps * l,
            time_first ? batch * l : l,
            start.data(),
            end.data(),
            lengths.data(),
            nullptr};
}

template <class Real>
void bind_beliefs(nb::module_& m) {
    m.def(
        "dense_beliefs",
        [](const Scores<Real>& u, bool time_first, const Array<Real>& start, const Transitions<Real>& transitions,
           const Array<Real>& end, const Array<int64_t>& lengths, Threads n_threads, OutputArray<double> log_z,
           OutputArray<Real> node, OutputArray<Real> edge, const std::optional<Aligned<const int64_t, 2>>& labels,
           const std::string& kernels) {
            ChainDenseOf<Real> data = dense_data<Real>(u, time_first, start, transitions, end, lengths);
            if (labels) {
                check_size(labels->shape(0), data.n_sequences, "labels");
                check_size(labels->shape(1), data.n_steps, "labels");
                data.labels = labels->data();
            }
            check_size(log_z.size(), data.n_sequences, "log_z");
            check_size(node.size(), checked_product({data.n_sequences, data.n_steps, data.n_labels}, "entries"),
                       "node");
            check_size(edge.size(), checked_product({data.n_sequences, data.n_labels, data.n_labels}, "entries"),
                       "edge");
            const ChainKernels& found = kernels_named(kernels);
            interruptible([&] {
                dense_beliefs(data, transitions.data(), found, n_threads, log_z.data(), node.data(), edge.data(),
                              poll_signals);
            });
        },
        "u"_a.noconvert(), "time_first"_a, "start"_a, "transitions"_a, "end"_a, "lengths"_a, "n_threads"_a,
        "log_z"_a.noconvert(), "node"_a.noconvert(), "edge"_a.noconvert(), "labels"_a.none() = nb::none(),
        "kernels"_a = "auto",
        "Fills log Z [batch], node marginals [batch, time, labels] and the sum over time of edge marginals [batch, "
        "labels, labels] of label scores [batch, time, labels], or [time, batch, labels]; -inf forbids. With labels "
        "[batch, time], takes their scores and counts from them.");
}

template <class Real>
void bind_viterbi(nb::module_& m) {
    m.def(
        "dense_viterbi",
        [](const Scores<Real>& u, bool time_first, const Array<Real>& start, const Transitions<double>& transitions,
           const Array<Real>& end, const Array<int64_t>& lengths, Threads n_threads, OutputArray<int32_t> labels,
           OutputArray<double> scores, const std::string& kernels) {
            const auto data = dense_data<Real>(u, time_first, start, transitions, end, lengths);
            check_size(labels.size(), checked_product({data.n_sequences, data.n_steps}, "entries"), "labels");
            check_size(scores.size(), data.n_sequences, "scores");
            const ChainKernels& found = kernels_named(kernels);
            interruptible([&] {
                dense_viterbi(data, transitions.data(), found, n_threads, labels.data(), scores.data(), poll_signals);
            });
        },
        "u"_a.noconvert(), "time_first"_a, "start"_a, "transitions"_a, "end"_a, "lengths"_a, "n_threads"_a,
        "labels"_a.noconvert(), "scores"_a.noconvert(), "kernels"_a = "auto",
        "Fills the best labels [batch, time], 0 in the padding, and their scores [batch].");
}

}  // namespace

void bind_chain_dense(nb::module_& m) {
    bind_beliefs<float>(m);
    bind_beliefs<double>(m);
    bind_viterbi<float>(m);
    bind_viterbi<double>(m);
    m.def(
        "dense_covariances",
        [](const Scores<double>& u, bool time_first, const Array<double>& start, const Transitions<double>& transitions,
           const Array<double>& end, const Array<int64_t>& lengths, Threads n_threads, const Scores<double>& d_u,
           const Scores<double>& d_transitions, Output node, Output edge, const std::string& kernels) {
            const auto data = dense_data<double>(u, time_first, start, transitions, end, lengths);
            const int64_t nodes = checked_product({data.n_sequences, data.n_steps, data.n_labels}, "entries");
            const int64_t edges = checked_product({data.n_sequences, data.n_labels, data.n_labels}, "entries");
            check_size(d_u.size(), nodes, "d_u");
            check_size(d_transitions.size(), edges, "d_transitions");
            check_size(node.size(), nodes, "node");
            check_size(edge.size(), edges, "edge");
            const ChainKernels& found = kernels_named(kernels);
            interruptible([&] {
                dense_covariances(data, transitions.data(), {d_u.data(), d_transitions.data()}, found, n_threads,
                                  node.data(), edge.data(), poll_signals);
            });
        },
        "u"_a, "time_first"_a, "start"_a, "transitions"_a, "end"_a, "lengths"_a, "n_threads"_a, "d_u"_a,
        "d_transitions"_a, "node"_a, "edge"_a, "kernels"_a = "auto",
        "Fills the derivatives of node [batch, time, labels] and edge marginals [batch, labels, labels] along d_u "
        "[batch, time, labels] and d_transitions [batch, labels, labels].");
}

}  // namespace crfkit
