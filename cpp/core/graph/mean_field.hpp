// Naive mean field: the best fully factored distribution, by coordinate ascent over blocks of nodes.
#pragma once

#include <functional>

#include "../support/buffer.hpp"
#include "blocks.hpp"
#include "graph.hpp"
#include "messages.hpp"
#include "potentials.hpp"
#include "sweeps.hpp"

namespace crfkit {

// Its potentials must stay where they are.
class MeanField {
public:
    MeanField(const Graph& graph, const Blocks& blocks, const PotentialsView& potentials, const MessageKernels& kernels,
              int n_threads);

    // Starts from a distribution per node, [N][K].
    void start_from(const double* nodes);
    Outcome run(const Sweeps& sweeps, const std::function<bool()>& poll);

    void log_z(double* out, int n_threads) const;  // [G] E score + entropy: a lower bound, wherever it stands
    void nodes(double* out) const;                 // [N][K]

private:
    enum class Form { kBinary, kTables, kPotts, kShared };
    void prepare(int64_t block, double* table);
    double probability(int64_t place, int state) const;

    const Graph& graph_;
    const Blocks& blocks_;
    const PotentialsView potentials_;
    const MessageKernels& kernels_;
    const int K_;
    Form form_;
    Buffer unary_;   // log-odds [B][8], or [B][K][8]
    Buffer tables_;  // 2J or the coupling [rows][8], or [rows][K·K][8], or one [K][K]
    Buffer values_;  // means [B][8], or distributions [B][K][8]
};

}  // namespace crfkit
