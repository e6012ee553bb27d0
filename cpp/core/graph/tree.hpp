// Exact inference on forests: a pass from the leaves to the roots and one back, O(n K^2).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "graph.hpp"

namespace crfkit {

// In which order to pass: breadth first from the lowest node of every component.
struct TreePlan {
    explicit TreePlan(const Graph& graph);

    const Graph& graph;
    int64_t cyclic = -1;  // the first graph that has a cycle; the rest is not filled in then

    std::vector<int32_t> order;         // [N] components one after the other, parents before children
    std::vector<int32_t> parents;       // [N] of order[t]; -1: a root
    std::vector<int32_t> parent_edges;  // [N] from order[t] to its parent
    std::vector<int64_t> components;    // [C+1] where each begins in order
    std::vector<int64_t> graph_bounds;  // [G+1] the components of each graph
};

struct TreeProblem {
    const TreePlan& plan;
    int K;
    const double* unary;   // [N][K], -inf: impossible
    const double* tables;  // [E][K][K]
    int n_threads;
    std::function<bool()> poll;
};

// log Z [G], p(y_i) [N][K], p(y_i, y_j) [E][K][K].
void tree_marginals(const TreeProblem& problem, double* log_z, double* nodes, double* edges);
// A labelling of the highest score [N]; ties go to the lowest state, root first.
void tree_decode(const TreeProblem& problem, int32_t* labels);
// Independent labellings [n_samples][N].
void tree_sample(const TreeProblem& problem, int64_t n_samples, uint64_t seed, int32_t* labels);

}  // namespace crfkit
