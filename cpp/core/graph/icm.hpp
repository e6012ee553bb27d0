// Iterated conditional modes: coordinate ascent of the score of a labelling (Besag, 1986).
#pragma once

#include <cstdint>
#include <functional>

#include "graph.hpp"

namespace crfkit {

// Pairwise tables: one per edge, or one for all edges times a number per edge.
struct PairTables {
    const double* tables;  // [E][K][K], or [K][K] with scales
    const double* scales;  // [E] or null
    int K;

    const double* of(int64_t edge) const { return scales ? tables : tables + edge * K * K; }
    double scale(int64_t edge) const { return scales ? scales[edge] : 1.0; }
};

// Improves labels [N] in place until no change of one node does; returns the number of sweeps. The
// result does not depend on n_threads.
int64_t iterate_modes(const Graph& graph, const double* unary, const PairTables& pairs, int32_t* labels, int n_threads,
                      std::function<bool()> poll);

}  // namespace crfkit
