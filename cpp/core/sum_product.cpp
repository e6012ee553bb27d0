#include "sum_product.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

namespace crfkit {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Products of potentials at a node stay within exp(±kReach), so that products of two such fit a double.
constexpr double kReach = 300;
// The Potts form subtracts, which loses digits where states repel.
constexpr double kRepulsion = -3;
constexpr int kMeasureEvery = 4;

}  // namespace

SumProduct::SumProduct(const Graph& graph, const Blocks& blocks, const PotentialsView& potentials,
                       const MessageKernels& kernels, int n_threads)
    : graph_(graph), blocks_(blocks), potentials_(potentials), kernels_(kernels), K_(potentials.n_states) {
    const int64_t n = graph.n_nodes * K_;
    const bool all_states =
        std::none_of(potentials.unary, potentials.unary + n, [](double u) { return u == -kInfinity; });
    const double* c = potentials.coefficients;
    if (K_ == 2 && all_states)
        form_ = Form::kRatios;
    else if (is_potts(potentials) && std::all_of(c, c + graph.n_edges, [](double x) { return x >= kRepulsion; }))
        form_ = Form::kPotts;
    prepare(n_threads);
    if (!fits_) return;
    messages_ = Buffer(blocks_.n_rows() * kBlock * (form_ == Form::kRatios ? 1 : K_));
    std::fill_n(messages_.data(), messages_.size(), form_ == Form::kRatios ? 1.0 : 1.0 / K_);
}

bool SumProduct::start_from(const SumProduct& other) {
    if (&other.blocks_ != &blocks_ || other.form_ != form_ || other.K_ != K_ || !other.fits_) return false;
    std::copy_n(other.messages_.data(), messages_.size(), messages_.data());
    return true;
}

void SumProduct::prepare(int n_threads) {
    // One reading of the tables to see whether they fit.
    std::atomic<bool> fits{true};
    over(graph_.n_nodes, 512, n_threads, [&](int64_t begin, int64_t end) {
        std::vector<double> table(static_cast<size_t>(K_ * K_));
        for (int64_t i = begin; i < end; ++i) {
            double low = kInfinity, high = -kInfinity;
            for (int x = 0; x < K_; ++x) {
                const double u = potentials_.unary[i * K_ + x];
                if (u == -kInfinity) continue;
                low = std::min(low, u);
                high = std::max(high, u);
            }
            double reach = high - low;
            for (int64_t s = graph_.starts[i]; s < graph_.starts[i + 1]; ++s) {
                potentials_.table(graph_.slot_edges[s], table.data());
                const auto [least, most] = std::minmax_element(table.begin(), table.end());
                reach += *most - *least;
            }
            if (!(reach <= kReach)) fits = false;
        }
    });
    fits_ = fits;
    if (!fits_) return;
    const int64_t wide = form_ == Form::kRatios ? 1 : K_;
    unary_ = Buffer(blocks_.n_blocks() * kBlock * wide);
    tables_ = Buffer(blocks_.n_rows() * kBlock * (form_ == Form::kTables ? wide * wide : 1));
    over(blocks_.n_blocks(), 512, n_threads, [&](int64_t begin, int64_t end) {
        std::vector<double> table(static_cast<size_t>(K_ * K_));
        for (int64_t b = begin; b < end; ++b)
            form_ == Form::kRatios ? prepare_ratios(b) : prepare_tables(b, table.data());
    });
}

void SumProduct::prepare_ratios(int64_t block) {
    const int64_t row = blocks_.first_rows[block];
    for (int lane = 0; lane < kBlock; ++lane) {
        const int64_t i = blocks_.nodes[block * kBlock + lane];
        double odds = i < 0 ? 0.0 : potentials_.unary[2 * i + 1] - potentials_.unary[2 * i];
        for (int k = 0; k < blocks_.degrees[block]; ++k) {
            double q = 1.0;
            if (i >= 0) {
                const int64_t s = graph_.starts[i] + k;
                double table[4];
                potentials_.table(graph_.slot_edges[s], table);
                const Ising ising(table);
                odds += 2 * (graph_.is_first(i, s) ? ising.a : ising.b);
                q = std::exp(2 * ising.J);
            }
            tables_.data()[(row + k) * kBlock + lane] = q;
        }
        unary_.data()[block * kBlock + lane] = std::exp(odds);
    }
}

