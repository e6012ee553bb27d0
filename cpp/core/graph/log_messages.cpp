#include "log_messages.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../support/indexed_heap.hpp"

namespace crfkit {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double log_sum_exp(const double* x, int n, int stride = 1) {
    double top = -kInfinity;
    for (int k = 0; k < n; ++k) top = std::max(top, x[k * stride]);
    if (top == -kInfinity) return top;
    double sum = 0;
    for (int k = 0; k < n; ++k) sum += std::exp(x[k * stride] - top);
    return top + std::log(sum);
}

double largest(const double* x, int n, int stride = 1) {
    double top = -kInfinity;
    for (int k = 0; k < n; ++k) top = std::max(top, x[k * stride]);
    return top;
}

}  // namespace

LogMessages::LogMessages(const Graph& graph, const PotentialsView& potentials, const double* rho, bool maximum)
    : graph_(graph),
      potentials_(potentials),
      rho_(rho),
      maximum_(maximum),
      K_(potentials.n_states),
      reverse_(static_cast<size_t>(2 * graph.n_edges)),
      edge_slots_(static_cast<size_t>(graph.n_edges)),
      messages_(2 * graph.n_edges * potentials.n_states) {
    std::vector<int64_t> next(graph.starts.begin(), graph.starts.end() - 1);
    for (int64_t e = 0; e < graph.n_edges; ++e) {
        const int64_t a = next[graph.edges[2 * e]]++, b = next[graph.edges[2 * e + 1]]++;
        edge_slots_[e] = a;
        reverse_[a] = b;
        reverse_[b] = a;
    }
    messages_.zero();
}

bool LogMessages::start_from(const LogMessages& other) {
    if (&other.graph_ != &graph_ || other.K_ != K_ || other.maximum_ != maximum_) return false;
    std::copy_n(other.messages_.data(), messages_.size(), messages_.data());
    return true;
}

void LogMessages::belief(int64_t node, const double* messages, double* out) const {
    std::copy_n(potentials_.unary + node * K_, K_, out);
    for (int64_t s = graph_.starts[node]; s < graph_.starts[node + 1]; ++s) {
        const double rho = weight(graph_.slot_edges[s]);
        for (int x = 0; x < K_; ++x) out[x] += rho * messages[s * K_ + x];
    }
}

void LogMessages::message(int64_t slot, bool first, const double* belief, const double* back, double* out,
                          double* work) const {
    const int64_t e = graph_.slot_edges[slot];
    const double scale = 1 / weight(e);
    double *table = work, *column = work + K_ * K_;
    potentials_.table(e, table);
    for (int y = 0; y < K_; ++y) {
        for (int x = 0; x < K_; ++x)
            column[x] = scale * (first ? table[x * K_ + y] : table[y * K_ + x]) + belief[x] - back[x];
        out[y] = maximum_ ? largest(column, K_) : log_sum_exp(column, K_);
    }
    const double top = largest(out, K_);
    for (int y = 0; y < K_; ++y) out[y] -= top;
}

double LogMessages::send(int64_t node, const double* from, double* to, double damping, double* work) const {
    double *own = work, *fresh = work + K_, *rest = work + 2 * K_;
    belief(node, from, own);
    double change = 0;
    for (int64_t s = graph_.starts[node]; s < graph_.starts[node + 1]; ++s) {
        message(s, graph_.is_first(node, s), own, from + s * K_, fresh, rest);
        const int64_t target = reverse_[s] * K_;
        for (int y = 0; y < K_; ++y) {
            const double old = from[target + y];
            const double mixed = damping * old + (1 - damping) * fresh[y];
            change = std::max(change, std::abs(mixed - old));
            to[target + y] = mixed;
        }
    }
    return change;
}

