#include "junction.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../support/checks.hpp"
#include "../support/compensated_sum.hpp"
#include "../support/counter_random.hpp"
#include "../support/parallel.hpp"

namespace crfkit {

namespace {

// Walks through a clique's table along with a smaller one: run(index, small index, length, small stride).
template <class Run>
void walk(const std::vector<Axis>& all, CliqueTables::Range range, const Run& run) {
    const Axis* axes = all.data() + range.begin;
    const int64_t outer = range.end - range.begin - 1;
    const Axis inner = axes[outer];
    int64_t count[CliqueTables::kMostAxes] = {};
    for (int64_t index = 0, small = 0;;) {
        run(index, small, inner.extent, inner.stride);
        index += inner.extent;
        int64_t a = outer;
        while (--a >= 0) {
            small += axes[a].stride;
            if (++count[a] < axes[a].extent) break;
            small -= axes[a].extent * axes[a].stride;
            count[a] = 0;
        }
        if (a < 0) return;
    }
}

// large(x, z) += small(x)
void spread(const std::vector<Axis>& axes, CliqueTables::Range range, const double* small, double* large) {
    walk(axes, range, [=](int64_t i, int64_t j, int64_t length, int64_t stride) {
        for (int64_t q = 0; q < length; ++q) large[i + q] += small[j + q * stride];
    });
}

// small(x) += Σ_z large(x, z)
void gather(const std::vector<Axis>& axes, CliqueTables::Range range, const double* large, double* small) {
    walk(axes, range, [=](int64_t i, int64_t j, int64_t length, int64_t stride) {
        if (stride == 0) {
            double sum = 0.0;
            for (int64_t q = 0; q < length; ++q) sum += large[i + q];
            small[j] += sum;
        } else {
            for (int64_t q = 0; q < length; ++q) small[j + q * stride] += large[i + q];
        }
    });
}

// One thread's tables; one graph at a time.
class Workspace {
public:
    Workspace(const JunctionProblem& problem, Interrupt& interrupt, int thread)
        : problem_(problem), interrupt_(interrupt), thread_(thread), K_(problem.plan.K) {}

    // From the first clique to the last. With b = U_v + Σ_edges P + Σ_children m over the clique (s, k) of node v,
    //   sum: m(s) = log Σ_k exp b(s, k), and the table becomes p(y_v = k | y_S = s) = exp(b(s, k) - m(s));
    //   max: m(s) = max_k b(s, k), and best(s), the lowest k that has it, is left at the head of each row.
    // Messages are kept at maximum 0, and never are -inf, since P is finite and every node has a possible state.
    // Returns log Z, or the highest score.
    template <bool kMax>
    double collect(int64_t graph) {
        const CliqueTables& shape = enter(graph);
        CompensatedSum total;
        for (const auto& clique : shape.cliques) {
            interrupt_.check(thread_);
            double* table = tables_.data() + clique.offset;
            for (int64_t e = clique.edges.begin; e < clique.edges.end; ++e)
                spread(shape.axes, shape.edges[e].axes, edge_row(problem_.tables, shape.edges[e].edge), table);
            double shift = -std::numeric_limits<double>::infinity();
            for (int64_t s = 0; s < clique.rows; ++s) {
                double* row = table + s * K_;
                message_[s] = kMax ? reduce_max(row) : reduce_sum(row);
                shift = std::max(shift, message_[s]);
            }
            total += shift;
            if (clique.parent < 0) continue;
            for (int64_t s = 0; s < clique.rows; ++s) message_[s] -= shift;
            spread(shape.axes, clique.up, message_.data(), tables_.data() + shape.cliques[clique.parent].offset);
        }
        return total.value();
    }

    // After collect<false>, from the last clique to the first: p(y_S, y_v) = p(y_S) p(y_v | y_S), where p(y_S) is
    // summed out of the parent's. nodes: of this graph [n][K]; edges: of all, or null.
    void distribute(int64_t graph, double* nodes, double* edges) {
        const CliqueTables& shape = shape_of(graph);
        for (auto clique = shape.cliques.rbegin(); clique != shape.cliques.rend(); ++clique) {
            interrupt_.check(thread_);
            double* table = tables_.data() + clique->offset;
            if (clique->parent >= 0) {
                std::fill_n(message_.begin(), clique->rows, 0.0);
                gather(shape.axes, clique->up, tables_.data() + shape.cliques[clique->parent].offset, message_.data());
                for (int64_t s = 0; s < clique->rows; ++s)
                    for (int k = 0; k < K_; ++k) table[s * K_ + k] *= message_[s];
            }
            double* node = nodes + int64_t{clique->node} * K_;
            std::fill_n(node, K_, 0.0);
            for (int64_t s = 0; s < clique->rows; ++s)
                for (int k = 0; k < K_; ++k) node[k] += table[s * K_ + k];
            if (!edges) continue;
            for (int64_t e = clique->edges.begin; e < clique->edges.end; ++e) {
                double* edge = edge_row(edges, shape.edges[e].edge);
                std::fill_n(edge, K_ * K_, 0.0);
                gather(shape.axes, shape.edges[e].axes, table, edge);
            }
        }
    }

