#include "pseudo.hpp"

#include <algorithm>
#include <cmath>

#include "../support/parallel.hpp"

namespace crfkit {

BasisTerms::BasisTerms(const double* basis, int B, int K)
    : B(B > 0 ? B : K * K),
      K(K),
      starts_first_(static_cast<size_t>(K) + 1),
      starts_second_(static_cast<size_t>(K) + 1) {
    for (int l = 0; l < K; ++l) {
        for (int k = 0; k < K && B == 0; ++k) {
            first_.push_back({k * K + l, k, 1.0});
            second_.push_back({l * K + k, k, 1.0});
        }
        for (int b = 0; b < B; ++b)
            for (int k = 0; k < K; ++k) {
                const double* table = basis + static_cast<int64_t>(b) * K * K;
                if (const double value = table[k * K + l]; value != 0.0) first_.push_back({b, k, value});
                if (const double value = table[l * K + k]; value != 0.0) second_.push_back({b, k, value});
            }
        starts_first_[l + 1] = first_.size();
        starts_second_[l + 1] = second_.size();
    }
    first_.push_back({});  // so that the end of the last span is an element
    second_.push_back({});
}

namespace {

using Terms = std::span<const BasisTerms::Term>;

constexpr int64_t kChunk = 1024;  // nodes or edges

// Calls work(begin, end) for every chunk of 0 … n and returns the sum of what it returns, in order of the chunks.
template <class Work>
double sum_chunks(int64_t n, int n_threads, Interrupt& interrupt, const Work& work) {
    const int64_t n_chunks = (n + kChunk - 1) / kChunk;
    const int used = static_cast<int>(std::clamp<int64_t>(n_chunks, 1, std::max(1, n_threads)));
    std::vector<double> parts(static_cast<size_t>(n_chunks));
    run_threads(used, [&](int thread) {
        for (int64_t c = n_chunks * thread / used; c < n_chunks * (thread + 1) / used; ++c) {
            interrupt.check(thread);
            parts[static_cast<size_t>(c)] = work(c * kChunk, std::min(n, (c + 1) * kChunk));
        }
    });
    double total = 0.0;
    for (const double part : parts) total += part;
    return total;
}

template <class Work>
void over_chunks(int64_t n, int n_threads, Interrupt& interrupt, const Work& work) {
    sum_chunks(n, n_threads, interrupt, [&](int64_t begin, int64_t end) {
        work(begin, end);
        return 0.0;
    });
}

// The tables as node i sees them through one of its slots, given the neighbour's label.
Terms seen_by(const LabelledField& field, int64_t i, int64_t slot) {
    const int32_t label = field.labels[field.graph.neighbours[slot]];
    return field.graph.is_first(i, slot) ? field.basis.to_first(label) : field.basis.to_second(label);
}

// c[k] = U_i(k) + Σ_j P_ij(k, y_j)
void node_scores(const LabelledField& field, int64_t i, double* c) {
    const int K = field.basis.K;
    std::copy_n(field.unary + i * K, K, c);
    for (int64_t slot = field.graph.starts[i]; slot < field.graph.starts[i + 1]; ++slot) {
        const double* coefficients = field.coefficients + int64_t{field.graph.slot_edges[slot]} * field.basis.B;
        for (const auto& [b, k, value] : seen_by(field, i, slot)) c[k] += coefficients[b] * value;
    }
}

// p = softmax of the n scores, residual = weight (p − 1[gold]); returns weight (log Σ exp scores − scores[gold]).
// Both are sums of what is not at the top, or not gold: exact where the gold label is all but certain. p may be
// the scores, and residual may be p.
double softmax(const double* scores, int64_t n, int64_t gold, double weight, double* p, double* residual) {
    int64_t best = 0;
    for (int64_t k = 1; k < n; ++k)
        if (scores[k] > scores[best]) best = k;
    const double top = scores[best], gap = top - scores[gold];
    double rest = 0.0;
    for (int64_t k = 0; k < n; ++k) {
        p[k] = k == best ? 1.0 : std::exp(scores[k] - top);
        if (k != best) rest += p[k];
    }
    double wrong = 0.0;
    for (int64_t k = 0; k < n; ++k) {
        p[k] /= 1.0 + rest;
        if (k != gold) wrong += p[k];
    }
    for (int64_t k = 0; k < n; ++k) residual[k] = weight * (k == gold ? -wrong : p[k]);
    return weight == 0.0 ? 0.0 : weight * (gap + std::log1p(rest));
}

// out[b] += Σ_k values[k] T_b(k, ·)
void add_along(Terms terms, const double* values, double* out) {
    for (const auto& [b, k, value] : terms) out[b] += values[k] * value;
}

// edges_e,b = Σ_k nodes_i(k) T_b(k, y_j) + Σ_l nodes_j(l) T_b(y_i, l): from values of nodes to those of edges.
void edges_of_nodes(const LabelledField& field, const double* nodes, double* edges, int n_threads,
                    Interrupt& interrupt) {
    const int K = field.basis.K, B = field.basis.B;
    over_chunks(field.graph.n_edges, n_threads, interrupt, [&](int64_t begin, int64_t end) {
        std::fill(edges + begin * B, edges + end * B, 0.0);
        for (int64_t e = begin; e < end; ++e) {
            const int64_t i = field.graph.edges[2 * e], j = field.graph.edges[2 * e + 1];
            add_along(field.basis.to_first(field.labels[j]), nodes + i * K, edges + e * B);
            add_along(field.basis.to_second(field.labels[i]), nodes + j * K, edges + e * B);
        }
    });
}

}  // namespace

double pseudo_value(const LabelledField& field, double* p, double* nodes, double* edges, int n_threads,
                    const Poll& poll) {
    Interrupt interrupt(poll);
    const int K = field.basis.K;
    const double value = sum_chunks(field.graph.n_nodes, n_threads, interrupt, [&](int64_t begin, int64_t end) {
        double sum = 0.0;
        for (int64_t i = begin; i < end; ++i) {
            node_scores(field, i, p + i * K);
            sum += softmax(p + i * K, K, field.labels[i], field.weights[i], p + i * K, nodes + i * K);
        }
        return sum;
    });
    edges_of_nodes(field, nodes, edges, n_threads, interrupt);
    return value;
}

void pseudo_tangent(const LabelledField& direction, const double* p, double* nodes, double* edges, int n_threads,
                    const Poll& poll) {
    Interrupt interrupt(poll);
    const int K = direction.basis.K;
    over_chunks(direction.graph.n_nodes, n_threads, interrupt, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            double* c = nodes + i * K;
            const double* p_i = p + i * K;
            node_scores(direction, i, c);
            double mean = 0.0;
            for (int k = 0; k < K; ++k)
                if (p_i[k] > 0.0) mean += p_i[k] * c[k];
            for (int k = 0; k < K; ++k) c[k] = p_i[k] > 0.0 ? direction.weights[i] * p_i[k] * (c[k] - mean) : 0.0;
        }
    });
    edges_of_nodes(direction, nodes, edges, n_threads, interrupt);
}

