// Nodes in blocks of eight, so that kernels work on eight nodes at a time whatever the graph.
//
// Nodes of one colour and one degree fill blocks of eight lanes; the last block of such a run is filled up
// with ghosts. A block of degree d has d rows of eight slots, one per neighbour; what a slot holds (a message,
// a table) is stored [row][value][lane]. target[slot] is the slot at the other end of its edge: a message stands
// at the slot of its sender, so what arrives at a slot is read at its target.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "graph.hpp"

namespace crfkit {

constexpr int kBlock = 8;

struct Blocks {
    // Throws std::invalid_argument if slots cannot be 32-bit numbers.
    explicit Blocks(const Graph& graph);

    const Graph& graph;

    int64_t n_blocks() const { return static_cast<int64_t>(degrees.size()); }
    int64_t n_rows() const { return first_rows.back(); }

    std::vector<int64_t> colour_bounds;  // [C+1] blocks of colour c: colour_bounds[c] … colour_bounds[c+1]
    std::vector<int32_t> degrees;        // [B]
    std::vector<int64_t> first_rows;     // [B+1]
    std::vector<int32_t> nodes;          // [B][8], -1: ghost
    std::vector<int32_t> targets;        // [rows][8]; a ghost's slot is its own target
    std::vector<int32_t> places;         // [N] where a node stands: 8·block + lane
    std::vector<int32_t> edge_slots;     // [E] the slot of the edge's first node
    int max_degree = 0;

    // [rows][8] the place of the neighbour; a ghost's neighbour is itself. Made when first asked for.
    const std::vector<int32_t>& neighbour_places() const;

    // [phase][thread] where the share of a thread begins, of the blocks bounds[phase] … bounds[phase+1]; even by work.
    std::vector<std::vector<int64_t>> shares(const std::vector<int64_t>& bounds, int n_threads) const;
    // The slot of the k-th neighbour of a node.
    int64_t slot(int64_t node, int64_t k) const {
        const int32_t place = places[node];
        return (first_rows[place / kBlock] + k) * kBlock + place % kBlock;
    }

private:
    mutable std::once_flag made_;
    mutable std::vector<int32_t> neighbour_places_;
};

}  // namespace crfkit
