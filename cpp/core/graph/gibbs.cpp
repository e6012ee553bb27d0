#include "gibbs.hpp"

#include <algorithm>
#include <barrier>
#include <cmath>
#include <numeric>
#include <utility>

#include "../support/parallel.hpp"
#include "../support/random.hpp"

namespace crfkit {

// --- the plan

namespace {

std::vector<int32_t> ascending(int64_t n) {
    std::vector<int32_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    return order;
}

// The nodes outside the forest, then the others; both ascending.
std::vector<int32_t> outside_first(const GibbsForest& forest) {
    std::vector<int32_t> order = ascending(static_cast<int64_t>(forest.contains.size()));
    std::stable_partition(order.begin(), order.end(), [&](int32_t i) { return !forest.contains[i]; });
    return order;
}

}  // namespace

GibbsPlan::GibbsPlan(const Graph& graph)
    : graph(graph),
      colours(graph.colours()),
      first(graph, colours, ascending(graph.n_nodes)),
      second(graph, colours, outside_first(first)) {}

GibbsForest::GibbsForest(const Graph& graph, const Graph::Colours& colours, const std::vector<int32_t>& order)
    : contains(static_cast<size_t>(graph.n_nodes)) {
    choose(graph, order);
    order_trees(graph);
    outside.bounds.assign(1, 0);
    for (size_t c = 0; c + 1 < colours.bounds.size(); ++c) {
        for (int64_t m = colours.bounds[c]; m < colours.bounds[c + 1]; ++m)
            if (!contains[colours.members[m]]) outside.members.push_back(colours.members[m]);
        if (const auto end = static_cast<int64_t>(outside.members.size()); end > outside.bounds.back())
            outside.bounds.push_back(end);
    }
}

void GibbsForest::choose(const Graph& graph, const std::vector<int32_t>& order) {
    std::vector<int32_t> up = ascending(graph.n_nodes);  // union–find
    const auto root = [&](int32_t i) {
        while (up[i] != i) i = up[i] = up[up[i]];
        return i;
    };
    std::vector<int32_t> roots;
    for (const int32_t i : order) {
        roots.clear();
        for (int64_t s = graph.starts[i]; s < graph.starts[i + 1]; ++s)
            if (contains[graph.neighbours[s]]) roots.push_back(root(graph.neighbours[s]));
        std::sort(roots.begin(), roots.end());
        if (std::adjacent_find(roots.begin(), roots.end()) != roots.end()) continue;
        contains[i] = 1;
        for (const int32_t r : roots) up[r] = i;
    }
}

void GibbsForest::order_trees(const Graph& graph) {
    trees.assign(1, 0);
    std::vector<uint8_t> seen(static_cast<size_t>(graph.n_nodes));
    for (int32_t i = 0; i < graph.n_nodes; ++i) {
        if (!contains[i] || seen[i]) continue;
        const int64_t begin = trees.back();
        seen[i] = 1;
        members.push_back(i);
        parents.push_back(-1);
        parent_edges.push_back(-1);
        for (auto at = begin; at < static_cast<int64_t>(members.size()); ++at) {
            const int32_t node = members[at];
            for (int64_t s = graph.starts[node]; s < graph.starts[node + 1]; ++s) {
                const int32_t child = graph.neighbours[s];
                if (!contains[child] || seen[child]) continue;
                seen[child] = 1;
                members.push_back(child);
                parents.push_back(static_cast<int32_t>(at - begin));
                parent_edges.push_back(graph.slot_edges[s]);
            }
        }
        trees.push_back(static_cast<int64_t>(members.size()));
        largest = std::max(largest, trees.back() - begin);
    }
}

namespace {

constexpr int64_t LEAST_DRAWS = 2048;  // per thread and sweep: with fewer, waiting for each other costs more

// What all threads share.
struct Team {
    const GibbsField& field;
    const GibbsRun& run;
    int32_t* labels;  // [N][C]
    int n_threads;
    Interrupt interrupt;
    std::barrier<> barrier;