void pseudo_variances(const LabelledField& field, const double* p, double* edges, int n_threads, const Poll& poll) {
    Interrupt interrupt(poll);
    const int K = field.basis.K, B = field.basis.B;
    over_chunks(field.graph.n_edges, n_threads, interrupt, [&](int64_t begin, int64_t end) {
        std::vector<double> mean(static_cast<size_t>(B)), square(static_cast<size_t>(B));
        std::fill(edges + begin * B, edges + end * B, 0.0);
        for (int64_t e = begin; e < end; ++e) {
            const int64_t i = field.graph.edges[2 * e], j = field.graph.edges[2 * e + 1];
            const auto add = [&](int64_t node, Terms terms) {
                std::fill(mean.begin(), mean.end(), 0.0);
                std::fill(square.begin(), square.end(), 0.0);
                for (const auto& [b, k, value] : terms) {
                    mean[b] += p[node * K + k] * value;
                    square[b] += p[node * K + k] * value * value;
                }
                for (int b = 0; b < B; ++b)
                    edges[e * B + b] += field.weights[node] * std::max(0.0, square[b] - mean[b] * mean[b]);
            };
            add(i, field.basis.to_first(field.labels[j]));
            add(j, field.basis.to_second(field.labels[i]));
        }
    });
}

double composite_value(const LabelledField& field, double* nodes, double* edges, int n_threads, const Poll& poll) {
    Interrupt interrupt(poll);
    const Graph& graph = field.graph;
    const BasisTerms& basis = field.basis;
    const int64_t n = graph.n_nodes, E = graph.n_edges, K = basis.K, B = basis.B;
    std::vector<double> scores(static_cast<size_t>(n * K));       // [N][K] c_i
    std::vector<double> margins(static_cast<size_t>(2 * E * K));  // [E][2][K] residuals of an edge, summed to its ends

    // Nodes: c_i, and the loss of those without edges.
    double value = sum_chunks(n, n_threads, interrupt, [&](int64_t begin, int64_t end) {
        double sum = 0.0;
        for (int64_t i = begin; i < end; ++i) {
            double* c = &scores[static_cast<size_t>(i * K)];
            node_scores(field, i, c);
            if (graph.degree(i) == 0) sum += softmax(c, K, field.labels[i], field.weights[i], c, nodes + i * K);
        }
        return sum;
    });

    // Edges: residuals r_e(k, l) of the K² pairs; what they do to the edge's own table and to its ends.
    value += sum_chunks(E, n_threads, interrupt, [&](int64_t begin, int64_t end) {
        std::vector<double> a(static_cast<size_t>(K)), b(static_cast<size_t>(K)), r(static_cast<size_t>(K * K));
        std::fill(edges + begin * B, edges + end * B, 0.0);
        double sum = 0.0;
        for (int64_t e = begin; e < end; ++e) {
            const int64_t i = graph.edges[2 * e], j = graph.edges[2 * e + 1];
            const int32_t y_i = field.labels[i], y_j = field.labels[j];
            const double* coefficients = field.coefficients + e * B;
            std::copy_n(&scores[static_cast<size_t>(i * K)], K, a.begin());
            std::copy_n(&scores[static_cast<size_t>(j * K)], K, b.begin());
            for (const auto& [t, k, x] : basis.to_first(y_j)) a[k] -= coefficients[t] * x;
            for (const auto& [t, l, x] : basis.to_second(y_i)) b[l] -= coefficients[t] * x;
            for (int64_t k = 0; k < K; ++k) {
                for (int64_t l = 0; l < K; ++l) r[k * K + l] = a[k] + b[l];
                for (const auto& [t, l, x] : basis.to_second(static_cast<int>(k))) r[k * K + l] += coefficients[t] * x;
            }
            sum += softmax(r.data(), K * K, y_i * K + y_j, field.weights[i], r.data(), r.data());
            double *first = &margins[static_cast<size_t>(2 * e * K)], *second = first + K;
            for (int64_t k = 0; k < K; ++k) {
                for (int64_t l = 0; l < K; ++l) {
                    first[k] += r[k * K + l];
                    second[l] += r[k * K + l];
                }
                add_along(basis.to_second(static_cast<int>(k)), &r[k * K], edges + e * B);
            }
        }
        return sum;
    });

    // Nodes: R_i(k) = Σ of the residuals of their edges.
    over_chunks(n, n_threads, interrupt, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            if (graph.degree(i) == 0) continue;
            std::fill_n(nodes + i * K, K, 0.0);
            for (int64_t slot = graph.starts[i]; slot < graph.starts[i + 1]; ++slot) {
                const int64_t side = graph.is_first(i, slot) ? 0 : 1;
                const double* margin = &margins[(2 * int64_t{graph.slot_edges[slot]} + side) * K];
                for (int64_t k = 0; k < K; ++k) nodes[i * K + k] += margin[k];
            }
        }
    });

    // Edges: their table at the neighbour's label is part of the scores of all other edges of a node:
    // Σ_k (R_i(k) − r_e,i(k)) T_b(k, y_j), and alike for the second end.
    over_chunks(E, n_threads, interrupt, [&](int64_t begin, int64_t end) {
        for (int64_t e = begin; e < end; ++e) {
            const int64_t i = graph.edges[2 * e], j = graph.edges[2 * e + 1];
            double *first = &margins[static_cast<size_t>(2 * e * K)], *second = first + K;
            for (int64_t k = 0; k < K; ++k) {
                first[k] = nodes[i * K + k] - first[k];
                second[k] = nodes[j * K + k] - second[k];
            }
            add_along(basis.to_first(field.labels[j]), first, edges + e * B);
            add_along(basis.to_second(field.labels[i]), second, edges + e * B);
        }
    });
    return value;
}

}  // namespace crfkit
