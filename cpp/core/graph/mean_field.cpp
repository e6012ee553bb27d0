#include "mean_field.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "block_sweeps.hpp"

namespace crfkit {

MeanField::MeanField(const Graph& graph, const Blocks& blocks, const PotentialsView& potentials,
                     const MessageKernels& kernels, int n_threads)
    : graph_(graph),
      blocks_(blocks),
      potentials_(potentials),
      kernels_(kernels),
      K_(potentials.n_states),
      form_(K_ == 2                                ? Form::kBinary
            : is_potts(potentials)                 ? Form::kPotts
            : is_shared(potentials, graph.n_edges) ? Form::kShared
                                                   : Form::kTables) {
    const int64_t wide = form_ == Form::kBinary ? 1 : K_;
    unary_ = Buffer(blocks.n_blocks() * kBlock * wide);
    values_ = Buffer(unary_.size());
    const int64_t n_slots = blocks.n_rows() * kBlock;
    tables_ = Buffer(form_ == Form::kShared ? wide * wide : n_slots * (form_ == Form::kTables ? wide * wide : 1));
    if (form_ == Form::kShared) potentials.table(0, tables_.data());
    over(blocks.n_blocks(), 512, n_threads, [&](int64_t begin, int64_t end) {
        std::vector<double> table(static_cast<size_t>(K_ * K_));
        for (int64_t b = begin; b < end; ++b) prepare(b, table.data());
    });
    std::fill_n(values_.data(), values_.size(), form_ == Form::kBinary ? 0.0 : 1.0 / K_);
}

void MeanField::prepare(int64_t block, double* table) {
    const bool binary = form_ == Form::kBinary;
    for (int lane = 0; lane < kBlock; ++lane) {
        const int64_t i = blocks_.nodes[block * kBlock + lane];
        const double* U = potentials_.unary + i * K_;
        double odds = i < 0 || !binary ? 0.0 : U[1] - U[0];
        for (int k = 0; k < (form_ == Form::kShared ? 0 : blocks_.degrees[block]); ++k) {
            const int64_t row = blocks_.first_rows[block] + k;
            double* out = tables_.data() + row * (form_ == Form::kTables ? K_ * K_ : 1) * kBlock + lane;
            if (i < 0) {
                for (int x = 0; x < (form_ == Form::kTables ? K_ * K_ : 1); ++x) out[x * kBlock] = 0.0;
                continue;
            }
            const int64_t s = graph_.starts[i] + k;
            const bool first = graph_.is_first(i, s);
            if (form_ == Form::kPotts) {
                *out = potentials_.coefficients[graph_.slot_edges[s]];
                continue;
            }
            potentials_.table(graph_.slot_edges[s], table);
            if (binary) {
                const Ising ising(table);
                odds += 2 * (first ? ising.a : ising.b);
                *out = 2 * ising.J;
                continue;
            }
            for (int x = 0; x < K_; ++x)
                for (int y = 0; y < K_; ++y) out[(x * K_ + y) * kBlock] = first ? table[x * K_ + y] : table[y * K_ + x];
        }
        if (binary)
            unary_.data()[block * kBlock + lane] = odds;
        else
            for (int x = 0; x < K_; ++x) unary_.data()[(block * K_ + x) * kBlock + lane] = i < 0 ? 0.0 : U[x];
    }
}

void MeanField::start_from(const double* nodes) {
    for (int64_t i = 0; i < graph_.n_nodes; ++i) {
        const int64_t place = blocks_.places[i];
        if (form_ == Form::kBinary)
            values_.data()[place] = nodes[2 * i + 1] - nodes[2 * i];
        else
            for (int x = 0; x < K_; ++x)
                values_.data()[((place / kBlock) * K_ + x) * kBlock + place % kBlock] = nodes[i * K_ + x];
    }
}

Outcome MeanField::run(const Sweeps& sweeps, const std::function<bool()>& poll) {
    const auto kernel = form_ == Form::kBinary   ? kernels_.binary_means
                        : form_ == Form::kPotts  ? kernels_.potts_means
                        : form_ == Form::kShared ? kernels_.shared_means
                                                 : kernels_.table_means;
    MessageTask task{};
    task.targets = blocks_.neighbour_places().data();
    task.n_states = K_;
    task.unary = unary_.data();
    task.tables = tables_.data();
    return sweep_blocks(blocks_, kernel, task, values_, sweeps, 1, poll);
}

double MeanField::probability(int64_t place, int state) const {
    if (form_ == Form::kBinary) return (1 + (state ? 1 : -1) * values_.data()[place]) / 2;
    return values_.data()[((place / kBlock) * K_ + state) * kBlock + place % kBlock];
}

void MeanField::nodes(double* out) const {
    for (int64_t i = 0; i < graph_.n_nodes; ++i)
        for (int x = 0; x < K_; ++x) out[i * K_ + x] = probability(blocks_.places[i], x);
}

void MeanField::log_z(double* out, int n_threads) const {
    Buffer node_terms(graph_.n_nodes), edge_terms(graph_.n_edges);
    over(graph_.n_nodes, 512, n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            double term = 0;
            for (int x = 0; x < K_; ++x)
                if (const double p = probability(blocks_.places[i], x); p > 0)
                    term += p * (potentials_.unary[i * K_ + x] - std::log(p));
            node_terms.data()[i] = term;
        }
    });
    over(graph_.n_edges, 512, n_threads, [&](int64_t begin, int64_t end) {
        std::vector<double> table(static_cast<size_t>(K_ * K_));
        for (int64_t e = begin; e < end; ++e) {
            const int64_t i = blocks_.places[graph_.edges[2 * e]], j = blocks_.places[graph_.edges[2 * e + 1]];
            potentials_.table(e, table.data());
            double term = 0;
            for (int x = 0; x < K_; ++x)
                for (int y = 0; y < K_; ++y) term += probability(i, x) * probability(j, y) * table[x * K_ + y];
            edge_terms.data()[e] = term;
        }
    });
    graph_.sum_by_graph(node_terms.data(), edge_terms.data(), out);
}

}  // namespace crfkit
