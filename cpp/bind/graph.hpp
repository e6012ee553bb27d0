// The graph as Python holds it, and what the engines' bindings check of its potentials.
#pragma once

#include "../core/graph/graph.hpp"
#include "common.hpp"

namespace crfkit {

// Throws unless unary is [N][K]; returns K.
inline int check_unary(const Graph& graph, const Matrix& unary) {
    require(unary.shape(0) == static_cast<size_t>(graph.n_nodes), "unary: not a row per node");
    check_states(static_cast<int64_t>(unary.shape(1)));
    return static_cast<int>(unary.shape(1));
}

// Throws unless unary is [N][K] and tables are [E][K][K]; returns K.
inline int check_potentials(const Graph& graph, const Matrix& unary, const Tables& tables) {
    const auto K = static_cast<size_t>(check_unary(graph, unary));
    if (tables.shape(0) != static_cast<size_t>(graph.n_edges) || tables.shape(1) != K || tables.shape(2) != K)
        throw nb::value_error("tables: not a table [K][K] per edge");
    return static_cast<int>(K);
}

}  // namespace crfkit
