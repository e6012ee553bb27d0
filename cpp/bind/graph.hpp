// The graph as Python holds it, and what the engines' bindings check of its potentials.
#pragma once

#include "../core/graph/graph.hpp"
#include "common.hpp"

namespace crfkit {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Tables = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Pairs = nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Throws unless unary is [N][K] and tables are [E][K][K]; returns K.
inline int check_potentials(const Graph& graph, const Matrix& unary, const Tables& tables) {
    const size_t K = unary.shape(1);
    if (unary.shape(0) != static_cast<size_t>(graph.n_nodes)) throw nb::value_error("unary: not a row per node");
    if (tables.shape(0) != static_cast<size_t>(graph.n_edges) || tables.shape(1) != K || tables.shape(2) != K)
        throw nb::value_error("tables: not a table [K][K] per edge");
    return static_cast<int>(K);
}

}  // namespace crfkit
