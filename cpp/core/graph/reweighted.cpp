#include "reweighted.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "block_sweeps.hpp"

namespace crfkit {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kReach = 300;
constexpr int kMeasureEvery = 4;

bool all_states(const PotentialsView& potentials, int64_t n_nodes) {
    const double* U = potentials.unary;
    return std::none_of(U, U + n_nodes * potentials.n_states, [](double u) { return u == -kInfinity; });
}

double log_sum_exp(const double* x, int n) {
    const double top = *std::max_element(x, x + n);
    double sum = 0;
    for (int k = 0; k < n; ++k) sum += std::exp(x[k] - top);
    return top + std::log(sum);
}

}  // namespace

Reweighted::Reweighted(const Graph& graph, const Blocks& blocks, const PotentialsView& potentials, const double* rho,
                       const MessageKernels& kernels, int n_threads)
    : graph_(graph),
      blocks_(blocks),
      potentials_(potentials),
      rho_(rho),
      kernels_(kernels),
      K_(potentials.n_states),
      odds_(K_ == 2 && all_states(potentials, graph.n_nodes)) {
    const int64_t n_slots = blocks_.n_rows() * kBlock, wide = odds_ ? 1 : K_;
    unary_ = Buffer(blocks_.n_blocks() * kBlock * wide);
    tables_ = Buffer(n_slots * wide * wide);
    weights_ = Buffer(n_slots);
    messages_ = Buffer(n_slots * wide);
    std::fill_n(tables_.data(), tables_.size(), 1.0);  // ghosts keep this
    weights_.zero();
    messages_.zero();
    Buffer fields(odds_ ? n_slots : 0);
    fields.zero();
    std::atomic<bool> fits{true};
    over(graph_.n_edges, 2048, n_threads, [&](int64_t begin, int64_t end) {
        std::vector<double> table(static_cast<size_t>(K_ * K_));
        for (int64_t e = begin; e < end; ++e) {
            potentials_.table(e, table.data());
            const auto [least, most] = std::minmax_element(table.begin(), table.end());
            if (!((*most - *least) / weight(e) <= kReach)) {
                fits = false;
                return;
            }
            prepare_edge(e, table.data(), fields.data());
        }
    });
    fits_ = fits;
    if (!fits_) return;
    over(blocks_.n_blocks(), 512, n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) prepare_block(b, fields.data());
    });
}

void Reweighted::prepare_edge(int64_t edge, double* table, double* fields) {
    const int64_t first = blocks_.edge_slots[edge], second = blocks_.targets[first];
    const double rho = weight(edge);
    weights_.data()[first] = weights_.data()[second] = rho;
    if (odds_) {
        const Ising ising(table);
        tables_.data()[first] = tables_.data()[second] = std::exp(2 * ising.J / rho);
        fields[first] = 2 * ising.a;
        fields[second] = 2 * ising.b;
        return;
    }
    const double top = *std::max_element(table, table + K_ * K_);
    const auto at = [&](int64_t slot) { return tables_.data() + (slot / kBlock) * K_ * K_ * kBlock + slot % kBlock; };
    for (int x = 0; x < K_; ++x)
        for (int y = 0; y < K_; ++y)
            at(first)[(x * K_ + y) * kBlock] = at(second)[(y * K_ + x) * kBlock] =
                std::exp((table[x * K_ + y] - top) / rho);
}

void Reweighted::prepare_block(int64_t block, const double* fields) {
    const int64_t begin = blocks_.first_rows[block] * kBlock, end = blocks_.first_rows[block + 1] * kBlock;
    for (int lane = 0; lane < kBlock; ++lane) {
        const int64_t i = blocks_.nodes[block * kBlock + lane];
        const double* U = potentials_.unary + i * K_;
        if (odds_) {
            double odds = i < 0 ? 0.0 : U[1] - U[0];
            for (int64_t s = begin + lane; s < end; s += kBlock) odds += fields[s];
            unary_.data()[block * kBlock + lane] = odds;
        } else {
            for (int x = 0; x < K_; ++x) unary_.data()[(block * K_ + x) * kBlock + lane] = i < 0 ? 0.0 : U[x];
        }
    }
}

bool Reweighted::start_from(const Reweighted& other) {
    if (&other.blocks_ != &blocks_ || other.K_ != K_ || other.odds_ != odds_ || !other.fits_) return false;
    std::copy_n(other.messages_.data(), messages_.size(), messages_.data());
    return true;
}