Outcome LogMessages::run(const Sweeps& sweeps, const std::function<bool()>& poll) {
    if (graph_.n_edges == 0) return {0, 0.0, true};
    Graph::Colours colours;
    if (sweeps.flooding) {
        colours.bounds = {0, graph_.n_nodes};
        colours.members.resize(static_cast<size_t>(graph_.n_nodes));
        for (int64_t i = 0; i < graph_.n_nodes; ++i) colours.members[i] = static_cast<int32_t>(i);
    } else {
        colours = graph_.colours();
    }
    const int64_t n_phases = static_cast<int64_t>(colours.bounds.size()) - 1;
    const int n_threads =
        static_cast<int>(std::clamp<int64_t>(2 * graph_.n_edges / n_phases / 128, 1, std::max(sweeps.n_threads, 1)));
    Buffer other;
    if (sweeps.flooding) {
        other = Buffer(messages_.size());
        std::copy_n(messages_.data(), messages_.size(), other.data());
    }
    std::vector<std::vector<double>> work(static_cast<size_t>(n_threads));
    for (auto& space : work) space.resize(static_cast<size_t>(K_ * K_ + 3 * K_));
    const Outcome outcome =
        run_sweeps(sweeps, static_cast<int>(n_phases), n_threads, 1, poll, [&](int thread, int sweep, int phase, bool) {
            double *from = messages_.data(), *to = sweeps.flooding ? other.data() : from;
            if (sweep % 2 == 0) std::swap(from, to);
            const int64_t begin = colours.bounds[phase], n = colours.bounds[phase + 1] - begin;
            double change = 0;
            for (int64_t m = n * thread / n_threads; m < n * (thread + 1) / n_threads; ++m)
                change =
                    std::max(change, send(colours.members[begin + m], from, to, sweeps.damping, work[thread].data()));
            return change;
        });
    if (sweeps.flooding && outcome.iterations % 2 == 1) messages_ = std::move(other);
    return outcome;
}

Outcome LogMessages::run_residual(const Sweeps& sweeps, const std::function<bool()>& poll) {
    const int64_t n_slots = 2 * graph_.n_edges;
    if (n_slots == 0) return {0, 0.0, true};
    // fresh[s]: what would arrive at slot s now; the heap knows by how much it differs from what is there.
    Buffer fresh(n_slots * K_);
    IndexedHeap heap(n_slots);
    std::vector<double> own(static_cast<size_t>(K_)), work(static_cast<size_t>(K_ * K_ + K_));
    const auto refresh = [&](int64_t node, int64_t except) {
        belief(node, messages_.data(), own.data());
        for (int64_t s = graph_.starts[node]; s < graph_.starts[node + 1]; ++s) {
            if (s == except) continue;
            const int64_t target = reverse_[s];
            double *now = messages_.data() + target * K_, *next = fresh.data() + target * K_;
            message(s, graph_.is_first(node, s), own.data(), messages_.data() + s * K_, next, work.data());
            double change = 0;
            for (int y = 0; y < K_; ++y) {
                change = std::max(change, std::abs(next[y] - now[y]));
                next[y] = sweeps.damping * now[y] + (1 - sweeps.damping) * next[y];
            }
            heap.set(target, change);
        }
    };
    for (int64_t i = 0; i < graph_.n_nodes; ++i) refresh(i, -1);
    std::vector<int32_t> receivers(static_cast<size_t>(n_slots));  // the node of a slot
    for (int64_t i = 0; i < graph_.n_nodes; ++i)
        for (int64_t s = graph_.starts[i]; s < graph_.starts[i + 1]; ++s) receivers[s] = static_cast<int32_t>(i);
    const int64_t limit = static_cast<int64_t>(sweeps.max_iterations) * n_slots;
    int64_t updates = 0;
    while (updates < limit && heap.largest() > sweeps.tolerance) {
        if (updates % 4096 == 0 && poll && poll()) throw Interrupted();
        const int64_t slot = heap.top();
        std::copy_n(fresh.data() + slot * K_, K_, messages_.data() + slot * K_);
        ++updates;
        // With ρ = 1 the message back along the edge does not depend on the one that arrived.
        refresh(receivers[slot], rho_ ? -1 : slot);
        if (sweeps.damping > 0)
            refresh(receivers[reverse_[slot]], -1);
        else
            heap.set(slot, 0.0);
    }
    const double residual = heap.largest();
    return {static_cast<int>((updates + n_slots - 1) / n_slots), residual, residual <= sweeps.tolerance};
}

