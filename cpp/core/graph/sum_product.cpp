#include "sum_product.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "block_sweeps.hpp"

namespace crfkit {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// At every node the range of its unary potentials and those of its edges' tables add up to kReach at most. A message,
// whose mean is one (or which is a ratio), is a mixture of a table's rows, so it stays within the range of that table;
// a belief therefore within exp(±kReach). joint() multiplies two cavities, which lack one edge, with that edge's table:
// within exp(±2·kReach), and exp(709) is the largest double.
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
    else if (is_shared(potentials, graph.n_edges))
        form_ = Form::kShared;
    wide_ = form_ == Form::kRatios || form_ == Form::kTables ? K_ - 1 : K_;
    messages_ = Buffer(blocks_.n_rows() * kBlock * wide_);
    prepare(n_threads);
    if (!fits_) return;
    std::fill_n(messages_.data(), messages_.size(), 1.0);
}

bool SumProduct::start_from(const SumProduct& other) {
    if (&other.blocks_ != &blocks_ || other.form_ != form_ || other.K_ != K_ || !other.fits_) return false;
    std::copy_n(other.messages_.data(), messages_.size(), messages_.data());
    return true;
}

void SumProduct::prepare(int n_threads) {
    const int64_t n_slots = blocks_.n_rows() * kBlock, n_places = blocks_.n_blocks() * kBlock;
    const bool own = form_ == Form::kTables;
    unary_ = Buffer(n_places * (form_ == Form::kRatios ? 1 : K_));
    scales_ = Buffer(own ? n_places : 0);
    tables_ = Buffer(form_ == Form::kShared ? K_ * K_ : n_slots * (own ? wide_ * wide_ : 1));
    // Ghosts keep this: a coupling of nothing, or a table of ones.
    std::fill_n(tables_.data(), tables_.size(), own ? 1.0 : 0.0);
    messages_.zero();
    // Ratios and Potts couplings are their own range.
    Buffer reach(own ? n_slots : 1);
    reach.zero();
    if (form_ == Form::kShared) reach.data()[0] = shared_table();
    over(form_ == Form::kShared ? 0 : graph_.n_edges, 2048, n_threads, [&](int64_t begin, int64_t end) {
        std::vector<double> table(static_cast<size_t>(K_ * K_));
        for (int64_t e = begin; e < end; ++e) prepare_edge(e, table.data(), reach.data());
    });
    std::atomic<bool> fits{true};
    over(blocks_.n_blocks(), 256, n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b)
            if (!prepare_block(b, reach.data())) {
                fits = false;
                return;
            }
    });
    fits_ = fits;
}

double SumProduct::shared_table() {
    potentials_.table(0, tables_.data());
    const auto [least, most] = std::minmax_element(tables_.data(), tables_.data() + K_ * K_);
    const double top = *most, range = top - *least;
    for (int x = 0; x < K_ * K_; ++x) tables_.data()[x] = std::exp(tables_.data()[x] - top);
    return range;
}

const char* SumProduct::form() const {
    switch (form_) {
        case Form::kRatios: return "ratios";
        case Form::kPotts: return "potts";
        case Form::kShared: return "shared";
        default: return "tables";
    }
}

void SumProduct::prepare_edge(int64_t edge, double* table, double* reach) {
    const int64_t first = blocks_.edge_slots[edge], second = blocks_.targets[first];
    if (form_ == Form::kPotts) {
        tables_.data()[first] = tables_.data()[second] = potentials_.coefficients[edge];
        return;
    }
    potentials_.table(edge, table);
    if (form_ == Form::kRatios) {
        const Ising ising(table);
        tables_.data()[first] = tables_.data()[second] = 2 * ising.J;
        messages_.data()[first] = 2 * ising.a;
        messages_.data()[second] = 2 * ising.b;
        return;
    }
    // P(x, y) = P(0, 0) + a(x) + b(y) + R(x, y), where a, b and R of state 0 are 0.
    const int n = wide_;
    const auto [lowest, highest] = std::minmax_element(table, table + K_ * K_);
    const bool finite = *highest - *lowest < kInfinity;
    const double corner = table[0];
    const auto field = [&](int64_t slot, int x) -> double& {
        return messages_.data()[((slot / kBlock) * n + x - 1) * kBlock + slot % kBlock];
    };
    for (int x = 1; x < K_; ++x) {
        field(first, x) = table[x * K_] - corner;
        field(second, x) = table[x] - corner;
    }
    double least = 0, most = 0;
    for (int x = 1; x < K_; ++x)
        for (int y = 1; y < K_; ++y) {
            double& R = table[(x - 1) * n + y - 1];  // written where it has been read
            R = (table[x * K_ + y] - corner) - field(first, x) - field(second, y);
            least = std::min(least, R);
            most = std::max(most, R);
        }
    reach[first] = reach[second] = finite ? most - least : kInfinity;
    if (!(reach[first] <= kReach)) return;
    kernels_.exponentials(table, n * n);
    const auto at = [&](int64_t slot) { return tables_.data() + (slot / kBlock) * n * n * kBlock + slot % kBlock; };
    for (int x = 0; x < n; ++x)
        for (int y = 0; y < n; ++y)
            at(first)[(x * n + y) * kBlock] = at(second)[(y * n + x) * kBlock] = table[x * n + y];
}

