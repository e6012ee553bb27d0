// Tree-reweighted sum-product over blocks of nodes, in log space (the formulas: log_messages.hpp). With ρ = 1 it is
// belief propagation for potentials whose products do not fit a double.
#pragma once

#include <functional>

#include "../support/buffer.hpp"
#include "blocks.hpp"
#include "graph.hpp"
#include "messages.hpp"
#include "potentials.hpp"
#include "sweeps.hpp"

namespace crfkit {

// Its potentials and rho [E] (null: all 1) must stay where they are.
class Reweighted {
public:
    Reweighted(const Graph& graph, const Blocks& blocks, const PotentialsView& potentials, const double* rho,
               const MessageKernels& kernels, int n_threads);

    // Whether exp(P/ρ) of every edge fits a double. If not, nothing else may be called.
    bool fits() const { return fits_; }
    // Starts from the messages of another field on the same blocks; false if it has another form.
    bool start_from(const Reweighted& other);
    Outcome run(const Sweeps& sweeps, const std::function<bool()>& poll);

    void log_z(double* out, int n_threads) const;  // [G]
    void nodes(double* out, int n_threads) const;  // [N][K]
    void edges(double* out, int n_threads) const;  // [E][K][K]

private:
    void prepare_edge(int64_t edge, double* table, double* fields);
    void prepare_block(int64_t block, const double* fields);
    double weight(int64_t edge) const { return rho_ ? rho_[edge] : 1.0; }
    double message(int64_t slot, int state) const;   // that was sent from a slot
    void beliefs(double* out, int n_threads) const;  // [N][K] b_i, with U_i as it was given
    // P/ρ + b_i − λ_ji + b_j − λ_ij of an edge, [K][K].
    void pair(int64_t edge, const double* beliefs, double* out) const;

    const Graph& graph_;
    const Blocks& blocks_;
    const PotentialsView potentials_;
    const double* rho_;
    const MessageKernels& kernels_;
    const int K_;
    const bool odds_;  // two states that both can be: log-odds stand for messages
    bool fits_ = true;
    Buffer unary_;     // log-odds [B][8], or U [B][K][8]
    Buffer tables_;    // exp(2J/ρ) [rows][8], or exp(P/ρ − max) [rows][K·K][8]
    Buffer weights_;   // ρ [rows][8]
    Buffer messages_;  // log-odds [rows][8], or [rows][K][8]; at the slots of their senders
};

}  // namespace crfkit