Outcome Reweighted::run(const Sweeps& sweeps, const std::function<bool()>& poll) {
    if (blocks_.n_rows() == 0) return {0, 0.0, true};
    MessageTask task{};
    task.targets = blocks_.targets.data();
    task.n_states = K_;
    task.unary = unary_.data();
    task.tables = tables_.data();
    task.weights = weights_.data();
    return sweep_blocks(blocks_, odds_ ? kernels_.log_odds : kernels_.log_tables, task, messages_, sweeps,
                        kMeasureEvery, poll);
}

// With two states the message (a·[y = 1] − that it leaves out) is known up to a constant, which changes neither
// marginals nor log Z. The fields of the Ising form, which the edges gave to the nodes, are given back here.
double Reweighted::message(int64_t slot, int state) const {
    if (!odds_) return messages_.data()[((slot / kBlock) * K_ + state) * kBlock + slot % kBlock];
    return state ? messages_.data()[slot] : 0.0;
}

void Reweighted::beliefs(double* out, int n_threads) const {
    over(graph_.n_nodes, 512, n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t place = blocks_.places[i], block = place / kBlock;
            double* b = out + i * K_;
            if (odds_) {
                b[0] = 0.0;
                b[1] = unary_.data()[place];
            } else {
                std::copy_n(potentials_.unary + i * K_, K_, b);
            }
            for (int64_t row = blocks_.first_rows[block]; row < blocks_.first_rows[block + 1]; ++row) {
                const int64_t slot = row * kBlock + place % kBlock;
                for (int x = 0; x < K_; ++x) b[x] += weights_.data()[slot] * message(blocks_.targets[slot], x);
            }
        }
    });
}

void Reweighted::pair(int64_t edge, const double* beliefs, double* out) const {
    const int64_t slot = blocks_.edge_slots[edge], reverse = blocks_.targets[slot];
    const double *b_i = beliefs + int64_t{graph_.edges[2 * edge]} * K_,
                 *b_j = beliefs + int64_t{graph_.edges[2 * edge + 1]} * K_;
    potentials_.table(edge, out);
    if (odds_) {
        const Ising ising(out);
        out[0] = out[3] = ising.J;
        out[1] = out[2] = -ising.J;
    }
    const double scale = 1 / weight(edge);
    for (int x = 0; x < K_; ++x)
        for (int y = 0; y < K_; ++y)
            out[x * K_ + y] = scale * out[x * K_ + y] + b_i[x] - message(reverse, x) + b_j[y] - message(slot, y);
}

void Reweighted::nodes(double* out, int n_threads) const {
    beliefs(out, n_threads);
    over(graph_.n_nodes, 512, n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            double* p = out + i * K_;
            const double total = log_sum_exp(p, K_);
            for (int x = 0; x < K_; ++x) p[x] = std::exp(p[x] - total);
        }
    });
}

void Reweighted::edges(double* out, int n_threads) const {
    Buffer belief(graph_.n_nodes * K_);
    beliefs(belief.data(), n_threads);
    over(graph_.n_edges, 512, n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t e = begin; e < end; ++e) {
            double* p = out + e * K_ * K_;
            pair(e, belief.data(), p);
            const double total = log_sum_exp(p, K_ * K_);
            for (int x = 0; x < K_ * K_; ++x) p[x] = std::exp(p[x] - total);
        }
    });
}

void Reweighted::log_z(double* out, int n_threads) const {
    Buffer belief(graph_.n_nodes * K_), node_terms(graph_.n_nodes), edge_terms(graph_.n_edges);
    beliefs(belief.data(), n_threads);
    over(graph_.n_nodes, 512, n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            double count = 1;
            for (int64_t s = graph_.starts[i]; s < graph_.starts[i + 1]; ++s) count -= weight(graph_.slot_edges[s]);
            node_terms.data()[i] = count * log_sum_exp(belief.data() + i * K_, K_);
            if (odds_) node_terms.data()[i] += potentials_.unary[2 * i];  // log-odds leave out the score of state 0
        }
    });
    over(graph_.n_edges, 512, n_threads, [&](int64_t begin, int64_t end) {
        std::vector<double> table(static_cast<size_t>(K_ * K_));
        for (int64_t e = begin; e < end; ++e) {
            pair(e, belief.data(), table.data());
            edge_terms.data()[e] = weight(e) * log_sum_exp(table.data(), K_ * K_);
            if (odds_) {
                potentials_.table(e, table.data());
                const Ising ising(table.data());
                edge_terms.data()[e] += ising.c - ising.a - ising.b;
            }
        }
    });
    graph_.sum_by_graph(node_terms.data(), edge_terms.data(), out);
}

}  // namespace crfkit
