// Loopy belief propagation over blocks of nodes (Pearl 1988; the Bethe free energy: Yedidia, Freeman & Weiss 2005).
#pragma once

#include <functional>
#include <vector>

#include "../support/buffer.hpp"
#include "blocks.hpp"
#include "graph.hpp"
#include "messages.hpp"
#include "potentials.hpp"
#include "sweeps.hpp"

namespace crfkit {

// The messages of a field. Its potentials must stay where they are.
class SumProduct {
public:
    SumProduct(const Graph& graph, const Blocks& blocks, const PotentialsView& potentials,
               const MessageKernels& kernels, int n_threads);

    // Whether products of potentials at a node fit a double. If not, nothing else may be called.
    bool fits() const { return fits_; }
    const char* form() const;
    // Starts from the messages of another field on the same blocks; false if it has another form.
    bool start_from(const SumProduct& other);
    Outcome run(const Sweeps& sweeps, const std::function<bool()>& poll);

    void log_z(double* out, int n_threads) const;  // [G] the Bethe approximation
    void nodes(double* out, int n_threads) const;  // [N][K]
    void edges(double* out, int n_threads) const;  // [E][K][K]

private:
    enum class Form { kRatios, kTables, kPotts, kShared };

    void prepare(int n_threads);
    double shared_table();  // its range
    // Coupling or table of an edge at both its slots; `reach` [rows][8] gets the range of its values, messages_ what it
    // adds to the potentials of either end, relative to those of state 0.
    void prepare_edge(int64_t edge, double* table, double* reach);
    bool prepare_block(int64_t block, const double* reach);  // whether it fits
    void beliefs(double* out, int n_threads) const;          // [B][K][8] unnormalised; the ratios [B][8]
    // Unnormalised joint distribution of an edge's ends; returns its sum.
    double joint(int64_t edge, const double* beliefs, double* out) const;
    double arrived(int64_t slot, int state) const {  // of the message that arrived at a slot
        const int64_t from = blocks_.targets[slot], value = state - (K_ - wide_);
        return value < 0 ? 1.0 : messages_.data()[((from / kBlock) * wide_ + value) * kBlock + from % kBlock];
    }

    const Graph& graph_;
    const Blocks& blocks_;
    const PotentialsView potentials_;
    const MessageKernels& kernels_;
    const int K_;
    Form form_ = Form::kTables;
    int wide_ = 0;  // values of a message: K − 1 ratios, or K
    bool fits_ = true;
    Buffer unary_;     // ratios [B][8], or exp(U − max U) [B][K][8]
    Buffer scales_;    // max U [B][8], of tables
    Buffer tables_;    // q [rows][8], or [rows][(K−1)·(K−1)][8], or one [K][K]
    Buffer messages_;  // [rows][values][8]; at the slots of their senders
};

}  // namespace crfkit
