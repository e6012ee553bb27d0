#include "elimination.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <unordered_map>

#include "../support/hash.hpp"
#include "../support/parallel.hpp"
#include "sweep_orders.hpp"

namespace crfkit {

namespace {

constexpr int64_t kBeyond = 20'000'000;  // steps after the limit is passed: some tenths of a second

struct Search {
    int64_t limit, budget;
    Interrupt& interrupt;
    bool limit_found = false;  // whether there is an order within the limit
    int64_t work = 0, work_beyond = 0;

    // Whether to give up, after so many more steps with cliques of so many nodes.
    bool spend(int64_t steps, int64_t clique) {
        interrupt.check(0);
        work += steps;
        if (clique > limit) work_beyond += steps;
        return work > budget || work_beyond > (limit_found ? 0 : kBeyond);
    }
};

// What is left of a graph while nodes are eliminated. fill[v]: how many pairs of v's neighbours are not joined.
class Remains {
public:
    Remains(int64_t n, const std::vector<int32_t>& edges)
        : fill(static_cast<size_t>(n)),
          adjacent_(static_cast<size_t>(n)),
          degree_(static_cast<size_t>(n)),
          alive_(static_cast<size_t>(n), 1),
          mark_(static_cast<size_t>(n), -1) {
        for (size_t k = 0; k < edges.size(); k += 2) {
            adjacent_[edges[k]].push_back(edges[k + 1]);
            adjacent_[edges[k + 1]].push_back(edges[k]);
        }
        for (int64_t i = 0; i < n; ++i) degree_[i] = static_cast<int64_t>(adjacent_[i].size());
    }

    std::vector<int64_t> fill;     // [n]
    std::vector<int32_t> changed;  // nodes whose fill has changed, with repetitions
    int64_t steps = 0;

    // Removes nodes of lowest degree one by one: the largest degree met is at most the width of any order, and with
    // edges directed towards who is removed later nobody has more neighbours than that.
    int64_t degeneracy(std::vector<int64_t>& rank) const {
        const auto n = static_cast<int64_t>(degree_.size());
        std::vector<int64_t> degree(degree_);
        std::vector<std::vector<int32_t>> buckets(1);
        const auto put = [&](int64_t i) {
            if (static_cast<int64_t>(buckets.size()) <= degree[i]) buckets.resize(degree[i] + 1);
            buckets[degree[i]].push_back(static_cast<int32_t>(i));
        };
        for (int64_t i = n; i-- > 0;) put(i);
        rank.assign(static_cast<size_t>(n), -1);
        int64_t largest = 0, lowest = 0;
        for (int64_t next = 0; next < n;) {
            while (buckets[lowest].empty()) ++lowest;
            const int32_t i = buckets[lowest].back();
            buckets[lowest].pop_back();
            if (rank[i] >= 0 || degree[i] != lowest) continue;  // moved since
            rank[i] = next++;
            largest = std::max(largest, lowest);
            for (const int32_t j : adjacent_[i])
                if (rank[j] < 0) {
                    --degree[j];
                    put(j);
                }
            if (lowest > 0) --lowest;
        }
        return largest;
    }

    // fill[v] = pairs of neighbours - triangles at v; every triangle is met once, from its first node by rank.
    void count_fill(const std::vector<int64_t>& rank) {
        const auto n = static_cast<int64_t>(fill.size());
        for (int64_t i = 0; i < n; ++i) fill[i] = degree_[i] * (degree_[i] - 1) / 2;
        std::vector<std::vector<int32_t>> later(static_cast<size_t>(n));
        for (int64_t i = 0; i < n; ++i)
            for (const int32_t j : adjacent_[i])
                if (rank[j] > rank[i]) later[i].push_back(j);
        for (int64_t i = 0; i < n; ++i) {
            for (const int32_t j : later[i]) mark_[j] = stamp_;
            for (const int32_t j : later[i])
                for (const int32_t k : later[j])
                    if (mark_[k] == stamp_) --fill[i], --fill[j], --fill[k];
            ++stamp_;
        }
    }

