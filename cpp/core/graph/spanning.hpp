// Minimum spanning forests: Kruskal's algorithm over a few batches of edges, the cheapest first.
#pragma once

#include <cstdint>
#include <vector>

#include "graph.hpp"

namespace crfkit {

// The edges of the spanning forest of least total cost, by ascending cost; of equal costs, the first edge comes first.
// costs [E] must be finite.
std::vector<int64_t> spanning_forest(const Graph& graph, const double* costs);

}  // namespace crfkit