    Team(const GibbsField& field, const GibbsRun& run, int32_t* labels)
        : field(field),
          run(run),
          labels(labels),
          n_threads(static_cast<int>(std::clamp<int64_t>(field.plan.graph.n_nodes * run.n_chains / LEAST_DRAWS, 1,
                                                         std::max(1, run.n_threads)))),
          interrupt(run.poll),
          barrier(n_threads) {}
};

// A thread's place at the barrier: the others do not wait for one who has left, finished or thrown.
struct Seat {
    Team& team;
    ~Seat() { team.barrier.arrive_and_drop(); }
};

class Worker {
public:
    Worker(Team& team, int thread)
        : seat_{team},
          team_(team),
          thread_(thread),
          plan_(team.field.plan),
          graph_(team.field.plan.graph),
          K_(team.field.K),
          C_(team.run.n_chains),
          stream_(derive(derive(team.run.seed, 0), team.run.stream)),
          keys_(static_cast<size_t>(C_)),
          theta_(static_cast<size_t>(C_) * K_),
          row_(static_cast<size_t>(K_)) {
        if (!team.run.block) return;
        messages_.resize(static_cast<size_t>(std::max(plan_.first.largest, plan_.second.largest)) * K_);
        for (const int64_t sweep : {0, 1}) {
            const std::vector<int64_t>& trees = plan_.forest(sweep).trees;
            const auto cost = [&](int64_t unit) {
                const int64_t tree = unit / C_, chain = unit % C_;
                return static_cast<double>(trees[tree] * C_ + (chain ? (trees[tree + 1] - trees[tree]) * chain : 0));
            };
            units_[sweep] = split_by_cost((static_cast<int64_t>(trees.size()) - 1) * C_, team.n_threads, cost);
        }
    }

    void wait() { team_.barrier.arrive_and_wait(); }
    std::pair<int64_t, int64_t> share(int64_t begin, int64_t end) const {
        const int64_t n = end - begin;
        return {begin + n * thread_ / team_.n_threads, begin + n * (thread_ + 1) / team_.n_threads};
    }

    void start() {
        set_keys(0);
        const auto [begin, end] = share(0, graph_.n_nodes);
        for (int64_t i = begin; i < end; ++i)
            for (int c = 0; c < C_; ++c) {
                std::copy_n(team_.field.unary + i * K_, K_, row_.data());
                team_.labels[i * C_ + c] = draw(row_.data(), uniform(keys_[c], i));
            }
        wait();
    }

    // Sweep `number` ≥ 1, at the inverse temperature β.
    void sweep(int64_t number, double beta) {
        team_.interrupt.check(thread_);
        set_keys(static_cast<uint64_t>(number));
        const GibbsForest& forest = plan_.forest(number);
        if (team_.run.block) {
            const std::vector<int64_t>& units = units_[number % 2];
            for (int64_t unit = units[thread_]; unit < units[thread_ + 1]; ++unit)
                draw_tree(forest, unit / C_, static_cast<int>(unit % C_), beta);
            wait();
        }
        const Graph::Colours& colours = team_.run.block ? forest.outside : plan_.colours;
        for (size_t colour = 0; colour + 1 < colours.bounds.size(); ++colour) {
            const auto [begin, end] = share(colours.bounds[colour], colours.bounds[colour + 1]);
            for (int64_t m = begin; m < end; ++m) {
                const int64_t i = colours.members[m];
                set_conditionals(i, beta, theta_.data());
                for (int c = 0; c < C_; ++c)
                    team_.labels[i * C_ + c] = draw(theta_.data() + c * K_, uniform(keys_[c], i));
            }
            wait();
        }
    }

    // p [N][C][K]: p(y_i | rest) in each chain; nodes [N][K] += scale·p.
    void add_nodes(double* p, double scale, double* nodes) {
        const auto [begin, end] = share(0, graph_.n_nodes);
        for (int64_t i = begin; i < end; ++i) {
            double* own = p + i * C_ * K_;
            set_conditionals(i, 1.0, own);
            for (int c = 0; c < C_; ++c) {
                const double total = exponentiate(own + c * K_);
                for (int k = 0; k < K_; ++k) nodes[i * K_ + k] += scale * (own[c * K_ + k] /= total);
            }
        }
        wait();
    }

    void add_edges(const double* p, double scale, double* edges) {
        const auto [begin, end] = share(0, graph_.n_edges);
        for (int64_t e = begin; e < end; ++e) {
            const int64_t i = graph_.edges[2 * e], j = graph_.edges[2 * e + 1];
            double* table = edges + e * K_ * K_;
            for (int c = 0; c < C_; ++c) {
                const int32_t y_i = team_.labels[i * C_ + c], y_j = team_.labels[j * C_ + c];
                const double *p_i = p + (i * C_ + c) * K_, *p_j = p + (j * C_ + c) * K_;
                for (int k = 0; k < K_; ++k) {
                    table[k * K_ + y_j] += 0.5 * scale * p_i[k];
                    table[y_i * K_ + k] += 0.5 * scale * p_j[k];
                }
            }
        }
        wait();
    }