bool SumProduct::prepare_block(int64_t block, const double* reach) {
    const int64_t begin = blocks_.first_rows[block] * kBlock, end = blocks_.first_rows[block + 1] * kBlock;
    double total[kBlock] = {};
    const double* ranges = form_ == Form::kTables ? reach : tables_.data();
    if (form_ == Form::kShared)
        std::fill_n(total, kBlock, reach[0] * blocks_.degrees[block]);
    else
        for (int64_t s = begin; s < end; ++s) total[s % kBlock] += std::abs(ranges[s]);
    const int n = form_ == Form::kRatios ? 1 : K_;
    double* unary = unary_.data() + block * n * kBlock;
    std::vector<double> u(static_cast<size_t>(K_));
    for (int lane = 0; lane < kBlock; ++lane) {
        const int64_t i = blocks_.nodes[block * kBlock + lane];
        for (int x = 0; x < K_; ++x) u[x] = i < 0 ? 0.0 : potentials_.unary[i * K_ + x];
        if (form_ == Form::kRatios || form_ == Form::kTables)  // what the edges say of their ends
            for (int64_t row = begin / kBlock; row < end / kBlock; ++row)
                for (int x = 1; x < K_; ++x) u[x] += messages_.data()[(row * wide_ + x - 1) * kBlock + lane];
        double range = 0;
        if (form_ == Form::kRatios) {
            unary[lane] = u[1] - u[0];
            range = std::abs(unary[lane]);
        } else {
            const double top = *std::max_element(u.begin(), u.end());
            for (int x = 0; x < K_; ++x) {
                unary[x * kBlock + lane] = std::exp(u[x] - top);
                if (u[x] > -kInfinity) range = std::max(range, top - u[x]);
            }
            if (form_ == Form::kTables) scales_.data()[block * kBlock + lane] = top;
        }
        if (!(range + total[lane] <= kReach)) return false;
    }
    if (form_ == Form::kRatios) kernels_.exponentials(unary, kBlock);
    if (form_ == Form::kRatios || form_ == Form::kPotts) kernels_.exponentials(tables_.data() + begin, end - begin);
    return true;
}

Outcome SumProduct::run(const Sweeps& sweeps, const std::function<bool()>& poll) {
    if (blocks_.n_rows() == 0) return {0, 0.0, true};
    const auto kernel = form_ == Form::kRatios   ? kernels_.ratios
                        : form_ == Form::kPotts  ? kernels_.potts
                        : form_ == Form::kShared ? kernels_.shared
                                                 : kernels_.tables;
    MessageTask task{};
    task.targets = blocks_.targets.data();
    task.n_states = K_;
    task.unary = unary_.data();
    task.tables = tables_.data();
    return sweep_blocks(blocks_, kernel, task, messages_, sweeps, kMeasureEvery, poll);
}

