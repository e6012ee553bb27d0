// The pseudo-likelihood of a table. Compiled once per instruction set.
#include <algorithm>

#include "../support/simd.hpp"
#include "../support/simd_log.hpp"
#include "pseudo_table.hpp"

namespace crfkit::CRFKIT_SPACE {
namespace {

constexpr int64_t kSpan = 512;  // samples whose edge derivatives are kept at a time

CRFKIT_INLINE void add_to(double* p, V v) { store(p, load(p) + v); }

// c += T_r s_r of R rows of a factor, of U vectors of samples.
template <int R, int U>
CRFKIT_INLINE void add_scores(const PseudoTask& task, const PseudoFactor& factor, int64_t row, int64_t at) {
    const double* w = task.w + factor.weights + row * factor.n_columns;
    V s[R][U] = {};
    for (int64_t f = 0; f < factor.n_columns; ++f) {
        const double* x = task.bank + factor.columns[f] * task.stride + at;
        V x_u[U];
        for (int u = 0; u < U; ++u) x_u[u] = load(x + u * kLanes);
        for (int r = 0; r < R; ++r) {
            const V w_r = splat(w[r * factor.n_columns + f]);
            for (int u = 0; u < U; ++u) s[r][u] += w_r * x_u[u];
        }
    }
    const auto place = [&](int64_t node, int64_t state) { return (node * task.K + state) * task.stride + at; };
    for (int r = 0; r < R; ++r)
        for (const PseudoTerm* t = factor.rows[row + r]; t != factor.rows[row + r + 1]; ++t) {
            double* first = task.residuals + place(factor.i, t->k);
            if (factor.j < 0) {
                for (int u = 0; u < U; ++u) add_to(first + u * kLanes, splat(t->value) * s[r][u]);
                continue;
            }
            double* second = task.residuals + place(factor.j, t->l);
            const double* y_j = task.one_hot + place(factor.j, t->l);
            const double* y_i = task.one_hot + place(factor.i, t->k);
            for (int u = 0; u < U; ++u) {
                const V value = splat(t->value) * s[r][u];
                add_to(first + u * kLanes, value * load(y_j + u * kLanes));
                add_to(second + u * kLanes, value * load(y_i + u * kLanes));
            }
        }
}

template <int R>
void add_rows(const PseudoTask& task, const PseudoFactor& factor, int64_t row) {
    int64_t at = task.first;
    for (; at + 4 * kLanes <= task.last; at += 4 * kLanes) add_scores<R, 4>(task, factor, row, at);
    for (; at < task.last; at += kLanes) add_scores<R, 1>(task, factor, row, at);
}

// The loss of one node in one vector of samples; c becomes R. Sums are of what is not at the top, or not the label:
// exact where the label is all but certain.
CRFKIT_INLINE V softmax(double* c, const double* one_hot, int64_t n_states, int64_t stride, V weight) {
    V top = load(c), gold = V{};
    VI best = VI{};
    for (int64_t k = 0; k < n_states; ++k) {
        const V x = load(c + k * stride);
        const VI higher = x > top;
        top = higher ? x : top;
        best = higher ? VI{} + (long long)k : best;
        gold += load(one_hot + k * stride) * x;
    }
    V rest = V{};
    for (int64_t k = 0; k < n_states; ++k) {
        const V e = exp_nonpositive(load(c + k * stride) - top);
        const VI at_top = best == VI{} + (long long)k;
        rest += at_top ? V{} : e;
        store(c + k * stride, at_top ? splat(1.0) : e);
    }
    const V total = splat(1.0) + rest, scale = weight / total;
    V wrong = V{};
    for (int64_t k = 0; k < n_states; ++k) {
        const V p = load(c + k * stride) * scale;
        store(c + k * stride, p);
        wrong += load(one_hot + k * stride) != V{} ? V{} : p;
    }
    for (int64_t k = 0; k < n_states; ++k)
        store(c + k * stride, load(one_hot + k * stride) != V{} ? -wrong : load(c + k * stride));
    // log1p(rest) = log u + (rest − (u − 1))/u with u = 1 + rest, as it is rounded
    return weight * (top - gold + (log_positive(total) + (rest - (total - splat(1.0))) / total));
}

double table_value(const PseudoTask& task) {
    for (int64_t row = 0; row < task.n_nodes * task.K; ++row)
        std::fill(task.residuals + row * task.stride + task.first, task.residuals + row * task.stride + task.last, 0.0);
    for (const PseudoFactor* factor = task.begin; factor != task.end; ++factor)
        for (int64_t row = 0; row < factor->n_rows;) {
            const int64_t left = factor->n_rows - row;
            left == 1   ? add_rows<1>(task, *factor, row)
            : left == 3 ? add_rows<3>(task, *factor, row)
                        : add_rows<2>(task, *factor, row);
            row += left == 3 ? 3 : std::min<int64_t>(left, 2);
        }
    V loss = V{};
    for (int64_t i = 0; i < task.n_nodes; ++i)
        for (int64_t at = task.first; at < task.last; at += kLanes) {
            const int64_t place = i * task.K * task.stride + at;
            loss += softmax(task.residuals + place, task.one_hot + place, task.states[i], task.stride,
                            load(task.weights + at));
        }
    return sum(loss);
}

// ∂w_r += Σ_samples x·r for R rows and F features.
template <int R, int F>
CRFKIT_INLINE void add_products(const PseudoTask& task, const PseudoFactor& factor, const double* r, int64_t from,
                                int64_t n, int64_t f, double* gradient) {
    const double* x[F];
    for (int a = 0; a < F; ++a) x[a] = task.bank + factor.columns[f + a] * task.stride + from;
    V s[R][F] = {};
    for (int64_t at = 0; at < n; at += kLanes) {
        V r_at[R];
        for (int b = 0; b < R; ++b) r_at[b] = load(r + b * kSpan + at);
        for (int a = 0; a < F; ++a) {
            const V x_a = load(x[a] + at);
            for (int b = 0; b < R; ++b) s[b][a] += r_at[b] * x_a;
        }
    }
    for (int b = 0; b < R; ++b)
        for (int a = 0; a < F; ++a) gradient[b * factor.n_columns + f + a] += sum(s[b][a]);
}

template <int R>
void gradient_of_rows(const PseudoTask& task, const PseudoFactor& factor, int64_t row) {
    alignas(64) double r[R][kSpan];
    double* gradient = task.gradient + factor.weights + row * factor.n_columns;
    std::fill_n(gradient, R * factor.n_columns, 0.0);
    for (int64_t from = task.first; from < task.last; from += kSpan) {
        const int64_t n = std::min(kSpan, task.last - from);
        const auto place = [&](int64_t node, int64_t state) { return (node * task.K + state) * task.stride + from; };
        for (int b = 0; b < R; ++b) {
            std::fill_n(r[b], n, 0.0);
            for (const PseudoTerm* t = factor.rows[row + b]; t != factor.rows[row + b + 1]; ++t) {
                const V value = splat(t->value);
                const double* first = task.residuals + place(factor.i, t->k);
                if (factor.j < 0) {
                    for (int64_t at = 0; at < n; at += kLanes) add_to(r[b] + at, value * load(first + at));
                    continue;
                }
                const double* second = task.residuals + place(factor.j, t->l);
                const double* y_j = task.one_hot + place(factor.j, t->l);
                const double* y_i = task.one_hot + place(factor.i, t->k);
                for (int64_t at = 0; at < n; at += kLanes)
                    add_to(r[b] + at, value * (load(first + at) * load(y_j + at) + load(second + at) * load(y_i + at)));
            }
        }
        int64_t f = 0;
        for (; f + 4 <= factor.n_columns; f += 4) add_products<R, 4>(task, factor, r[0], from, n, f, gradient);
        for (; f < factor.n_columns; ++f) add_products<R, 1>(task, factor, r[0], from, n, f, gradient);
    }
}

void table_gradient(const PseudoTask& task) {
    for (const PseudoFactor* factor = task.begin; factor != task.end; ++factor)
        for (int64_t row = 0; row < factor->n_rows;) {
            const int64_t left = factor->n_rows - row;
            left == 1   ? gradient_of_rows<1>(task, *factor, row)
            : left == 3 ? gradient_of_rows<3>(task, *factor, row)
                        : gradient_of_rows<2>(task, *factor, row);
            row += left == 3 ? 3 : std::min<int64_t>(left, 2);
        }
}

}  // namespace

const PseudoKernels& pseudo_kernels() {
    static const PseudoKernels kernels{table_value, table_gradient};
    return kernels;
}

}  // namespace crfkit::CRFKIT_SPACE
