#include "graph.hpp"

namespace crfkit {

void bind_graph(nb::module_& m) {
    nb::class_<Graph>(m, "Graph", "The structure of one or many graphs; reads the arrays it is given in place.")
        .def(
            "__init__",
            [](Graph* self, int64_t n_nodes, const Pairs& edges, const Array<int64_t>& node_offsets,
               const Array<int64_t>& edge_offsets) {
                if (edges.shape(1) != 2) throw nb::value_error("edges are not pairs");
                if (node_offsets.size() != edge_offsets.size() || node_offsets.size() < 1)
                    throw nb::value_error("offsets of different lengths");
                const int64_t n_edges = static_cast<int64_t>(edges.shape(0));
                for (int64_t k = 0; k < 2 * n_edges; ++k)
                    if (edges.data()[k] < 0 || edges.data()[k] >= n_nodes) throw nb::value_error("a dangling edge");
                new (self) Graph(n_nodes, n_edges, edges.data(), static_cast<int64_t>(node_offsets.size()) - 1,
                                 node_offsets.data(), edge_offsets.data());
            },
            "n_nodes"_a, nb::arg("edges").noconvert(), nb::arg("node_offsets").noconvert(),
            nb::arg("edge_offsets").noconvert(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>())
        .def_prop_ro("n_nodes", [](const Graph& g) { return g.n_nodes; })
        .def_prop_ro("n_edges", [](const Graph& g) { return g.n_edges; })
        .def(
            "colours",
            [](const Graph& g) {
                Graph::Colours colours = g.colours();
                return std::make_tuple(to_numpy(std::move(colours.bounds)), to_numpy(std::move(colours.members)));
            },
            "(bounds, nodes by colour): no two nodes of a colour are neighbours.");
}

}  // namespace crfkit