    // Joins v's neighbours, which it returns, and takes v out.
    std::vector<int32_t> eliminate(int32_t v) {
        compact(v);
        std::vector<int32_t> around = adjacent_[v];
        changed.assign(around.begin(), around.end());
        if (fill[v] > 0) {
            // Hubs last: of them, the many neighbours are then seldom looked at.
            std::sort(around.begin(), around.end(), [&](int32_t a, int32_t b) { return degree_[a] < degree_[b]; });
            for (size_t i = 0; i + 1 < around.size(); ++i) {
                const int32_t a = around[i];
                compact(a);
                for (const int32_t c : adjacent_[a]) mark_[c] = stamp_;
                steps += degree_[a] + static_cast<int64_t>(around.size());
                for (size_t j = i + 1; j < around.size(); ++j)
                    if (mark_[around[j]] != stamp_) join(a, around[j]);
                ++stamp_;
            }
        }
        alive_[v] = 0;
        // The neighbours of u that are not v's are one missing pair each, with v; v's others now all are u's.
        for (const int32_t u : around) fill[u] -= degree_[u]-- - static_cast<int64_t>(around.size());
        std::vector<int32_t>().swap(adjacent_[v]);
        steps += static_cast<int64_t>(around.size());
        return around;
    }

    bool alive(int32_t v) const { return alive_[v] != 0; }

private:
    // Adds the edge (a, b); the neighbours of a are marked.
    void join(int32_t a, int32_t b) {
        compact(b);
        int64_t common = 0;
        for (const int32_t c : adjacent_[b])
            if (mark_[c] == stamp_) {
                ++common;
                --fill[c];
                changed.push_back(c);
            }
        steps += degree_[b];
        fill[a] += degree_[a]++ - common;
        fill[b] += degree_[b]++ - common;
        adjacent_[a].push_back(b);
        adjacent_[b].push_back(a);
        mark_[b] = stamp_;
    }

    void compact(int32_t v) {
        auto& list = adjacent_[v];
        if (static_cast<int64_t>(list.size()) == degree_[v]) return;
        std::erase_if(list, [&](int32_t u) { return !alive_[u]; });
    }

