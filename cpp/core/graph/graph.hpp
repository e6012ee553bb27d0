// The structure of one or many graphs, concatenated: nodes, edges, who is next to whom, colours.
#pragma once

#include <cstdint>
#include <vector>

namespace crfkit {

// A data set of graphs is one big graph: graph g has nodes node_offsets[g] … node_offsets[g+1] and its
// edges stand together. Edge e joins edges[2e] and edges[2e+1], two different nodes of one graph, which no other edge
// joins; its table is [state of the first][state of the second].
class Graph {
public:
    // Throws std::invalid_argument where the arrays do not describe such graphs: the engines index by them.
    Graph(int64_t n_nodes, std::vector<int32_t> edges, std::vector<int64_t> node_offsets,
          std::vector<int64_t> edge_offsets);

    const int64_t n_nodes, n_edges, n_graphs;
    const std::vector<int32_t> edges;         // [E][2]
    const std::vector<int64_t> node_offsets;  // [G+1]
    const std::vector<int64_t> edge_offsets;  // [G+1]

    // Slots of node i: starts[i] … starts[i+1], one per neighbour, in the order of the edges.
    std::vector<int64_t> starts;      // [N+1]
    std::vector<int32_t> neighbours;  // [2E]
    std::vector<int32_t> slot_edges;  // [2E] the edge of a slot

    int64_t degree(int64_t node) const { return starts[node + 1] - starts[node]; }
    // Whether the slot's own node is the first of the edge.
    bool is_first(int64_t node, int64_t slot) const { return edges[2 * int64_t{slot_edges[slot]}] == node; }

    // Nodes by colour: members[bounds[c]] … members[bounds[c+1]] have colour c, ascending, and no two of
    // them are neighbours. Greedy, in the order of the nodes; a grid gets two colours.
    struct Colours {
        std::vector<int64_t> bounds;   // [C+1]
        std::vector<int32_t> members;  // [N]
    };
    Colours colours() const;

    // out[g] = the sum of the terms of graph g's nodes and edges, in their order.
    void sum_by_graph(const double* node_terms, const double* edge_terms, double* out) const;

private:
    void check() const;
    void check_pairs() const;
};

}  // namespace crfkit
