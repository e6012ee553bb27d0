// Gibbs sampling on pairwise fields: nodes of a colour at once, or a whole induced forest jointly.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "graph.hpp"

namespace crfkit {

// A maximal set of nodes that induces no cycle: taken greedily, a node joins unless two of its neighbours in the set
// are connected already.
struct GibbsForest {
    GibbsForest(const Graph& graph, const Graph::Colours& colours, const std::vector<int32_t>& order);

    std::vector<int64_t> trees;         // [T+1] tree t: places trees[t] … trees[t+1] of the next three
    std::vector<int32_t> members;       // [F] nodes of the forest, parents before children
    std::vector<int32_t> parents;       // [F] the place of the parent in its tree, −1 at roots
    std::vector<int32_t> parent_edges;  // [F] the edge to the parent
    std::vector<uint8_t> contains;      // [N]
    Graph::Colours outside;             // the other nodes
    int64_t largest = 0;                // nodes of the largest tree

private:
    void choose(const Graph& graph, const std::vector<int32_t>& order);
    void order_trees(const Graph& graph);
};

// What of a graph the sampler needs; made once. Sweeps take the two forests in turn: the nodes outside the first
// are the first to join the second, so that none is always drawn alone if that can be.
struct GibbsPlan {
    explicit GibbsPlan(const Graph& graph);

    const Graph& graph;
    const Graph::Colours colours;
    const GibbsForest first, second;

    const GibbsForest& forest(int64_t sweep) const { return sweep % 2 ? first : second; }
};

// p(y) ∝ exp(Σ_i U_i(y_i) + β Σ_ij P_ij(y_i, y_j)), β = 1 unless annealed. U may be −inf, P is finite.
struct GibbsField {
    const GibbsPlan& plan;
    int K;
    const double* unary;   // [N][K]
    const double* tables;  // [E][K][K]
};

// Chains run side by side: labels are [N][C]. The same seed and stream give the same draws for any n_threads.
struct GibbsRun {
    int n_chains;
    bool block;  // a forest jointly, then the other nodes by colour; otherwise all nodes by colour
    int n_threads;
    uint64_t seed, stream;
    std::function<bool()> poll;
};

// labels = independent draws from the unary part.
void gibbs_start(const GibbsField& field, const GibbsRun& run, int32_t* labels);

// n_sweeps sweeps over labels, in place; `first` were made before, so random numbers go on from there.
void gibbs_sweeps(const GibbsField& field, const GibbsRun& run, int64_t first, int64_t n_sweeps, int32_t* labels);

// The same, and marginals from the state after each thin-th sweep: means of the conditional probabilities
//   nodes [N][K]:  p(y_i = k | rest),    edges [E][K][K]:  ½ p(y_i = k | rest) 1{y_j = l} + ½ 1{y_i = k} p(y_j = l |
//   rest)
void gibbs_marginals(const GibbsField& field, const GibbsRun& run, int64_t first, int64_t n_sweeps, int64_t thin,
                     int32_t* labels, double* nodes, double* edges);

// Annealed importance sampling (Neal 2001) from the unary part: n_chains runs over β = 0, 1/n_steps, …, 1.
//   log_weights [G][C] = Σ_t (β_t − β_{t−1}) Σ_ij P_ij(y_i, y_j),  y after the sweep at β_{t−1}
// E[exp(log weight)] = Z / Z of the unary part, graph by graph.
void gibbs_annealed(const GibbsField& field, const GibbsRun& run, int64_t n_steps, double* log_weights);

}  // namespace crfkit
