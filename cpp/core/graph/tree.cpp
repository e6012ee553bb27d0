#include "tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../support/compensated_sum.hpp"
#include "../support/counter_random.hpp"
#include "../support/parallel.hpp"

namespace crfkit {

TreePlan::TreePlan(const Graph& graph) : graph(graph), components{0}, graph_bounds{0} {
    const auto n = static_cast<size_t>(graph.n_nodes);
    order.reserve(n);
    parents.reserve(n);
    parent_edges.reserve(n);
    std::vector<bool> seen(n);
    for (int64_t g = 0; g < graph.n_graphs; ++g) {
        for (int64_t root = graph.node_offsets[g]; root < graph.node_offsets[g + 1]; ++root) {
            if (seen[root]) continue;
            size_t head = order.size();
            const auto add = [&](int64_t node, int64_t parent, int64_t edge) {
                seen[node] = true;
                order.push_back(static_cast<int32_t>(node));
                parents.push_back(static_cast<int32_t>(parent));
                parent_edges.push_back(static_cast<int32_t>(edge));
            };
            for (add(root, -1, -1); head < order.size(); ++head) {
                const int32_t node = order[head];
                for (int64_t s = graph.starts[node]; s < graph.starts[node + 1]; ++s) {
                    if (graph.slot_edges[s] == parent_edges[head]) continue;
                    if (seen[graph.neighbours[s]]) {
                        cyclic = g;
                        return;
                    }
                    add(graph.neighbours[s], node, graph.slot_edges[s]);
                }
            }
            components.push_back(static_cast<int64_t>(order.size()));
        }
        graph_bounds.push_back(static_cast<int64_t>(components.size()) - 1);
    }
}

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr int64_t kCheckEvery = 4096;  // nodes between looks at Ctrl-C

// Where p(parent = a, child = b) of an edge lies: at a * parent + b * child of its table.
struct Strides {
    int64_t parent, child;
    Strides(const Graph& graph, int64_t edge, int64_t parent_node, int K)
        : parent(graph.edges[2 * edge] == parent_node ? K : 1), child(parent == K ? 1 : K) {}
};

// Threads that have work: no more than there are components.
int count_workers(const TreeProblem& problem) {
    const auto n = static_cast<int64_t>(problem.plan.components.size()) - 1;
    return static_cast<int>(std::clamp<int64_t>(n, 1, problem.n_threads));
}

// Calls work(component, interrupt, thread) for every component, over threads.
template <class Work>
void for_components(const TreeProblem& problem, const Work& work) {
    const TreePlan& plan = problem.plan;
    const auto n = static_cast<int64_t>(plan.components.size()) - 1;
    const int n_threads = count_workers(problem);
    const auto bounds = split_by_cost(n, n_threads, [&](int64_t c) { return static_cast<double>(plan.components[c]); });
    Interrupt interrupt(problem.poll);
    run_threads(n_threads, [&](int thread) {
        for (int64_t c = bounds[thread]; c < bounds[thread + 1]; ++c) work(c, interrupt, thread);
    });
}

// From the leaves to the root of a component. A node c with children d has the belief
//   b_c(k) = U_c(k) + Σ_d m_d(k),    m_c(a) = log Σ_k exp(b_c(k) + P(a, k)),
// and p(y_c = k | y_parent = a) = exp(b_c(k) + P(a, k) - m_c(a)) goes to edges, p(y_root) to nodes. Messages are
// kept at maximum 0: beliefs do not grow with the tree. No message is -inf, since P is finite and every node has
// a possible state. Returns log Z.
double filter(const TreeProblem& problem, int64_t component, double* nodes, double* edges, std::vector<double>& message,
              Interrupt& interrupt, int thread) {
    const TreePlan& plan = problem.plan;
    const int K = problem.K;
    const int64_t begin = plan.components[component], end = plan.components[component + 1];
    CompensatedSum log_z;
    for (int64_t t = begin; t < end; ++t) {
        const int64_t row = int64_t{plan.order[t]} * K;
        std::copy_n(problem.unary + row, K, nodes + row);
    }
    for (int64_t t = end; t-- > begin;) {
        if (t % kCheckEvery == 0) interrupt.check(thread);
        double* b = nodes + int64_t{plan.order[t]} * K;
        if (plan.parents[t] < 0) {
            const double top = *std::max_element(b, b + K);
            double sum = 0.0;
            for (int k = 0; k < K; ++k) sum += b[k] = std::exp(b[k] - top);
            for (int k = 0; k < K; ++k) b[k] /= sum;
            log_z += top + std::log(sum);
            continue;
        }
        const int64_t e = plan.parent_edges[t];
        const Strides at(plan.graph, e, plan.parents[t], K);
        for (int a = 0; a < K; ++a) {
            const double* P = problem.tables + e * K * K + a * at.parent;
            double* p = edges + e * K * K + a * at.parent;
            double top = kNever, sum = 0.0;
            for (int k = 0; k < K; ++k) top = std::max(top, b[k] + P[k * at.child]);
            for (int k = 0; k < K; ++k) sum += p[k * at.child] = std::exp(b[k] + P[k * at.child] - top);
            for (int k = 0; k < K; ++k) p[k * at.child] /= sum;
            message[a] = top + std::log(sum);
        }
        const double shift = *std::max_element(message.begin(), message.end());
        log_z += shift;
        double* above = nodes + int64_t{plan.parents[t]} * K;
        for (int a = 0; a < K; ++a) above[a] += message[a] - shift;
    }
    return log_z.value();
}

}  // namespace

