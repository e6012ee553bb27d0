#include "sweep_orders.hpp"

#include <algorithm>
#include <cmath>
#include <queue>
#include <tuple>

namespace crfkit {

SweepOrders::SweepOrders(const Cliques& graph, int64_t K, Interrupt& interrupt)
    : starts_(static_cast<size_t>(graph.n_nodes) + 1), around_(graph.edges.size()) {
    for (const int32_t i : graph.edges) ++starts_[i + 1];
    for (int64_t i = 0; i < graph.n_nodes; ++i) starts_[i + 1] += starts_[i];
    std::vector<int64_t> next(starts_.begin(), starts_.end() - 1);
    for (size_t e = 0; e < graph.edges.size(); e += 2) {
        around_[next[graph.edges[e]]++] = graph.edges[e + 1];
        around_[next[graph.edges[e + 1]]++] = graph.edges[e];
    }
    best_ = sweep(K, true, interrupt);
    Sweep other = sweep(K, false, interrupt);
    if (other.entries < best_.entries) best_ = std::move(other);
}

Sweep SweepOrders::sweep(int64_t K, bool oldest, Interrupt& interrupt) const {
    enum : uint8_t { kUnseen, kFront, kGone };
    const auto n = static_cast<int64_t>(starts_.size()) - 1;
    std::vector<uint8_t> state(static_cast<size_t>(n), kUnseen);
    std::vector<int64_t> unseen(static_cast<size_t>(n)), age(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) unseen[i] = starts_[i + 1] - starts_[i];
    using Entry = std::tuple<int64_t, int64_t, int32_t>;  // (unseen neighbours, age, node), with some out of date
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> front;
    int64_t size = 0, entered = 0;
    const auto enter = [&](int32_t u) {
        state[u] = kFront;
        age[u] = oldest ? entered : -entered;
        ++entered;
        ++size;
        for (int64_t k = starts_[u]; k < starts_[u + 1]; ++k) {
            const int32_t v = around_[k];
            --unseen[v];
            if (state[v] == kFront) front.emplace(unseen[v], age[v], v);
        }
        front.emplace(unseen[u], age[u], u);
    };
    std::vector<int32_t> distance(static_cast<size_t>(n), -1);
    Sweep found;
    found.order.reserve(static_cast<size_t>(n));
    for (int32_t first = 0; first < n; ++first) {
        if (state[first] != kUnseen) continue;
        enter(end_of(first, distance));
        while (!front.empty()) {
            const auto [count, _, v] = front.top();
            front.pop();
            if (state[v] != kFront || count != unseen[v]) continue;
            interrupt.check(0);
            state[v] = kGone;
            for (int64_t k = starts_[v]; k < starts_[v + 1]; ++k)
                if (state[around_[k]] == kUnseen) enter(around_[k]);
            found.order.push_back(v);
            found.width = std::max(found.width, --size);
            found.entries += std::pow(static_cast<double>(K), static_cast<double>(size + 1));
        }
    }
    return found;
}

// (The node farthest from this one, how far it is); of several, one of few neighbours. Distances are −1 before and
// after.
std::pair<int32_t, int32_t> SweepOrders::far_from(int32_t node, std::vector<int32_t>& distance) const {
    std::vector<int32_t> reached{node};
    distance[node] = 0;
    int32_t far = node;
    const auto degree = [&](int32_t i) { return starts_[i + 1] - starts_[i]; };
    for (size_t k = 0; k < reached.size(); ++k) {
        const int32_t i = reached[k];
        if (distance[i] > distance[far] || (distance[i] == distance[far] && degree(i) < degree(far))) far = i;
        for (int64_t m = starts_[i]; m < starts_[i + 1]; ++m)
            if (distance[around_[m]] < 0) {
                distance[around_[m]] = distance[i] + 1;
                reached.push_back(around_[m]);
            }
    }
    const int32_t length = distance[far];
    for (const int32_t i : reached) distance[i] = -1;
    return {far, length};
}

// An end of the component of this node (George & Liu 1979): far from a node that is far from others.
int32_t SweepOrders::end_of(int32_t node, std::vector<int32_t>& distance) const {
    int32_t longest = -1;
    while (true) {
        const auto [far, length] = far_from(node, distance);
        if (length <= longest) return node;
        longest = length;
        node = far;
    }
}

void SweepOrders::write(Cliques& cliques) const {
    const auto n = static_cast<int64_t>(best_.order.size());
    std::vector<int64_t> place(static_cast<size_t>(n));
    for (int64_t t = 0; t < n; ++t) place[best_.order[t]] = t;
    cliques.order = best_.order;
    cliques.width = best_.width;
    cliques.starts.assign(1, 0);
    cliques.members.clear();
    std::vector<int32_t> front;
    std::vector<uint8_t> seen(static_cast<size_t>(n));
    for (const int32_t v : best_.order) {
        std::erase(front, v);
        seen[v] = 1;
        for (int64_t k = starts_[v]; k < starts_[v + 1]; ++k) {
            const int32_t u = around_[k];
            if (seen[u]) continue;
            seen[u] = 1;
            front.push_back(u);
        }
        // Latest eliminated first, v last.
        std::sort(front.begin(), front.end(), [&](int32_t a, int32_t b) { return place[a] > place[b]; });
        cliques.members.insert(cliques.members.end(), front.begin(), front.end());
        cliques.members.push_back(v);
        cliques.starts.push_back(static_cast<int64_t>(cliques.members.size()));
    }
}

}  // namespace crfkit