    // log_weights [G][C] += step · Σ_ij P_ij(y_i, y_j); a thread has some of the chains.
    void add_pair_scores(double step, double* log_weights) {
        const auto [begin, end] = share(0, C_);
        for (int64_t g = 0; g < graph_.n_graphs; ++g) {
            std::fill(theta_.begin(), theta_.begin() + C_, 0.0);
            for (int64_t e = graph_.edge_offsets[g]; e < graph_.edge_offsets[g + 1]; ++e) {
                const double* table = team_.field.tables + e * K_ * K_;
                const int32_t* y_i = team_.labels + int64_t{graph_.edges[2 * e]} * C_;
                const int32_t* y_j = team_.labels + int64_t{graph_.edges[2 * e + 1]} * C_;
                for (int64_t c = begin; c < end; ++c) theta_[c] += table[y_i[c] * K_ + y_j[c]];
            }
            for (int64_t c = begin; c < end; ++c) log_weights[g * C_ + c] += step * theta_[c];
        }
        wait();
    }

private:
    void set_keys(uint64_t sweep) {
        for (int c = 0; c < C_; ++c) keys_[c] = derive(derive(stream_, static_cast<uint64_t>(c)), sweep);
    }

    // θ = exp(θ − max θ); returns the sum, which is at least 1.
    double exponentiate(double* theta) const {
        const double top = *std::max_element(theta, theta + K_);
        double total = 0.0;
        for (int k = 0; k < K_; ++k) total += theta[k] = std::exp(theta[k] - top);
        return total;
    }

    // A state with probability ∝ exp(θ), by the uniform number u; never one of probability 0.
    int32_t draw(double* theta, double u) const {
        const double target = u * exponentiate(theta);
        double sum = 0.0;
        int32_t last = 0;
        for (int32_t k = 0; k < K_; ++k) {
            if (theta[k] > 0.0) last = k;
            if (target < (sum += theta[k])) return k;
        }
        return last;  // by rounding
    }

    // row(k) += P(k, y) or P(y, k), whichever way round the edge is.
    void add_table(double* row, int64_t edge, bool first, int32_t y) const {
        const double* table = team_.field.tables + edge * K_ * K_;
        if (first)
            for (int k = 0; k < K_; ++k) row[k] += table[k * K_ + y];
        else
            for (int k = 0; k < K_; ++k) row[k] += table[y * K_ + k];
    }

    // out [C][K] = U_i + β Σ_j P_ij(·, y_j)
    void set_conditionals(int64_t i, double beta, double* out) const {
        std::fill(out, out + C_ * K_, 0.0);
        for (int64_t s = graph_.starts[i]; s < graph_.starts[i + 1]; ++s) {
            const bool first = graph_.is_first(i, s);
            const int32_t* y = team_.labels + int64_t{graph_.neighbours[s]} * C_;
            for (int c = 0; c < C_; ++c) add_table(out + c * K_, graph_.slot_edges[s], first, y[c]);
        }
        const double* unary = team_.field.unary + i * K_;
        for (int c = 0; c < C_; ++c)
            for (int k = 0; k < K_; ++k) out[c * K_ + k] = unary[k] + beta * out[c * K_ + k];
    }

    // Forward filter, backward sample, given the nodes outside the forest: from the leaves
    //   m_i(k) = U_i(k) + β Σ_{j outside} P_ij(k, y_j) + Σ_{child c} log Σ_l exp(β P_ic(k, l) + m_c(l)),
    // then from the root  p(y_c = l | y_i) ∝ exp(β P_ic(y_i, l) + m_c(l)).
    void draw_tree(const GibbsForest& forest, int64_t tree, int c, double beta) {
        const int64_t begin = forest.trees[tree], size = forest.trees[tree + 1] - begin;
        const int32_t* nodes = forest.members.data() + begin;
        const int32_t* parents = forest.parents.data() + begin;
        const int32_t* edges = forest.parent_edges.data() + begin;
        for (int64_t at = 0; at < size; ++at) {
            const int64_t i = nodes[at];
            double* m = messages_.data() + at * K_;
            std::fill(m, m + K_, 0.0);
            for (int64_t s = graph_.starts[i]; s < graph_.starts[i + 1]; ++s)
                if (const int64_t j = graph_.neighbours[s]; !forest.contains[j])
                    add_table(m, graph_.slot_edges[s], graph_.is_first(i, s), team_.labels[j * C_ + c]);
            for (int k = 0; k < K_; ++k) m[k] = team_.field.unary[i * K_ + k] + beta * m[k];
        }
        for (int64_t at = size - 1; at > 0; --at) {
            double* up = messages_.data() + int64_t{parents[at]} * K_;
            for (int k = 0; k < K_; ++k) {
                set_row(at, edges[at], nodes[at], k, beta);
                const double top = *std::max_element(row_.begin(), row_.end());
                up[k] += top + std::log(exponentiate(row_.data()));
            }
        }
        for (int64_t at = 0; at < size; ++at) {
            if (at == 0)
                std::copy_n(messages_.data(), K_, row_.data());
            else
                set_row(at, edges[at], nodes[at], team_.labels[int64_t{nodes[parents[at]]} * C_ + c], beta);
            team_.labels[int64_t{nodes[at]} * C_ + c] = draw(row_.data(), uniform(keys_[c], nodes[at]));
        }
    }

