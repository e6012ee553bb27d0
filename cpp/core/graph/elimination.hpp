// Elimination orders by min-fill or by a sweep: which cliques exact inference on a graph needs.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "graph.hpp"

namespace crfkit {

// The order of one graph. Eliminating a node joins its remaining neighbours; with them it is a clique.
// Nodes are counted from the first of the graph.
struct Cliques {
    std::vector<int32_t> edges;    // [E][2] the graph they are of
    std::vector<int32_t> order;    // [n]
    std::vector<int64_t> starts;   // [n+1]
    std::vector<int32_t> members;  // of clique t: starts[t] … starts[t+1], latest eliminated first, order[t] last
    int64_t width = -1;            // of the largest clique, less one
    int64_t n_nodes = 0;

    int64_t size(int64_t t) const { return starts[t + 1] - starts[t]; }
};

// The orders of all graphs, those of the fewest table entries for K states; graphs of the same local structure share
// one.
// Where a clique has more than `limit` nodes the search for orders goes on only for a little while, since it is
// then of use only to say how large the cliques are; after `budget` steps it stops in any case.
struct Elimination {
    Elimination(const Graph& graph, int64_t K, int64_t limit, int64_t budget, const std::function<bool()>& poll);

    const Graph& graph;
    std::vector<Cliques> shapes;
    std::vector<int32_t> shape_of;  // [G]
    int64_t stopped = -1;           // the graph at which the search stopped; there are no orders then
    int64_t widest = -1;            // the graph of the largest clique
    int64_t width = -1;             // of that; where the search has stopped, it is at least this

    // (graph, entries): the graph that needs most for the tables of K states of all its cliques together.
    std::pair<int64_t, double> most_entries(int64_t K) const;
};

}  // namespace crfkit
