// Message passing in log space: any potentials, any number of states, sum- or max-product, tree-reweighted or not.
// Slower than the block kernels (sum_product.hpp); the range of its numbers has no end.
#pragma once

#include <functional>
#include <vector>

#include "../support/buffer.hpp"
#include "graph.hpp"
#include "potentials.hpp"
#include "sweeps.hpp"

namespace crfkit {

// With edge appearance probabilities ρ (Wainwright, Jaakkola & Willsky 2005; all one: belief propagation)
//   b_i = U_i + Σ_k ρ_ki λ_ki,    λ_ij(y) = log Σ_x exp(P_ij(x, y)/ρ_ij + b_i(x) − λ_ji(x))
// and log Z = Σ_i (1 − Σ_k ρ_ki)·log Σ exp b_i + Σ_ij ρ_ij·log Σ exp(P_ij/ρ_ij + b_i − λ_ji + b_j − λ_ij).
class LogMessages {
public:
    // rho [E] or null; maximum: max in place of log-sum-exp.
    LogMessages(const Graph& graph, const PotentialsView& potentials, const double* rho, bool maximum);

    bool start_from(const LogMessages& other);
    // Colour by colour, or flooding.
    Outcome run(const Sweeps& sweeps, const std::function<bool()>& poll);
    // The message with the largest change first (Elidan, McGraw & Koller 2006). An iteration is 2E messages.
    Outcome run_residual(const Sweeps& sweeps, const std::function<bool()>& poll);

    void log_z(double* out, int n_threads) const;    // [G]
    void nodes(double* out, int n_threads) const;    // [N][K]
    void edges(double* out, int n_threads) const;    // [E][K][K]
    void states(int32_t* out, int n_threads) const;  // [N] the state of the largest belief

private:
    double weight(int64_t edge) const { return rho_ ? rho_[edge] : 1.0; }
    void belief(int64_t node, const double* messages, double* out) const;  // [K]
    // P/ρ + cavities, [K][K]; of edge e, whose first node is i and second node j.
    void pair(int64_t edge, const double* belief_i, const double* belief_j, double* out) const;
    // The message that node sends along its slot; work is [K·K + K].
    void message(int64_t slot, bool first, const double* belief, const double* back, double* out, double* work) const;
    // New messages of a node into `to`; returns the largest change.
    double send(int64_t node, const double* from, double* to, double damping, double* work) const;

    const Graph& graph_;
    const PotentialsView potentials_;
    const double* rho_;
    const bool maximum_;
    const int K_;
    std::vector<int64_t> reverse_;     // [2E] the slot at the other end
    std::vector<int64_t> edge_slots_;  // [E] the slot of the edge's first node
    Buffer messages_;                  // [2E][K] that arrived at a slot; the largest is 0
};

}  // namespace crfkit
