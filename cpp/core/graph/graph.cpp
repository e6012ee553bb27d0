#include "graph.hpp"

#include <algorithm>
#include <utility>

#include "../support/checks.hpp"

namespace crfkit {

Graph::Graph(int64_t nodes, std::vector<int32_t> pairs, std::vector<int64_t> of_nodes, std::vector<int64_t> of_edges)
    : n_nodes(nodes),
      n_edges(static_cast<int64_t>(pairs.size() / 2)),
      n_graphs(static_cast<int64_t>(of_nodes.size()) - 1),
      edges(std::move(pairs)),
      node_offsets(std::move(of_nodes)),
      edge_offsets(std::move(of_edges)) {
    check();
    starts.resize(static_cast<size_t>(n_nodes) + 1);
    neighbours.resize(edges.size());
    slot_edges.resize(edges.size());
    for (int64_t k = 0; k < 2 * n_edges; ++k) ++starts[edges[k] + 1];
    for (int64_t i = 0; i < n_nodes; ++i) starts[i + 1] += starts[i];
    std::vector<int64_t> next(starts.begin(), starts.end() - 1);
    for (int64_t e = 0; e < n_edges; ++e) {
        const int32_t i = edges[2 * e], j = edges[2 * e + 1];
        neighbours[next[i]] = j;
        neighbours[next[j]] = i;
        slot_edges[next[i]++] = slot_edges[next[j]++] = static_cast<int32_t>(e);
    }
    check_pairs();
}

void Graph::check() const {
    check_number(n_nodes, 0, kMostIds, "the number of nodes");
    check_number(n_edges, 0, kMostIds, "the number of edges");
    require(node_offsets.size() == edge_offsets.size(), "offsets of different lengths");
    check_offsets(node_offsets, n_nodes, "node offsets");
    check_offsets(edge_offsets, n_edges, "edge offsets");
    for (int64_t g = 0; g < n_graphs; ++g) {
        const int64_t begin = node_offsets[g], end = node_offsets[g + 1];
        bool outside = false, loops = false;
        for (int64_t e = edge_offsets[g]; e < edge_offsets[g + 1]; ++e) {
            const int32_t i = edges[2 * e], j = edges[2 * e + 1];
            outside |= i < begin || i >= end || j < begin || j >= end;
            loops |= i == j;
        }
        require(!outside, "a dangling edge, or one that leaves its graph");
        require(!loops, "an edge from a node to itself");
    }
}

void Graph::check_pairs() const {
    std::vector<int32_t> seen(static_cast<size_t>(n_nodes), -1);  // the last node that had this one as a neighbour
    for (int32_t i = 0; i < n_nodes; ++i)
        for (int64_t s = starts[i]; s < starts[i + 1]; ++s) {
            require(seen[neighbours[s]] != i, "two edges between the same nodes");
            seen[neighbours[s]] = i;
        }
}

Graph::Colours Graph::colours() const {
    std::vector<int32_t> colour(static_cast<size_t>(n_nodes), -1);
    std::vector<int64_t> used;  // used[c] = i + 1 when a neighbour of node i has colour c
    std::vector<int64_t> counts;
    for (int64_t i = 0; i < n_nodes; ++i) {
        for (int64_t s = starts[i]; s < starts[i + 1]; ++s)
            if (const int32_t c = colour[neighbours[s]]; c >= 0) used[c] = i + 1;
        size_t c = 0;
        while (c < used.size() && used[c] == i + 1) ++c;
        if (c == used.size()) {
            used.push_back(0);
            counts.push_back(0);
        }
        colour[i] = static_cast<int32_t>(c);
        ++counts[c];
    }
    Colours result;
    result.bounds.assign(1, 0);
    for (const int64_t count : counts) result.bounds.push_back(result.bounds.back() + count);
    result.members.resize(static_cast<size_t>(n_nodes));
    std::vector<int64_t> next(result.bounds.begin(), result.bounds.end() - 1);
    for (int64_t i = 0; i < n_nodes; ++i) result.members[next[colour[i]]++] = static_cast<int32_t>(i);
    return result;
}

void Graph::sum_by_graph(const double* node_terms, const double* edge_terms, double* out) const {
    for (int64_t g = 0; g < n_graphs; ++g) {
        double sum = 0;
        for (int64_t i = node_offsets[g]; i < node_offsets[g + 1]; ++i) sum += node_terms[i];
        for (int64_t e = edge_offsets[g]; e < edge_offsets[g + 1]; ++e) sum += edge_terms[e];
        out[g] = sum;
    }
}

}  // namespace crfkit
