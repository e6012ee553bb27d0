#include "graph.hpp"

#include <algorithm>
#include <cmath>

#include "../core/graph/spanning.hpp"

namespace crfkit {

void bind_graph(nb::module_& m) {
    nb::class_<Graph>(m, "Graph", "The structure of one or many graphs, as checked copies of arrays.")
        .def(
            "__init__",
            [](Graph* self, int64_t n_nodes, const Pairs& edges, const Array<int64_t>& node_offsets,
               const Array<int64_t>& edge_offsets) {
                require(edges.shape(1) == 2 || edges.size() == 0, "edges: not pairs");
                const auto copy = [](const auto& array) {
                    return std::vector(array.data(), array.data() + array.size());
                };
                new (self) Graph(n_nodes, copy(edges), copy(node_offsets), copy(edge_offsets));
            },
            "n_nodes"_a, nb::arg("edges").noconvert(), nb::arg("node_offsets").noconvert(),
            nb::arg("edge_offsets").noconvert())
        .def_prop_ro("n_nodes", [](const Graph& g) { return g.n_nodes; })
        .def_prop_ro("n_edges", [](const Graph& g) { return g.n_edges; })
        .def(
            "colours",
            [](const Graph& g) {
                Graph::Colours colours = g.colours();
                return std::make_tuple(to_numpy(std::move(colours.bounds)), to_numpy(std::move(colours.members)));
            },
            "(bounds, nodes by colour): no two nodes of a colour are neighbours.")
        .def(
            "spanning_forest",
            [](const Graph& g, const Array<double>& costs) {
                check_size(costs.size(), g.n_edges, "costs");
                require(
                    std::all_of(costs.data(), costs.data() + costs.size(), [](double c) { return std::isfinite(c); }),
                    "costs: not all finite");
                std::vector<int64_t> forest = interruptible([&] { return spanning_forest(g, costs.data()); });
                return to_numpy(std::move(forest));
            },
            nb::arg("costs").noconvert(), "The edges of the spanning forest of least total cost.");
}

}  // namespace crfkit