    // row(l) = β P(k, l) + m(l), k the parent's state, l that of the node at this place.
    void set_row(int64_t at, int64_t edge, int64_t node, int32_t k, double beta) {
        std::fill(row_.begin(), row_.end(), 0.0);
        add_table(row_.data(), edge, graph_.edges[2 * edge] == node, k);
        for (int l = 0; l < K_; ++l) row_[l] = beta * row_[l] + messages_[at * K_ + l];
    }

    const Seat seat_;  // first: left last, and also when the rest cannot be made
    Team& team_;
    const int thread_;
    const GibbsPlan& plan_;
    const Graph& graph_;
    const int K_, C_;
    const uint64_t stream_;
    std::vector<uint64_t> keys_;     // [C] of this sweep
    std::vector<double> theta_;      // [C][K]
    std::vector<double> row_;        // [K]
    std::vector<double> messages_;   // [largest tree][K]
    std::vector<int64_t> units_[2];  // [threads+1] of (tree, chain), for each forest
};

template <class Work>
void run_team(Team& team, const Work& work) {
    run_threads(team.n_threads, [&](int thread) {
        Worker worker(team, thread);
        work(worker);
    });
}

}  // namespace

void gibbs_start(const GibbsField& field, const GibbsRun& run, int32_t* labels) {
    Team team(field, run, labels);
    run_team(team, [](Worker& worker) { worker.start(); });
}

void gibbs_sweeps(const GibbsField& field, const GibbsRun& run, int64_t first, int64_t n_sweeps, int32_t* labels) {
    Team team(field, run, labels);
    run_team(team, [&](Worker& worker) {
        for (int64_t s = 1; s <= n_sweeps; ++s) worker.sweep(first + s, 1.0);
    });
}

void gibbs_marginals(const GibbsField& field, const GibbsRun& run, int64_t first, int64_t n_sweeps, int64_t thin,
                     int32_t* labels, double* nodes, double* edges) {
    const Graph& graph = field.plan.graph;
    std::fill_n(nodes, graph.n_nodes * field.K, 0.0);
    std::fill_n(edges, graph.n_edges * field.K * field.K, 0.0);
    std::vector<double> p(static_cast<size_t>(graph.n_nodes) * run.n_chains * field.K);  // [N][C][K]
    const double scale = 1.0 / (static_cast<double>(n_sweeps / thin) * run.n_chains);
    Team team(field, run, labels);
    run_team(team, [&](Worker& worker) {
        for (int64_t s = 1; s <= n_sweeps; ++s) {
            worker.sweep(first + s, 1.0);
            if (s % thin != 0) continue;
            worker.add_nodes(p.data(), scale, nodes);
            worker.add_edges(p.data(), scale, edges);
        }
    });
}

void gibbs_annealed(const GibbsField& field, const GibbsRun& run, int64_t n_steps, double* log_weights) {
    const Graph& graph = field.plan.graph;
    std::fill_n(log_weights, graph.n_graphs * run.n_chains, 0.0);
    std::vector<int32_t> labels(static_cast<size_t>(graph.n_nodes) * run.n_chains);  // [N][C]
    const double step = 1.0 / static_cast<double>(n_steps);
    Team team(field, run, labels.data());
    run_team(team, [&](Worker& worker) {
        worker.start();
        for (int64_t t = 1; t <= n_steps; ++t) {
            worker.add_pair_scores(step, log_weights);
            if (t < n_steps) worker.sweep(t, static_cast<double>(t) * step);
        }
    });
}

}  // namespace crfkit