    std::vector<std::vector<int32_t>> adjacent_;  // with some that are gone
    std::vector<int64_t> degree_;                 // without
    std::vector<uint8_t> alive_;
    std::vector<int64_t> mark_;  // stamp_: marked
    int64_t stamp_ = 0;
};

// By min-fill. False if the search was given up; cliques.width is then a lower bound of this order's.
bool min_fill(Cliques& cliques, Search& search) {
    const int64_t n = cliques.n_nodes;
    Remains remains(n, cliques.edges);
    std::vector<int64_t> rank;
    const int64_t floor = remains.degeneracy(rank);
    cliques.width = floor;
    if (search.spend(static_cast<int64_t>(cliques.edges.size()) / 2 * floor, floor + 1)) return false;
    remains.count_fill(rank);

    using Entry = std::pair<int64_t, int32_t>;  // (fill, node), with some that are out of date
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    for (int32_t i = 0; i < n; ++i) queue.emplace(remains.fill[i], i);
    std::vector<int64_t> place(static_cast<size_t>(n));
    cliques.starts.assign(1, 0);
    cliques.width = n > 0 ? 0 : -1;
    while (!queue.empty()) {
        const auto [fill, v] = queue.top();
        queue.pop();
        if (!remains.alive(v) || fill != remains.fill[v]) continue;
        const int64_t before = remains.steps;
        const std::vector<int32_t> around = remains.eliminate(v);
        place[v] = static_cast<int64_t>(cliques.order.size());
        cliques.order.push_back(v);
        cliques.members.insert(cliques.members.end(), around.begin(), around.end());
        cliques.members.push_back(v);
        cliques.starts.push_back(static_cast<int64_t>(cliques.members.size()));
        cliques.width = std::max(cliques.width, static_cast<int64_t>(around.size()));
        if (search.spend(remains.steps - before, cliques.width + 1)) {
            cliques.width = std::max(cliques.width, floor);
            return false;
        }
        std::sort(remains.changed.begin(), remains.changed.end());
        remains.changed.erase(std::unique(remains.changed.begin(), remains.changed.end()), remains.changed.end());
        for (const int32_t u : remains.changed)
            if (remains.alive(u)) queue.emplace(remains.fill[u], u);
    }
    for (int64_t t = 0; t < n; ++t)
        std::sort(cliques.members.begin() + cliques.starts[t], cliques.members.begin() + cliques.starts[t + 1],
                  [&](int32_t a, int32_t b) { return place[a] > place[b]; });
    return true;
}

double entries(const Cliques& cliques, int64_t K) {
    double total = 0.0;
    for (int64_t t = 0; t < cliques.n_nodes; ++t)
        total += std::pow(static_cast<double>(K), static_cast<double>(cliques.size(t)));
    return total;
}

// The cheaper of a min-fill order and a sweep, by the entries of all tables. Min-fill is better on most graphs, a
// sweep on grids and others that are long or wide everywhere alike. False if the search was given up.
bool find_order(Cliques& cliques, int64_t K, Search& search) {
    const SweepOrders sweeps(cliques, K, search.interrupt);
    const Sweep& sweep = sweeps.best();
    search.limit_found = sweep.width < search.limit;  // then min-fill need not go on with cliques larger than that
    const bool found = min_fill(cliques, search);
    if (found && entries(cliques, K) <= sweep.entries) return true;
    if (!found && sweep.width >= search.limit) {
        cliques.width = std::min(cliques.width, sweep.width);
        return false;
    }
    sweeps.write(cliques);
    return true;
}

}  // namespace

Elimination::Elimination(const Graph& graph, int64_t K, int64_t limit, int64_t budget,
                         const std::function<bool()>& poll)
    : graph(graph) {
    Interrupt interrupt(poll);
    Search search{limit, budget, interrupt};
    std::unordered_multimap<uint64_t, int32_t> known;
    shape_of.resize(static_cast<size_t>(graph.n_graphs));
    std::vector<int32_t> edges;
    for (int64_t g = 0; g < graph.n_graphs; ++g) {
        const auto first = static_cast<int32_t>(graph.node_offsets[g]);
        const int64_t n = graph.node_offsets[g + 1] - first;
        edges.assign(graph.edges.begin() + 2 * graph.edge_offsets[g],
                     graph.edges.begin() + 2 * graph.edge_offsets[g + 1]);
        for (int32_t& node : edges) node -= first;
        uint64_t hash = static_cast<uint64_t>(n);
        if (!edges.empty())
            hash += hash_bytes(reinterpret_cast<const char*>(edges.data()), edges.size() * sizeof(int32_t));
        const auto [begin, end] = known.equal_range(hash);
        const auto same = std::find_if(begin, end, [&](const auto& entry) {
            return shapes[entry.second].n_nodes == n && shapes[entry.second].edges == edges;
        });
        if (same != end) {
            shape_of[g] = same->second;
            continue;
        }
        shape_of[g] = static_cast<int32_t>(shapes.size());
        known.emplace(hash, shape_of[g]);
        shapes.emplace_back();
        shapes.back().edges = std::move(edges);
        shapes.back().n_nodes = n;
        edges = {};
        const bool found = find_order(shapes.back(), K, search);
        if (!found || shapes.back().width > width) {
            widest = g;
            width = shapes.back().width;
        }
        if (!found) {
            stopped = g;
            shapes.clear();
            return;
        }
    }
}

std::pair<int64_t, double> Elimination::most_entries(int64_t K) const {
    if (shapes.empty()) return {-1, 0.0};
    std::vector<double> needed;
    for (const Cliques& shape : shapes) needed.push_back(entries(shape, K));
    const auto most = std::max_element(needed.begin(), needed.end());
    const auto graph = std::find(shape_of.begin(), shape_of.end(), static_cast<int32_t>(most - needed.begin()));
    return {graph - shape_of.begin(), *most};
}

}  // namespace crfkit
