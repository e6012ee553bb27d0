// The layout of clique tables.
#include <algorithm>

#include "../support/checks.hpp"
#include "junction.hpp"

namespace crfkit {

namespace {

// Neighbouring axes along which both tables go on as one: both contiguous, or the smaller one standing still.
void add_axis(std::vector<Axis>& axes, int64_t begin, Axis axis) {
    if (static_cast<int64_t>(axes.size()) > begin) {
        Axis& last = axes.back();
        if (last.stride == axis.extent * axis.stride) {
            last = {last.extent * axis.extent, axis.stride};
            return;
        }
    }
    axes.push_back(axis);
}

}  // namespace

CliqueTables::CliqueTables(const Cliques& order, int K) {
    const int64_t n = order.n_nodes;
    std::vector<int32_t> place(static_cast<size_t>(n));
    for (int64_t t = 0; t < n; ++t) place[order.order[t]] = static_cast<int32_t>(t);
    // Edges by the end that goes first.
    std::vector<std::vector<int32_t>> edges_of(static_cast<size_t>(n));
    for (size_t e = 0; e < order.edges.size() / 2; ++e)
        edges_of[std::min(place[order.edges[2 * e]], place[order.edges[2 * e + 1]])].push_back(static_cast<int32_t>(e));

    for (int64_t t = 0; t < n; ++t) {
        const int32_t* scope = order.members.data() + order.starts[t];  // S, then the node
        const int64_t width = order.size(t) - 1;
        Clique clique{};
        clique.node = order.order[t];
        clique.parent = width > 0 ? place[scope[width - 1]] : -1;
        clique.offset = size;
        clique.members.begin = static_cast<int64_t>(members.size());
        members.insert(members.end(), scope, scope + width);
        clique.members.end = static_cast<int64_t>(members.size());
        clique.rows = 1;
        for (int64_t m = 0; m < width; ++m) clique.rows = checked_product({clique.rows, K}, "entries of a table");
        size += checked_product({clique.rows, K}, "entries of a table");
        checked_product({size}, "entries of tables");
        max_rows = std::max(max_rows, clique.rows);

        // The parent's nodes stand in the same order; strides are those of a table over S.
        clique.up.begin = static_cast<int64_t>(axes.size());
        if (clique.parent >= 0) {
            const int32_t* above = order.members.data() + order.starts[clique.parent];
            int64_t stride = clique.rows;
            for (int64_t m = 0, s = 0; m < order.size(clique.parent); ++m) {
                const bool shared = s < width && scope[s] == above[m];
                if (shared) {
                    stride /= K;
                    ++s;
                }
                add_axis(axes, clique.up.begin, {K, shared ? stride : 0});
            }
        }
        clique.up.end = static_cast<int64_t>(axes.size());
        require(clique.up.end - clique.up.begin <= kMostAxes, "a table of too many axes");

        clique.edges.begin = static_cast<int64_t>(edges.size());
        for (const int32_t e : edges_of[t]) {
            const bool first = order.edges[2 * e] == clique.node;
            const int32_t other = order.edges[2 * e + (first ? 1 : 0)];
            Edge edge{e, {static_cast<int64_t>(axes.size()), 0}};
            for (int64_t m = 0; m < width; ++m)
                add_axis(axes, edge.axes.begin, {K, scope[m] == other ? (first ? 1 : K) : 0});
            add_axis(axes, edge.axes.begin, {K, first ? K : 1});
            edge.axes.end = static_cast<int64_t>(axes.size());
            require(edge.axes.end - edge.axes.begin <= kMostAxes, "a table of too many axes");
            edges.push_back(edge);
        }
        clique.edges.end = static_cast<int64_t>(edges.size());
        cliques.push_back(clique);
    }
}

JunctionPlan::JunctionPlan(const Elimination& elimination, int K) : elimination(elimination), K(K), cost{0.0} {
    for (const Cliques& cliques : elimination.shapes) {
        shapes.emplace_back(cliques, K);
        max_size = std::max(max_size, shapes.back().size);
    }
    for (const int32_t shape : elimination.shape_of)
        cost.push_back(cost.back() + static_cast<double>(shapes[shape].size) + 1.0);
}

}  // namespace crfkit
