// Exact inference on any graph whose cliques are small: tables over the cliques of an elimination order.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "elimination.hpp"

namespace crfkit {

// How to walk through a table of a clique together with a smaller one over some of its nodes: nested loops, the last
// innermost; stride is the step in the smaller table, 0 along nodes that it does not have.
struct Axis {
    int64_t extent, stride;
};

// The tables of the cliques of one graph. Clique t is that of the t-th node v to be eliminated: v and its neighbours
// S at that time. Its table is [states of S][states of v], and S lies in the clique of the first of S to be
// eliminated, its parent.
struct CliqueTables {
    struct Range {
        int64_t begin, end;
    };
    struct Clique {
        int32_t node;
        int32_t parent;  // -1: a root, S is empty
        int64_t offset;  // of the table
        int64_t rows;    // K^|S|
        Range members;   // S, as in the rows
        Range up;        // axes: the parent's table along with one over S
        Range edges;     // from the node to members of S
    };
    struct Edge {
        int32_t edge;
        Range axes;  // the clique's table along with the edge's [K][K]
    };

    static constexpr int64_t kMostAxes = 64;  // a table of two states along more axes fits into no memory

    // Throws std::invalid_argument if a table is larger than any memory.
    CliqueTables(const Cliques& cliques, int K);

    std::vector<Clique> cliques;
    std::vector<Edge> edges;
    std::vector<int32_t> members;
    std::vector<Axis> axes;
    int64_t size = 0;      // entries of all tables
    int64_t max_rows = 0;  // of one
};

struct JunctionPlan {
    JunctionPlan(const Elimination& elimination, int K);

    const Elimination& elimination;
    int K;
    std::vector<CliqueTables> shapes;
    std::vector<double> cost;  // [G+1] cumulative
    int64_t max_size = 0;      // entries of all tables of a graph
};

struct JunctionProblem {
    const JunctionPlan& plan;
    const double* unary;   // [N][K], -inf: impossible
    const double* tables;  // [E][K][K]
    int n_threads;
    std::function<bool()> poll;
};

// log Z [G], p(y_i) [N][K], p(y_i, y_j) [E][K][K].
void junction_marginals(const JunctionProblem& problem, double* log_z, double* nodes, double* edges);
// A labelling of the highest score [N].
void junction_decode(const JunctionProblem& problem, int32_t* labels);
// Independent labellings [n_samples][N].
void junction_sample(const JunctionProblem& problem, int64_t n_samples, uint64_t seed, int32_t* labels);
// p(y_i, y_j) [M][K][K] of pairs [M][2] of nodes of a graph each; pairs of the same first node stand together.
void junction_pairs(const JunctionProblem& problem, int64_t n_pairs, const int32_t* pairs, double* marginals);

}  // namespace crfkit