void SumProduct::prepare_tables(int64_t block, double* table) {
    const int64_t row = blocks_.first_rows[block];
    const bool potts = form_ == Form::kPotts;
    for (int lane = 0; lane < kBlock; ++lane) {
        const int64_t i = blocks_.nodes[block * kBlock + lane];
        double* unary = unary_.data() + block * K_ * kBlock + lane;
        const double* U = potentials_.unary + i * K_;
        const double top = i < 0 ? 0.0 : *std::max_element(U, U + K_);
        for (int x = 0; x < K_; ++x) unary[x * kBlock] = i < 0 ? 1.0 : std::exp(U[x] - top);
        for (int k = 0; k < blocks_.degrees[block]; ++k) {
            double* out = tables_.data() + (row + k) * (potts ? 1 : K_ * K_) * kBlock + lane;
            const int64_t s = i < 0 ? 0 : graph_.starts[i] + k;
            if (potts) {
                *out = i < 0 ? 1.0 : std::exp(potentials_.coefficients[graph_.slot_edges[s]]);
                continue;
            }
            if (i >= 0) potentials_.table(graph_.slot_edges[s], table);
            const bool first = i >= 0 && graph_.is_first(i, s);
            const double most = i < 0 ? 0.0 : *std::max_element(table, table + K_ * K_);
            for (int x = 0; x < K_; ++x)
                for (int y = 0; y < K_; ++y)
                    out[(x * K_ + y) * kBlock] =
                        i < 0 ? 1.0 : std::exp((first ? table[x * K_ + y] : table[y * K_ + x]) - most);
        }
    }
}

Outcome SumProduct::run(const Sweeps& sweeps, const std::function<bool()>& poll) {
    const int64_t n_rows = blocks_.n_rows();
    if (n_rows == 0) return {0, 0.0, true};
    const auto kernel = form_ == Form::kRatios  ? kernels_.ratios
                        : form_ == Form::kPotts ? kernels_.potts
                                                : kernels_.tables;
    // Flooding is one phase over all blocks, from one buffer into another; otherwise a phase is a colour.
    const std::vector<int64_t> phases =
        sweeps.flooding ? std::vector<int64_t>{0, blocks_.n_blocks()} : blocks_.colour_bounds;
    const int n_phases = static_cast<int>(phases.size()) - 1;
    const int64_t per_phase = n_rows * kBlock * K_ * K_ / n_phases;
    const int n_threads = static_cast<int>(std::clamp<int64_t>(per_phase / 4096, 1, std::max(sweeps.n_threads, 1)));
    std::vector<std::vector<int64_t>> shares;
    for (int p = 0; p < n_phases; ++p) {
        const int64_t begin = phases[p];
        shares.push_back(split_by_cost(phases[p + 1] - begin, n_threads, [&](int64_t b) {
            return static_cast<double>(blocks_.first_rows[begin + b] - blocks_.first_rows[begin] + b);
        }));
    }
    Buffer other;
    if (sweeps.flooding) {
        other = Buffer(messages_.size());
        std::copy_n(messages_.data(), messages_.size(), other.data());
    }
    std::vector<Buffer> scratch;
    for (int thread = 0; thread < n_threads; ++thread)
        scratch.emplace_back(static_cast<int64_t>(2 * blocks_.max_degree + 2) * K_ * kBlock);
    const Outcome outcome = run_sweeps(
        sweeps, n_phases, n_threads, kMeasureEvery, poll, [&](int thread, int sweep, int phase, bool measure) {
            double *from = messages_.data(), *to = sweeps.flooding ? other.data() : from;
            if (sweep % 2 == 0) std::swap(from, to);
            const int64_t begin = phases[phase];
            return kernel({blocks_.degrees.data(), blocks_.first_rows.data(), blocks_.targets.data(),
                           begin + shares[phase][thread], begin + shares[phase][thread + 1], K_, unary_.data(),
                           tables_.data(), from, to, sweeps.damping, measure, scratch[thread].data(),
                           blocks_.max_degree});
        });
    if (sweeps.flooding && outcome.iterations % 2 == 1) messages_ = std::move(other);
    return outcome;
}

void SumProduct::beliefs(double* out, int n_threads) const {
    const int n = form_ == Form::kRatios ? 1 : K_;
    over(blocks_.n_blocks(), 512, n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
            double* belief = out + b * n * kBlock;
            std::copy_n(unary_.data() + b * n * kBlock, n * kBlock, belief);
            for (int64_t s = blocks_.first_rows[b] * kBlock; s < blocks_.first_rows[b + 1] * kBlock; ++s) {
                const int64_t from = blocks_.targets[s];
                const double* message = messages_.data() + (from / kBlock) * n * kBlock + from % kBlock;
                for (int x = 0; x < n; ++x) belief[x * kBlock + s % kBlock] *= message[x * kBlock];
            }
        }
    });
}

void SumProduct::nodes(double* out, int n_threads) const {
    const int n = form_ == Form::kRatios ? 1 : K_;
    Buffer belief(blocks_.n_blocks() * n * kBlock);
    beliefs(belief.data(), n_threads);
    over(graph_.n_nodes, 512, n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t place = blocks_.places[i];
            const double* b = belief.data() + (place / kBlock) * n * kBlock + place % kBlock;
            if (form_ == Form::kRatios) {
                out[2 * i] = 1 / (1 + b[0]);
                out[2 * i + 1] = b[0] / (1 + b[0]);
                continue;
            }
            double sum = 0;
            for (int x = 0; x < K_; ++x) sum += b[x * kBlock];
            for (int x = 0; x < K_; ++x) out[i * K_ + x] = b[x * kBlock] / sum;
        }
    });
}

