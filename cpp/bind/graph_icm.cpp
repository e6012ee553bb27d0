#include "../core/graph/icm.hpp"

#include <algorithm>

#include "../core/support/parallel.hpp"
#include "graph.hpp"

namespace crfkit {

void bind_graph_icm(nb::module_& m) {
    m.def(
        "iterate_modes",
        [](const Graph& graph, const Matrix& unary, const Tables& tables, const OptionalArray<double>& scales,
           const Array<int32_t>& start, int n_threads) {
            const size_t K = unary.shape(1);
            const auto n = static_cast<size_t>(graph.n_nodes), n_edges = static_cast<size_t>(graph.n_edges);
            if (unary.shape(0) != n) throw nb::value_error("unary: not a row per node");
            if (tables.shape(0) != (scales ? 1 : n_edges) || tables.shape(1) != K || tables.shape(2) != K)
                throw nb::value_error("tables: not a table [K][K] per edge, nor one with a scale per edge");
            if (scales && scales->size() != n_edges) throw nb::value_error("scales: not one per edge");
            if (start.size() != n) throw nb::value_error("start: not a label per node");
            for (size_t i = 0; i < n; ++i)
                if (start.data()[i] < 0 || static_cast<size_t>(start.data()[i]) >= K)
                    throw nb::value_error("start: a label that is no state");
            nb::capsule owner;
            int32_t* labels = allocate<int32_t>(n, owner);
            std::copy_n(start.data(), n, labels);
            const PairTables pairs{tables.data(), pointer(scales), static_cast<int>(K)};
            const int64_t sweeps = interruptible([&] {
                return iterate_modes(graph, unary.data(), pairs, labels, std::max(1, n_threads), poll_signals);
            });
            return std::make_tuple(Numpy1<int32_t>(labels, {n}, owner), sweeps);
        },
        "graph"_a, nb::arg("unary").noconvert(), nb::arg("tables").noconvert(), nb::arg("scales").noconvert().none(),
        nb::arg("start").noconvert(), "n_threads"_a,
        "(labels, sweeps): coordinate ascent from `start` until no change of one node raises the score.");
}

}  // namespace crfkit
