// Elimination orders that sweep over a graph from one end to the other: on a grid, along its longer side.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "../support/parallel.hpp"
#include "elimination.hpp"

namespace crfkit {

struct Sweep {
    std::vector<int32_t> order;  // [n]
    int64_t width = -1;          // of the largest clique, less one
    double entries = 0.0;        // of the tables of all cliques
};

// Orders by a growing set (King 1970): of the front, the neighbours of those eliminated so far, the node goes next
// that brings the fewest new ones into it; among equals that which has been there longest, or shortest. The first is
// better on grids of 4 neighbours, the second goes column by column where there are 8. The set is connected, so all
// of its front is in the clique of the node that goes.
class SweepOrders {
public:
    SweepOrders(const Cliques& graph, int64_t K, Interrupt& interrupt);

    const Sweep& best() const { return best_; }
    // The best order with its cliques.
    void write(Cliques& cliques) const;

private:
    Sweep sweep(int64_t K, bool oldest, Interrupt& interrupt) const;
    std::pair<int32_t, int32_t> far_from(int32_t node, std::vector<int32_t>& distance) const;
    int32_t end_of(int32_t node, std::vector<int32_t>& distance) const;

    std::vector<int64_t> starts_;  // [n+1]
    std::vector<int32_t> around_;  // neighbours of node i: starts_[i] … starts_[i+1]
    Sweep best_;
};

}  // namespace crfkit
