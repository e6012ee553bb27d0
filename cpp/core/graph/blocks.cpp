#include "blocks.hpp"

#include <algorithm>

#include "../support/checks.hpp"
#include "../support/parallel.hpp"

namespace crfkit {

Blocks::Blocks(const Graph& graph) : graph(graph) {
    Graph::Colours colours = graph.colours();
    places.resize(static_cast<size_t>(graph.n_nodes));
    colour_bounds.push_back(0);
    first_rows.push_back(0);
    for (size_t c = 0; c + 1 < colours.bounds.size(); ++c) {
        const auto begin = colours.members.begin() + colours.bounds[c];
        const auto end = colours.members.begin() + colours.bounds[c + 1];
        std::stable_sort(begin, end, [&](int32_t a, int32_t b) { return graph.degree(a) < graph.degree(b); });
        for (auto member = begin; member != end;) {
            const int64_t degree = graph.degree(*member);
            for (int lane = 0; lane < kBlock; ++lane) {
                const bool real = member != end && graph.degree(*member) == degree;
                if (real) places[*member] = static_cast<int32_t>(nodes.size());
                nodes.push_back(real ? *member++ : -1);
            }
            degrees.push_back(static_cast<int32_t>(degree));
            max_degree = std::max(max_degree, static_cast<int>(degree));
            first_rows.push_back(first_rows.back() + degree);
        }
        colour_bounds.push_back(n_blocks());
    }
    // Slots of a node are in the order of its edges, so each edge meets its two slots when they are next in line.
    check_number(static_cast<int64_t>(nodes.size()), 0, kMostIds, "the number of nodes in blocks");
    check_number(n_rows() * kBlock, 0, kMostIds, "the number of messages");
    targets.resize(static_cast<size_t>(n_rows() * kBlock));
    edge_slots.resize(static_cast<size_t>(graph.n_edges));
    std::vector<int32_t> used(static_cast<size_t>(graph.n_nodes), 0);
    for (int64_t s = 0; s < static_cast<int64_t>(targets.size()); ++s) targets[s] = static_cast<int32_t>(s);
    for (int64_t e = 0; e < graph.n_edges; ++e) {
        const int32_t i = graph.edges[2 * e], j = graph.edges[2 * e + 1];
        const int64_t a = slot(i, used[i]++), b = slot(j, used[j]++);
        edge_slots[e] = targets[b] = static_cast<int32_t>(a);
        targets[a] = static_cast<int32_t>(b);
    }
}

std::vector<std::vector<int64_t>> Blocks::shares(const std::vector<int64_t>& bounds, int n_threads) const {
    std::vector<std::vector<int64_t>> result;
    for (size_t phase = 0; phase + 1 < bounds.size(); ++phase) {
        const int64_t begin = bounds[phase];
        result.push_back(split_by_cost(bounds[phase + 1] - begin, n_threads, [&](int64_t b) {
            return static_cast<double>(first_rows[begin + b] - first_rows[begin] + b);
        }));
        for (int64_t& bound : result.back()) bound += begin;
    }
    return result;
}

const std::vector<int32_t>& Blocks::neighbour_places() const {
    std::call_once(made_, [&] {
        std::vector<int32_t> owners(targets.size());  // the place of each slot's node
        for (int64_t b = 0; b < n_blocks(); ++b)
            for (int64_t s = first_rows[b] * kBlock; s < first_rows[b + 1] * kBlock; ++s)
                owners[s] = static_cast<int32_t>(b * kBlock + s % kBlock);
        neighbour_places_.resize(targets.size());
        for (size_t s = 0; s < targets.size(); ++s) neighbour_places_[s] = owners[targets[s]];
    });
    return neighbour_places_;
}

}  // namespace crfkit