    // From the last clique to the first, choose(node, row of the table given the states of S) → state.
    template <class Choose>
    void assign(int64_t graph, int32_t* labels, const Choose& choose) {
        const CliqueTables& shape = shape_of(graph);
        int32_t* y = labels + first_node_;
        for (auto clique = shape.cliques.rbegin(); clique != shape.cliques.rend(); ++clique) {
            int64_t s = 0;
            for (int64_t m = clique->members.begin; m < clique->members.end; ++m) s = s * K_ + y[shape.members[m]];
            y[clique->node] = choose(first_node_ + clique->node, tables_.data() + clique->offset + s * K_);
        }
    }

    // Fixes a node of the graphs that follow; -1: none.
    void clamp(int64_t node, int state) {
        clamped_ = node;
        state_ = state;
    }

    void check() { interrupt_.check(thread_); }

private:
    const CliqueTables& shape_of(int64_t graph) const {
        return problem_.plan.shapes[problem_.plan.elimination.shape_of[graph]];
    }

    template <class T>
    T* edge_row(T* edges, int64_t edge) const {
        return edges + (first_edge_ + edge) * K_ * K_;
    }

    // Makes room for a graph, and puts U_v into each row.
    const CliqueTables& enter(int64_t graph) {
        const CliqueTables& shape = shape_of(graph);
        first_node_ = problem_.plan.elimination.graph.node_offsets[graph];
        first_edge_ = problem_.plan.elimination.graph.edge_offsets[graph];
        if (static_cast<int64_t>(tables_.size()) < shape.size) tables_.resize(static_cast<size_t>(shape.size));
        if (static_cast<int64_t>(message_.size()) < shape.max_rows)
            message_.resize(static_cast<size_t>(shape.max_rows));
        for (const auto& clique : shape.cliques) {
            const int64_t node = first_node_ + clique.node;
            const double* U = problem_.unary + node * K_;
            double* table = tables_.data() + clique.offset;
            for (int64_t s = 0; s < clique.rows; ++s) std::copy_n(U, K_, table + s * K_);
            if (node != clamped_) continue;
            for (int64_t i = 0; i < clique.rows * K_; ++i)
                if (i % K_ != state_) table[i] = -std::numeric_limits<double>::infinity();
        }
        return shape;
    }

    double reduce_sum(double* row) const {
        const double top = *std::max_element(row, row + K_);
        double sum = 0.0;
        for (int k = 0; k < K_; ++k) sum += row[k] = std::exp(row[k] - top);
        for (int k = 0; k < K_; ++k) row[k] /= sum;
        return top + std::log(sum);
    }

    double reduce_max(double* row) const {
        const double* best = std::max_element(row, row + K_);
        const double top = *best;
        row[0] = static_cast<double>(best - row);
        return top;
    }