void tree_marginals(const TreeProblem& problem, double* log_z, double* nodes, double* edges) {
    const TreePlan& plan = problem.plan;
    const int K = problem.K;
    std::vector<double> parts(plan.components.size() - 1);
    std::vector<std::vector<double>> messages(static_cast<size_t>(count_workers(problem)), std::vector<double>(K));
    for_components(problem, [&](int64_t c, Interrupt& interrupt, int thread) {
        parts[c] = filter(problem, c, nodes, edges, messages[thread], interrupt, thread);
        // Back to the leaves: p(y_parent = a, y_c = k) = p(y_parent = a) p(y_c = k | y_parent = a).
        for (int64_t t = plan.components[c] + 1; t < plan.components[c + 1]; ++t) {
            if (t % kCheckEvery == 0) interrupt.check(thread);
            const int64_t e = plan.parent_edges[t];
            const Strides at(plan.graph, e, plan.parents[t], K);
            const double* above = nodes + int64_t{plan.parents[t]} * K;
            double* here = nodes + int64_t{plan.order[t]} * K;
            std::fill_n(here, K, 0.0);
            for (int a = 0; a < K; ++a) {
                double* p = edges + e * K * K + a * at.parent;
                for (int k = 0; k < K; ++k) here[k] += p[k * at.child] *= above[a];
            }
        }
    });
    for (int64_t g = 0; g < plan.graph.n_graphs; ++g) {
        CompensatedSum sum;
        for (int64_t c = plan.graph_bounds[g]; c < plan.graph_bounds[g + 1]; ++c) sum += parts[c];
        log_z[g] = sum.value();
    }
}

void tree_decode(const TreeProblem& problem, int32_t* labels) {
    const TreePlan& plan = problem.plan;
    const int K = problem.K;
    const auto size = static_cast<size_t>(plan.graph.n_nodes) * K;
    std::vector<double> beliefs(problem.unary, problem.unary + size);  // [N][K]
    std::vector<int32_t> best(size);                                   // [N][K] the child's state, given the parent's
    std::vector<std::vector<double>> messages(static_cast<size_t>(count_workers(problem)), std::vector<double>(K));
    for_components(problem, [&](int64_t c, Interrupt& interrupt, int thread) {
        std::vector<double>& message = messages[thread];
        for (int64_t t = plan.components[c + 1]; t-- > plan.components[c];) {
            if (t % kCheckEvery == 0) interrupt.check(thread);
            const double* b = beliefs.data() + int64_t{plan.order[t]} * K;
            if (plan.parents[t] < 0) {
                labels[plan.order[t]] = static_cast<int32_t>(std::max_element(b, b + K) - b);
                continue;
            }
            // m_c(a) = max_k b_c(k) + P(a, k)
            const int64_t e = plan.parent_edges[t];
            const Strides at(plan.graph, e, plan.parents[t], K);
            for (int a = 0; a < K; ++a) {
                const double* P = problem.tables + e * K * K + a * at.parent;
                int32_t top = 0;
                for (int k = 1; k < K; ++k)
                    if (b[k] + P[k * at.child] > b[top] + P[top * at.child]) top = k;
                best[int64_t{plan.order[t]} * K + a] = top;
                message[a] = b[top] + P[top * at.child];
            }
            const double shift = *std::max_element(message.begin(), message.end());
            double* above = beliefs.data() + int64_t{plan.parents[t]} * K;
            for (int a = 0; a < K; ++a) above[a] += message[a] - shift;
        }
        for (int64_t t = plan.components[c] + 1; t < plan.components[c + 1]; ++t)
            labels[plan.order[t]] = best[int64_t{plan.order[t]} * K + labels[plan.parents[t]]];
    });
}

void tree_sample(const TreeProblem& problem, int64_t n_samples, uint64_t seed, int32_t* labels) {
    const TreePlan& plan = problem.plan;
    const int K = problem.K;
    const int64_t n = plan.graph.n_nodes;
    std::vector<double> nodes(static_cast<size_t>(n) * K), edges(static_cast<size_t>(plan.graph.n_edges) * K * K);
    std::vector<std::vector<double>> messages(static_cast<size_t>(count_workers(problem)), std::vector<double>(K));
    for_components(problem, [&](int64_t c, Interrupt& interrupt, int thread) {
        filter(problem, c, nodes.data(), edges.data(), messages[thread], interrupt, thread);
    });
    const int n_threads = static_cast<int>(std::clamp<int64_t>(n_samples, 1, problem.n_threads));
    Interrupt interrupt(problem.poll);
    run_threads(n_threads, [&](int thread) {
        for (int64_t s = thread; s < n_samples; s += n_threads) {
            const CounterRandom uniform(seed, static_cast<uint64_t>(s));
            int32_t* y = labels + s * n;
            for (int64_t t = 0; t < n; ++t) {
                if (t % kCheckEvery == 0) interrupt.check(thread);
                const int32_t node = plan.order[t];
                if (plan.parents[t] < 0) {
                    y[node] = draw(nodes.data() + int64_t{node} * K, 1, K, uniform(node));
                    continue;
                }
                const int64_t e = plan.parent_edges[t];
                const Strides at(plan.graph, e, plan.parents[t], K);
                const double* p = edges.data() + e * K * K + y[plan.parents[t]] * at.parent;
                y[node] = draw(p, at.child, K, uniform(node));
            }
        }
    });
}

}  // namespace crfkit