void SumProduct::beliefs(double* out, int n_threads) const {
    const int n = form_ == Form::kRatios ? 1 : K_;
    over(blocks_.n_blocks(), 512, n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
            double* belief = out + b * n * kBlock;
            std::copy_n(unary_.data() + b * n * kBlock, n * kBlock, belief);
            for (int64_t s = blocks_.first_rows[b] * kBlock; s < blocks_.first_rows[b + 1] * kBlock; ++s) {
                const int64_t from = blocks_.targets[s];
                const double* message = messages_.data() + (from / kBlock) * wide_ * kBlock + from % kBlock;
                for (int x = 0; x < wide_; ++x) belief[(n - wide_ + x) * kBlock + s % kBlock] *= message[x * kBlock];
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
double SumProduct::joint(int64_t edge, const double* beliefs, double* out) const {
    const int64_t slot = blocks_.edge_slots[edge], reverse = blocks_.targets[slot];
    const int64_t i = blocks_.places[graph_.edges[2 * edge]], j = blocks_.places[graph_.edges[2 * edge + 1]];
    if (form_ == Form::kRatios) {
        const double R = beliefs[i] / messages_.data()[reverse];
        const double S = beliefs[j] / messages_.data()[slot];
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
    const int64_t row = slot / kBlock, lane = slot % kBlock;
    const auto table = [&](int x, int y) {
        if (form_ == Form::kShared) return tables_.data()[x * K_ + y];
        if (form_ == Form::kPotts) return x == y ? tables_.data()[slot] : 1.0;
        if (x == 0 || y == 0) return 1.0;
        return tables_.data()[((row * wide_ + x - 1) * wide_ + y - 1) * kBlock + lane];
    };
    double sum = 0;
    for (int x = 0; x < K_; ++x) {
        const double first = belief(i, x) / arrived(slot, x);
        for (int y = 0; y < K_; ++y) {
            out[x * K_ + y] = first * table(x, y) * (belief(j, y) / arrived(reverse, y));
            sum += out[x * K_ + y];
        }
    }
    return sum;
}

void SumProduct::edges(double* out, int n_threads) const {
    const int n = form_ == Form::kRatios ? 1 : K_, size = K_ * K_;
    Buffer belief(blocks_.n_blocks() * n * kBlock);
    beliefs(belief.data(), n_threads);
    over(graph_.n_edges, 512, n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t e = begin; e < end; ++e) {
            const double scale = 1 / joint(e, belief.data(), out + e * size);
            for (int x = 0; x < size; ++x) out[e * size + x] *= scale;
        }
    });
}

// log Z = Σ_i (1 − d_i)·log Z_i + Σ_ij log Z_ij, with Z_i and Z_ij the sums of the unnormalised beliefs: it does
// not depend on how messages are scaled, and it is stationary in them at a fixed point.
void SumProduct::log_z(double* out, int n_threads) const {
    const int n = form_ == Form::kRatios ? 1 : K_, size = K_ * K_;
    Buffer belief(blocks_.n_blocks() * n * kBlock);
    beliefs(belief.data(), n_threads);
    Buffer node_terms(graph_.n_nodes), edge_terms(graph_.n_edges);
    over(graph_.n_nodes, 512, n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t place = blocks_.places[i];
            const double* b = belief.data() + (place / kBlock) * n * kBlock + place % kBlock;
            const double* U = potentials_.unary + i * K_;
            double sum = form_ == Form::kRatios ? 1 : 0;
            for (int x = 0; x < n; ++x) sum += b[x * kBlock];
            // The scale of the potentials: that of state 0 for ratios, otherwise the largest.
            const double scale = form_ == Form::kRatios   ? U[0]
                                 : form_ == Form::kTables ? scales_.data()[place]
                                                          : *std::max_element(U, U + K_);
            node_terms.data()[i] = scale + (1.0 - static_cast<double>(graph_.degree(i))) * std::log(sum);
        }
    });
    over(graph_.n_edges, 512, n_threads, [&](int64_t begin, int64_t end) {
        std::vector<double> table(static_cast<size_t>(size)), product(static_cast<size_t>(size));
        for (int64_t e = begin; e < end; ++e) {
            double term = std::log(joint(e, belief.data(), product.data()));
            if (form_ == Form::kRatios) {
                potentials_.table(e, table.data());
                const Ising ising(table.data());  // joint leaves out exp(c − a − b − J)
                term += ising.c - ising.a - ising.b - ising.J;
            } else if (form_ == Form::kShared) {
                potentials_.table(e, table.data());
                term += *std::max_element(table.begin(), table.end());
            } else if (form_ == Form::kTables) {
                potentials_.table(e, table.data());
                term += table[0];
            }
            edge_terms.data()[e] = term;
        }
    });
    graph_.sum_by_graph(node_terms.data(), edge_terms.data(), out);
}

}  // namespace crfkit
