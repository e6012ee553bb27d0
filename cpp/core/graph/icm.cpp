#include "icm.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "../support/parallel.hpp"

namespace crfkit {

namespace {

// Fewer table entries than this are not worth starting threads for.
constexpr double kWorkOfAThread = 1 << 16;
constexpr int64_t kNodesBetweenPolls = 256;

class Modes {
public:
    Modes(const Graph& graph, const double* unary, const PairTables& pairs, int32_t* labels, int n_threads,
          std::function<bool()> poll)
        : graph_(graph),
          unary_(unary),
          pairs_(pairs),
          labels_(labels),
          n_threads_(n_threads),
          interrupt_(std::move(poll)),
          colours_(graph.colours()),
          rounding_(static_cast<size_t>(graph.n_nodes)),
          stale_(static_cast<size_t>(graph.n_nodes), 1) {
        measure_rounding();
    }

    // One visit of every node that may change, colour by colour; whether one changed.
    bool sweep() {
        std::atomic<bool> changed{false};
        for (size_t c = 0; c + 1 < colours_.bounds.size(); ++c) {
            const int32_t* members = colours_.members.data() + colours_.bounds[c];
            const int64_t n = colours_.bounds[c + 1] - colours_.bounds[c];
            const double work = static_cast<double>(n) * pairs_.K * (1.0 + 2.0 * graph_.n_edges / graph_.n_nodes);
            const int n_threads = static_cast<int>(std::clamp(work / kWorkOfAThread, 1.0, double(n_threads_)));
            run_threads(n_threads, [&](int thread) {
                if (visit(members, n * thread / n_threads, n * (thread + 1) / n_threads, thread))
                    changed.store(true, std::memory_order_relaxed);
            });
        }
        return changed;
    }

private:
    // The sums of two states differ by rounding alone if by less than this, with m the largest |U_i| and
    // m_ij the largest |P_ij|:  2ε (degree + 2) (m + Σ_j m_ij). Gains above it are gains in exact
    // arithmetic too, so the score ascends and the sweeps end.
    void measure_rounding() {
        const int64_t K = pairs_.K;
        double shared = 0.0;
        if (pairs_.scales) shared = largest(pairs_.tables, K * K);
        std::vector<double> sums(static_cast<size_t>(graph_.n_nodes), 0.0);
        for (int64_t e = 0; e < graph_.n_edges; ++e) {
            if (e % kNodesBetweenPolls == 0) interrupt_.check(0);
            const double m = pairs_.scales ? std::abs(pairs_.scales[e]) * shared : largest(pairs_.of(e), K * K);
            sums[graph_.edges[2 * e]] += m;
            sums[graph_.edges[2 * e + 1]] += m;
        }
        for (int64_t i = 0; i < graph_.n_nodes; ++i)
            rounding_[i] = 2 * std::numeric_limits<double>::epsilon() * static_cast<double>(graph_.degree(i) + 2) *
                           (largest(unary_ + i * K, K) + sums[i]);
    }

    static double largest(const double* values, int64_t n) {
        double m = 0.0;
        for (int64_t k = 0; k < n; ++k)
            if (std::isfinite(values[k])) m = std::max(m, std::abs(values[k]));
        return m;
    }

    bool visit(const int32_t* members, int64_t begin, int64_t end, int thread) {
        std::vector<double> scores(static_cast<size_t>(pairs_.K));  // [K]
        bool changed = false;
        for (int64_t m = begin; m < end; ++m) {
            if ((m - begin) % kNodesBetweenPolls == 0) interrupt_.check(thread);
            const int32_t i = members[m];
            if (!stale_[i]) continue;
            stale_[i] = 0;
            const int32_t best = mode(i, scores.data());
            if (best == labels_[i]) continue;
            labels_[i] = best;
            changed = true;
            for (int64_t s = graph_.starts[i]; s < graph_.starts[i + 1]; ++s)  // other threads may write the same 1
                __atomic_store_n(&stale_[graph_.neighbours[s]], uint8_t{1}, __ATOMIC_RELAXED);
        }
        return changed;
    }

    // argmax_k U_i(k) + Σ_j P_ij(k, y_j); the present state unless another is better.
    int32_t mode(int32_t i, double* scores) const {
        const int64_t K = pairs_.K;
        std::copy_n(unary_ + i * K, K, scores);
        for (int64_t s = graph_.starts[i]; s < graph_.starts[i + 1]; ++s) {
            const int64_t e = graph_.slot_edges[s], y = labels_[graph_.neighbours[s]];
            const double* table = pairs_.of(e);
            const double scale = pairs_.scale(e);
            if (graph_.is_first(i, s))
                for (int64_t k = 0; k < K; ++k) scores[k] += scale * table[k * K + y];
            else
                for (int64_t k = 0; k < K; ++k) scores[k] += scale * table[y * K + k];
        }
        const int32_t present = labels_[i];
        const auto best = static_cast<int32_t>(std::max_element(scores, scores + K) - scores);
        return scores[best] > scores[present] + rounding_[i] ? best : present;
    }

    const Graph& graph_;
    const double* unary_;  // [N][K]
    const PairTables pairs_;
    int32_t* labels_;  // [N]
    const int n_threads_;
    Interrupt interrupt_;
    const Graph::Colours colours_;
    std::vector<double> rounding_;  // [N]
    std::vector<uint8_t> stale_;    // [N] a neighbour has changed since the last visit
};

}  // namespace

int64_t iterate_modes(const Graph& graph, const double* unary, const PairTables& pairs, int32_t* labels, int n_threads,
                      std::function<bool()> poll) {
    Modes modes(graph, unary, pairs, labels, n_threads, std::move(poll));
    int64_t sweeps = 1;
    while (modes.sweep()) ++sweeps;
    return sweeps;
}

}  // namespace crfkit
