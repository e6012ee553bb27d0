#include "mean_field.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace crfkit {

MeanField::MeanField(const Graph& graph, const Blocks& blocks, const PotentialsView& potentials,
                     const MessageKernels& kernels, int n_threads)
    : graph_(graph),
      blocks_(blocks),
      potentials_(potentials),
      kernels_(kernels),
      K_(potentials.n_states),
      form_(K_ == 2                ? Form::kBinary
            : is_potts(potentials) ? Form::kPotts
                                   : Form::kTables) {
    const int64_t wide = form_ == Form::kBinary ? 1 : K_;
    unary_ = Buffer(blocks.n_blocks() * kBlock * wide);
    values_ = Buffer(unary_.size());
    tables_ = Buffer(blocks.n_rows() * kBlock * (form_ == Form::kTables ? wide * wide : 1));
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
        for (int k = 0; k < blocks_.degrees[block]; ++k) {
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
    const auto kernel = form_ == Form::kBinary  ? kernels_.binary_means
                        : form_ == Form::kPotts ? kernels_.potts_means
                                                : kernels_.table_means;
    const auto& phases = blocks_.colour_bounds;
    const int n_phases = static_cast<int>(phases.size()) - 1;
    if (n_phases == 0) return {0, 0.0, true};
    const int64_t work = (blocks_.n_rows() * K_ + blocks_.n_blocks()) * kBlock * K_ / n_phases;
    const int n_threads = static_cast<int>(std::clamp<int64_t>(work / 4096, 1, std::max(sweeps.n_threads, 1)));
    std::vector<std::vector<int64_t>> shares;
    for (int p = 0; p < n_phases; ++p) {
        const int64_t begin = phases[p];
        shares.push_back(split_by_cost(phases[p + 1] - begin, n_threads, [&](int64_t b) {
            return static_cast<double>(blocks_.first_rows[begin + b] - blocks_.first_rows[begin] + b);
        }));
    }
    std::vector<Buffer> scratch;
    for (int thread = 0; thread < n_threads; ++thread) scratch.emplace_back(int64_t{K_} * kBlock);
    const int32_t* places = blocks_.neighbour_places().data();
    return run_sweeps(sweeps, n_phases, n_threads, 1, poll, [&](int thread, int, int phase, bool measure) {
        const int64_t begin = phases[phase];
        return kernel({blocks_.degrees.data(), blocks_.first_rows.data(), places, begin + shares[phase][thread],
                       begin + shares[phase][thread + 1], K_, unary_.data(), tables_.data(), values_.data(),
                       values_.data(), sweeps.damping, measure, scratch[thread].data(), blocks_.max_degree});
    });
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
    Buffer terms(graph_.n_nodes);
    over(graph_.n_nodes, 512, n_threads, [&](int64_t begin, int64_t end) {
        std::vector<double> table(static_cast<size_t>(K_ * K_));
        for (int64_t i = begin; i < end; ++i) {
            double term = 0;
            const int64_t place = blocks_.places[i];
            for (int x = 0; x < K_; ++x)
                if (const double p = probability(place, x); p > 0)
                    term += p * (potentials_.unary[i * K_ + x] - std::log(p));
            for (int64_t s = graph_.starts[i]; s < graph_.starts[i + 1]; ++s) {
                if (!graph_.is_first(i, s)) continue;
                const int64_t other = blocks_.places[graph_.neighbours[s]];
                potentials_.table(graph_.slot_edges[s], table.data());
                for (int x = 0; x < K_; ++x)
                    for (int y = 0; y < K_; ++y)
                        term += probability(place, x) * probability(other, y) * table[x * K_ + y];
            }
            terms.data()[i] = term;
        }
    });
    for (int64_t g = 0; g < graph_.n_graphs; ++g) {
        double sum = 0;
        for (int64_t i = graph_.node_offsets[g]; i < graph_.node_offsets[g + 1]; ++i) sum += terms.data()[i];
        out[g] = sum;
    }
}

}  // namespace crfkit