void LogMessages::pair(int64_t edge, const double* belief_i, const double* belief_j, double* out) const {
    const int64_t slot = edge_slots_[edge];
    const double *from_j = messages_.data() + slot * K_, *from_i = messages_.data() + reverse_[slot] * K_;
    const double scale = 1 / weight(edge);
    potentials_.table(edge, out);
    for (int x = 0; x < K_; ++x)
        for (int y = 0; y < K_; ++y)
            out[x * K_ + y] = scale * out[x * K_ + y] + belief_i[x] - from_j[x] + belief_j[y] - from_i[y];
}

void LogMessages::nodes(double* out, int n_threads) const {
    over(graph_.n_nodes, 256, n_threads, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            double* p = out + i * K_;
            belief(i, messages_.data(), p);
            const double total = log_sum_exp(p, K_);
            for (int x = 0; x < K_; ++x) p[x] = std::exp(p[x] - total);
        }
    });
}

void LogMessages::states(int32_t* out, int n_threads) const {
    over(graph_.n_nodes, 256, n_threads, [&](int64_t begin, int64_t end) {
        std::vector<double> b(static_cast<size_t>(K_));
        for (int64_t i = begin; i < end; ++i) {
            belief(i, messages_.data(), b.data());
            out[i] = static_cast<int32_t>(std::max_element(b.begin(), b.end()) - b.begin());
        }
    });
}

void LogMessages::edges(double* out, int n_threads) const {
    over(graph_.n_edges, 256, n_threads, [&](int64_t begin, int64_t end) {
        std::vector<double> first(static_cast<size_t>(K_)), second(static_cast<size_t>(K_));
        for (int64_t e = begin; e < end; ++e) {
            belief(graph_.edges[2 * e], messages_.data(), first.data());
            belief(graph_.edges[2 * e + 1], messages_.data(), second.data());
            double* p = out + e * K_ * K_;
            pair(e, first.data(), second.data(), p);
            const double total = log_sum_exp(p, K_ * K_);
            for (int x = 0; x < K_ * K_; ++x) p[x] = std::exp(p[x] - total);
        }
    });
}

void LogMessages::log_z(double* out, int n_threads) const {
    Buffer node_terms(graph_.n_nodes), edge_terms(graph_.n_edges);
    over(graph_.n_nodes, 256, n_threads, [&](int64_t begin, int64_t end) {
        std::vector<double> b(static_cast<size_t>(K_));
        for (int64_t i = begin; i < end; ++i) {
            belief(i, messages_.data(), b.data());
            double count = 1;
            for (int64_t s = graph_.starts[i]; s < graph_.starts[i + 1]; ++s) count -= weight(graph_.slot_edges[s]);
            node_terms.data()[i] = count * log_sum_exp(b.data(), K_);
        }
    });
    over(graph_.n_edges, 256, n_threads, [&](int64_t begin, int64_t end) {
        std::vector<double> first(static_cast<size_t>(K_)), second(static_cast<size_t>(K_));
        std::vector<double> table(static_cast<size_t>(K_ * K_));
        for (int64_t e = begin; e < end; ++e) {
            belief(graph_.edges[2 * e], messages_.data(), first.data());
            belief(graph_.edges[2 * e + 1], messages_.data(), second.data());
            pair(e, first.data(), second.data(), table.data());
            edge_terms.data()[e] = weight(e) * log_sum_exp(table.data(), K_ * K_);
        }
    });
    graph_.sum_by_graph(node_terms.data(), edge_terms.data(), out);
}

}  // namespace crfkit
