#include "spanning.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace crfkit {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kFirst = 1;      // edges of the first batch, per node
constexpr int64_t kGrowth = 4;     // of a batch, relative to the one before
constexpr int64_t kSample = 1024;  // of the costs that say where a batch ends

struct Candidate {
    double cost;
    int32_t edge;
    bool operator<(const Candidate& other) const {
        return cost < other.cost || (cost == other.cost && edge < other.edge);
    }
};

// Sets of joined nodes; finding one halves the path to its root.
class Sets {
public:
    explicit Sets(int64_t n) : parents_(static_cast<size_t>(n)) { std::iota(parents_.begin(), parents_.end(), 0); }
    int32_t root(int32_t i) {
        while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
        return i;
    }
    // Whether they were apart.
    bool join(int32_t i, int32_t j) {
        const int32_t a = root(i), b = root(j);
        parents_[a] = b;
        return a != b;
    }

private:
    std::vector<int32_t> parents_;
};

}  // namespace

std::vector<int64_t> spanning_forest(const Graph& graph, const double* costs) {
    const int64_t n = graph.n_nodes, E = graph.n_edges, n_sample = std::min(kSample, E);
    const int32_t* ends = graph.edges.data();
    std::vector<double> sample(static_cast<size_t>(n_sample));
    for (int64_t k = 0; k < n_sample; ++k) sample[k] = costs[k * E / n_sample];
    std::sort(sample.begin(), sample.end());

    Sets sets(n);
    std::vector<int64_t> forest;
    std::vector<Candidate> batch(static_cast<size_t>(E) + 1);  // one more is written than kept
    double low = -kInfinity;
    for (int64_t wanted = kFirst * n; low < kInfinity; wanted *= kGrowth) {
        // About `wanted` edges cost no more than `high`, a quantile of the sample.
        const double high = wanted < E ? sample[wanted * n_sample / E] : kInfinity;
        size_t size = 0;
        for (int64_t e = 0; e < E; ++e) {  // without a branch: every candidate is written, few are kept
            batch[size] = {costs[e], static_cast<int32_t>(e)};
            size += low < costs[e] && costs[e] <= high;
        }
        auto end = batch.begin() + static_cast<std::ptrdiff_t>(size);
        if (low > -kInfinity)
            end = std::remove_if(batch.begin(), end, [&](const Candidate& c) {
                return sets.root(ends[2 * int64_t{c.edge}]) == sets.root(ends[2 * int64_t{c.edge} + 1]);
            });
        std::sort(batch.begin(), end);
        for (auto c = batch.begin(); c != end; ++c)
            if (sets.join(ends[2 * int64_t{c->edge}], ends[2 * int64_t{c->edge} + 1])) forest.push_back(c->edge);
        if (static_cast<int64_t>(forest.size()) + 1 >= n) break;
        low = high;
    }
    return forest;
}

}  // namespace crfkit