    const JunctionProblem& problem_;
    Interrupt& interrupt_;
    const int thread_;
    const int K_;
    std::vector<double> tables_;   // of all cliques of the graph
    std::vector<double> message_;  // [rows] from or to a parent
    int64_t first_node_ = 0, first_edge_ = 0;
    int64_t clamped_ = -1;
    int state_ = 0;
};

// Runs work(workspace, item) over n items, split among the threads by cumulative cost.
template <class Cost, class Work>
void for_items(const JunctionProblem& problem, int64_t n, const Cost& cost, const Work& work) {
    const int n_threads = static_cast<int>(std::clamp<int64_t>(n, 1, problem.n_threads));
    const auto bounds = split_by_cost(n, n_threads, cost);
    Interrupt interrupt(problem.poll);
    run_threads(n_threads, [&](int thread) {
        Workspace workspace(problem, interrupt, thread);
        for (int64_t i = bounds[thread]; i < bounds[thread + 1]; ++i) work(workspace, i);
    });
}

template <class Work>
void for_graphs(const JunctionProblem& problem, const Work& work) {
    const std::vector<double>& cost = problem.plan.cost;
    const auto n = static_cast<int64_t>(cost.size()) - 1;
    for_items(problem, n, [&](int64_t g) { return cost[g]; }, work);
}

}  // namespace

void junction_marginals(const JunctionProblem& problem, double* log_z, double* nodes, double* edges) {
    for_graphs(problem, [&](Workspace& workspace, int64_t g) {
        log_z[g] = workspace.collect<false>(g);
        workspace.distribute(g, nodes + problem.plan.elimination.graph.node_offsets[g] * problem.plan.K, edges);
    });
}

void junction_decode(const JunctionProblem& problem, int32_t* labels) {
    for_graphs(problem, [&](Workspace& workspace, int64_t g) {
        workspace.collect<true>(g);
        workspace.assign(g, labels, [](int64_t, const double* row) { return static_cast<int32_t>(row[0]); });
    });
}

void junction_sample(const JunctionProblem& problem, int64_t n_samples, uint64_t seed, int32_t* labels) {
    const int64_t n = problem.plan.elimination.graph.n_nodes;
    const int K = problem.plan.K;
    for_graphs(problem, [&](Workspace& workspace, int64_t g) {
        workspace.collect<false>(g);
        for (int64_t s = 0; s < n_samples; ++s) {
            workspace.check();
            const CounterRandom uniform(seed, static_cast<uint64_t>(s));
            workspace.assign(g, labels + s * n, [&](int64_t node, const double* row) {
                return draw(row, 1, K, uniform(static_cast<uint64_t>(node)));
            });
        }
    });
}

// p(y_i = k, y_j) = p(y_i = k) p(y_j | y_i = k): inference with node i fixed to each of its states k, whose log Z
// is log p(y_i = k) but for a constant.
void junction_pairs(const JunctionProblem& problem, int64_t n_pairs, const int32_t* pairs, double* marginals) {
    const Graph& graph = problem.plan.elimination.graph;
    const int K = problem.plan.K;
    std::vector<int64_t> groups;  // where pairs of another first node begin
    for (int64_t m = 0; m < n_pairs; ++m)
        if (m == 0 || pairs[2 * m] != pairs[2 * m - 2]) groups.push_back(m);
    const auto n_groups = static_cast<int64_t>(groups.size());
    groups.push_back(n_pairs);
    const auto graph_of = [&](int64_t node) {
        return std::upper_bound(graph.node_offsets.begin(), graph.node_offsets.end(), node) -
               graph.node_offsets.begin() - 1;
    };
    for (int64_t m = 0; m < n_pairs; ++m)
        require(graph_of(pairs[2 * m]) == graph_of(pairs[2 * m + 1]), "a pair of nodes of two graphs");
    std::vector<double> cost{0.0};
    for (int64_t i = 0; i < n_groups; ++i) {
        const int64_t g = graph_of(pairs[2 * groups[i]]);
        cost.push_back(cost.back() + problem.plan.cost[g + 1] - problem.plan.cost[g]);
    }
    const auto work = [&](Workspace& workspace, int64_t group) {
        const int32_t i = pairs[2 * groups[group]];
        const int64_t g = graph_of(i), first = graph.node_offsets[g];
        std::vector<double> given(static_cast<size_t>(graph.node_offsets[g + 1] - first) * K);  // p(y | y_i = k)
        std::vector<double> log_p(static_cast<size_t>(K), -std::numeric_limits<double>::infinity());
        for (int k = 0; k < K; ++k) {
            if (problem.unary[int64_t{i} * K + k] == log_p[k]) {
                std::fill(given.begin(), given.end(), 0.0);
            } else {
                workspace.clamp(i, k);
                log_p[k] = workspace.collect<false>(g);
                workspace.distribute(g, given.data(), nullptr);
            }
            for (int64_t m = groups[group]; m < groups[group + 1]; ++m)
                std::copy_n(given.data() + (pairs[2 * m + 1] - first) * K, K, marginals + (m * K + k) * K);
        }
        const double top = *std::max_element(log_p.begin(), log_p.end());
        double sum = 0.0;
        for (double& p : log_p) sum += p = std::exp(p - top);
        for (int64_t m = groups[group]; m < groups[group + 1]; ++m)
            for (int k = 0; k < K; ++k)
                for (int l = 0; l < K; ++l) marginals[(m * K + k) * K + l] *= log_p[k] / sum;
    };
    for_items(problem, n_groups, [&](int64_t i) { return cost[i]; }, work);
}

}  // namespace crfkit
