#include "../core/graph/pseudo_table.hpp"

#include <memory>

#include "graph.hpp"

namespace crfkit {

namespace {

using Flags = Aligned<const bool, 2>;

}  // namespace

void bind_pseudo_table(nb::module_& m) {
    nb::class_<PseudoTable>(m, "PseudoTable", "The pseudo-likelihood of samples of one graph, untied.")
        .def(
            "__init__",
            [](PseudoTable* self, const Array<int32_t>& states, const Pairs& labels, const Array<double>& weights,
               const Matrix& bank, const Pairs& node_columns, const Matrix& node_basis, const Flags& node_active,
               const Pairs& edges, const Pairs& edge_columns, const Tables& edge_basis, const Flags& edge_active) {
                const size_t N = labels.shape(0), n = labels.shape(1), E = edges.shape(0), K = node_basis.shape(1);
                require(states.size() == n && weights.size() == N && bank.shape(1) == N, "samples that do not agree");
                require(node_columns.shape(0) == n && node_active.shape(0) == n, "not a row for each node");
                require(edges.shape(1) == 2 && edge_columns.shape(0) == E && edge_active.shape(0) == E,
                        "not a row for each edge");
                require(edge_basis.shape(1) == K && edge_basis.shape(2) == K, "basis: not tables [K][K]");
                const bool none = edge_basis.shape(0) == 0;  // stands for all unit tables
                const size_t B = none ? K * K : edge_basis.shape(0);
                require(node_active.shape(1) == node_basis.shape(0) && edge_active.shape(1) == B,
                        "not a flag for each table");
                check_states(static_cast<int64_t>(K));
                check_number(static_cast<int64_t>(std::max(n, E)), 0, kMostIds, "the number of nodes or edges");
                checked_product({static_cast<int64_t>(N) + 7, static_cast<int64_t>(n), static_cast<int64_t>(K)},
                                "states of samples");
                check_ids(span_of(states), static_cast<int64_t>(K) + 1, "states");
                for (size_t s = 0; s < N; ++s)
                    for (size_t i = 0; i < n; ++i)
                        require(labels.data()[s * n + i] >= 0 && labels.data()[s * n + i] < states.data()[i],
                                "a label is not a state");
                check_ids(span_of(edges), static_cast<int64_t>(n), "node");
                check_ids(span_of(node_columns), static_cast<int64_t>(bank.shape(0)), "column");
                check_ids(span_of(edge_columns), static_cast<int64_t>(bank.shape(0)), "column");
                const auto signed_size = [](size_t k) { return static_cast<int64_t>(k); };
                const PseudoTable::Part nodes{nullptr,
                                              node_columns.data(),
                                              node_basis.data(),
                                              node_active.data(),
                                              signed_size(n),
                                              signed_size(node_columns.shape(1)),
                                              signed_size(node_basis.shape(0))};
                const PseudoTable::Part pairs{
                    edges.data(),       edge_columns.data(), none ? nullptr : edge_basis.data(),
                    edge_active.data(), signed_size(E),      signed_size(edge_columns.shape(1)),
                    signed_size(B)};
                new (self) PseudoTable(signed_size(N), signed_size(n), signed_size(K), states.data(), labels.data(),
                                       weights.data(), bank.data(), signed_size(bank.shape(0)), nodes, pairs);
            },
            "states"_a, "labels"_a, "weights"_a, "bank"_a, "node_columns"_a, "node_basis"_a, "node_active"_a, "edges"_a,
            "edge_columns"_a, "edge_basis"_a, "edge_active"_a)
        .def_prop_ro("size", &PseudoTable::size)
        .def(
            "value",
            [](const PseudoTable& self, const Array<double>& w, Threads n_threads, const std::string& kernels) {
                require(static_cast<int64_t>(w.size()) == self.size(), "w: not a number for each weight");
                const PseudoKernels* chosen = find_pseudo_kernels(kernels.c_str());
                require(chosen != nullptr, "kernels that there are not, or that this machine cannot run");
                nb::capsule owner;
                double* gradient = allocate<double>(w.size(), owner);
                const double value =
                    interruptible([&] { return self.value(w.data(), gradient, *chosen, n_threads, poll_signals); });
                return std::make_tuple(value, Numpy1<double>(gradient, {w.size()}, owner));
            },
            "w"_a, "n_threads"_a, "kernels"_a = "auto", "(pseudo-likelihood, its gradient)");
}

}  // namespace crfkit
