#include "../core/graph/icm.hpp"

#include <algorithm>

#include "../core/support/parallel.hpp"
#include "graph.hpp"

namespace crfkit {

void bind_graph_icm(nb::module_& m) {
    m.def(
        "iterate_modes",
        [](const Graph& graph, const Matrix& unary, const Tables& tables, const OptionalArray<double>& scales,
           const Array<int32_t>& start, Threads n_threads) {
            const auto K = static_cast<size_t>(check_unary(graph, unary));
            const auto n = static_cast<size_t>(graph.n_nodes), n_edges = static_cast<size_t>(graph.n_edges);
            if (tables.shape(0) != (scales ? 1 : n_edges) || tables.shape(1) != K || tables.shape(2) != K)
                throw nb::value_error("tables: not a table [K][K] per edge, nor one with a scale per edge");
            if (scales && scales->size() != n_edges) throw nb::value_error("scales: not one per edge");
            check_size(start.size(), graph.n_nodes, "start");
            check_ids(span_of(start), static_cast<int64_t>(K), "start");
            nb::capsule owner;
            int32_t* labels = allocate<int32_t>(n, owner);
            std::copy_n(start.data(), n, labels);
            const PairTables pairs{tables.data(), pointer(scales), static_cast<int>(K)};
            const int64_t sweeps = interruptible(
                [&] { return iterate_modes(graph, unary.data(), pairs, labels, n_threads, poll_signals); });
            return std::make_tuple(Numpy1<int32_t>(labels, {n}, owner), sweeps);
        },
        "graph"_a, nb::arg("unary").noconvert(), nb::arg("tables").noconvert(), nb::arg("scales").noconvert().none(),
        nb::arg("start").noconvert(), "n_threads"_a,
        "(labels, sweeps): coordinate ascent from `start` until no change of one node raises the score.");
}

}  // namespace crfkit