// p(x, y) ∝ cavity_i(x) · T(x, y) · cavity_j(y), where a cavity is a belief without the message along this edge.
double SumProduct::joint(int64_t first_place, int64_t second_place, int64_t slot, const double* beliefs,
                         double* out) const {
    const int64_t reverse = blocks_.targets[slot];
    if (form_ == Form::kRatios) {
        const double R = beliefs[first_place] / messages_.data()[reverse];
        const double S = beliefs[second_place] / messages_.data()[slot];
        const double q = tables_.data()[slot];
        out[0] = q;
        out[1] = S;
        out[2] = R;
        out[3] = q * R * S;
        return out[0] + out[1] + out[2] + out[3];
    }
    const auto belief = [&](int64_t place, int x) {
        return beliefs[((place / kBlock) * K_ + x) * kBlock + place % kBlock];
    };
    double sum = 0;
    for (int x = 0; x < K_; ++x) {
        const double first = belief(first_place, x) / arrived(slot, x);
        for (int y = 0; y < K_; ++y) {
            const int64_t row = slot / kBlock, lane = slot % kBlock;
            const double t = form_ == Form::kPotts ? (x == y ? tables_.data()[slot] : 1.0)
                                                   : tables_.data()[(row * K_ * K_ + x * K_ + y) * kBlock + lane];
            out[x * K_ + y] = first * t * (belief(second_place, y) / arrived(reverse, y));
            sum += out[x * K_ + y];
        }
    }
    return sum;
}

void SumProduct::edges(double* out, int n_threads) const {
    const int n = form_ == Form::kRatios ? 1 : K_, size = K_ * K_;
    Buffer belief(blocks_.n_blocks() * n * kBlock);
    beliefs(belief.data(), n_threads);
    over(graph_.n_nodes, 512, n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            for (int64_t s = graph_.starts[i]; s < graph_.starts[i + 1]; ++s) {
                if (!graph_.is_first(i, s)) continue;
                double* table = out + int64_t{graph_.slot_edges[s]} * size;
                const double sum = joint(blocks_.places[i], blocks_.places[graph_.neighbours[s]],
                                         blocks_.slot(i, s - graph_.starts[i]), belief.data(), table);
                for (int x = 0; x < size; ++x) table[x] /= sum;
            }
    });
}

// log Z = Σ_i (1 − d_i)·log Z_i + Σ_ij log Z_ij, with Z_i and Z_ij the sums of the unnormalised beliefs: it does
// not depend on how messages are scaled, and it is stationary in them at a fixed point.
void SumProduct::log_z(double* out, int n_threads) const {
    const int n = form_ == Form::kRatios ? 1 : K_, size = K_ * K_;
    Buffer belief(blocks_.n_blocks() * n * kBlock);
    beliefs(belief.data(), n_threads);
    Buffer terms(graph_.n_nodes);
    over(graph_.n_nodes, 512, n_threads, [&](int64_t begin, int64_t end) {
        std::vector<double> table(static_cast<size_t>(size)), product(static_cast<size_t>(size));
        for (int64_t i = begin; i < end; ++i) {
            const int64_t place = blocks_.places[i];
            const double* b = belief.data() + (place / kBlock) * n * kBlock + place % kBlock;
            const double* U = potentials_.unary + i * K_;
            double sum = form_ == Form::kRatios ? 1 + b[0] : 0;
            if (form_ != Form::kRatios)
                for (int x = 0; x < K_; ++x) sum += b[x * kBlock];
            // The scale of the potentials: that of state 0 for ratios, otherwise the largest.
            double term = form_ == Form::kRatios ? U[0] : *std::max_element(U, U + K_);
            term += (1.0 - static_cast<double>(graph_.degree(i))) * std::log(sum);
            for (int64_t s = graph_.starts[i]; s < graph_.starts[i + 1]; ++s) {
                if (!graph_.is_first(i, s)) continue;
                const double pair = joint(place, blocks_.places[graph_.neighbours[s]],
                                          blocks_.slot(i, s - graph_.starts[i]), belief.data(), product.data());
                potentials_.table(graph_.slot_edges[s], table.data());
                term += std::log(pair);
                if (form_ == Form::kRatios) {
                    const Ising ising(table.data());  // joint leaves out exp(c − a − b − J)
                    term += ising.c - ising.a - ising.b - ising.J;
                } else if (form_ == Form::kTables) {
                    term += *std::max_element(table.begin(), table.end());
                }
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
