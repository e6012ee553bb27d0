// The chain kernels, compiled once per instruction set: the including file defines CRFKIT_KERNELS
// (the function that returns the table), CRFKIT_NAME, CRFKIT_LANES (doubles in a register) and
// CRFKIT_OUTER_VECTORS (registers that the sum of outer products may hold).
#include "chain.hpp"
#include "simd.hpp"

namespace crfkit {
namespace {

#include "chain_scores.inl"

#include "chain_recursions.inl"

// out[R][P] += sum_t alpha[t][R] b[t][P], accumulators in registers.
template <int R, int B>
CRFKIT_INLINE void outer_tile(const double* alpha, const double* b, int64_t length, int64_t width, double* out) {
    V total[R][B];
    for (int r = 0; r < R; ++r)
        for (int k = 0; k < B; ++k) total[r][k] = load(out + r * width + k * kLanes);
    for (int64_t t = 0; t < length; ++t, alpha += width, b += width) {
        V row[B];
        for (int k = 0; k < B; ++k) row[k] = load(b + k * kLanes);
        for (int r = 0; r < R; ++r) {
            const V a = splat(alpha[r]);
            for (int k = 0; k < B; ++k) total[r][k] += a * row[k];
        }
    }
    for (int r = 0; r < R; ++r)
        for (int k = 0; k < B; ++k) store(out + r * width + k * kLanes, total[r][k]);
}

struct AddOuter {
    const double* alpha;
    const double* b;
    int64_t length, n_labels, width;
    double* out;
    template <int B>
    CRFKIT_INLINE_MEMBER void run(int64_t column) const {
        int64_t i = 0;
        const auto tiles = [&]<int R>() {
            if constexpr (R * B <= CRFKIT_OUTER_VECTORS || R == 1)
                for (; i + R <= n_labels; i += R)
                    outer_tile<R, B>(alpha + i, b + column, length, width, out + i * width + column);
        };
        tiles.template operator()<8>();
        tiles.template operator()<4>();
        tiles.template operator()<2>();
        tiles.template operator()<1>();
    }
};

int64_t scratch_size(int64_t longest, int64_t n_labels, bool pairs) { return lattice_size(longest, n_labels, pairs); }

void exponentiate(const double* x, double shift, double* out, int64_t n) {
    for (int64_t i = 0; i < n; i += kLanes) store(out + i, exp_nonpositive(load(x + i) - splat(shift)));
}

template <class Width>
CRFKIT_INLINE Lattice<Width> lattice_of(const ChainPlan& data, const ChainWeights& w, const ChainRange& range,
                                        int64_t n, Width width) {
    const int64_t length = data.starts[n + 1] - data.starts[n];
    const bool pairs = data.pair_offsets && data.pair_offsets[data.starts[n + 1]] > data.pair_offsets[data.starts[n]];
    const Lattice<Width> a = make_lattice(range.scratch, length, w.n_labels, width, pairs);
    fill_scores(data, w, n, a);
    return a;
}

// Calls work(width) with the common widths as constants, so that the loops over a row are unrolled.
template <class Work>
CRFKIT_INLINE auto with_width(int64_t width, const Work& work) {
    switch (width) {
        case 8: return work(Fixed<8>());
        case 16: return work(Fixed<16>());
        case 24: return work(Fixed<24>());
        case 32: return work(Fixed<32>());
        case 40: return work(Fixed<40>());
        case 48: return work(Fixed<48>());
        default: return work(width);
    }
}

template <class Width>
double value_gradient_of(const ChainPlan& data, const ChainWeights& w, const ChainGradient& g, const ChainRange& range,
                         Width width) {
    const int64_t n_labels = w.n_labels;
    double value = 0.0;
    for (int64_t n = range.begin; n < range.end; ++n) {
        const int64_t first = data.starts[n];
        const double weight = data.weights ? data.weights[n] : 1.0;
        const Lattice<Width> a = lattice_of(data, w, range, n, width);
        if (a.length == 0) continue;
        const int32_t* y = data.labels + first;
        double score = 0.0;
        for (int64_t t = 0; t < a.length; ++t) {
            score += a.u[t * width + y[t]];
            if (t > 0) score += pair_potentials(w, a, t)[y[t - 1] * width + y[t]];
        }
        const Inference found = infer(w, a);
        value += weight * (found.log_z - score);

        // Residuals of all positions first: loading a row right after storing one of its elements would stall.
        for (int64_t t = 0; t < a.length; ++t) a.node[t * width + y[t]] -= 1.0;
        for (int64_t t = 0; t < a.length; ++t) {
            if (weight != 1.0) scale_row(a.node + t * width, width, weight);
            add_residual(data, w, g, width, first + t, a.node + t * width);
        }
        if (!a.scores && !found.in_log_space) {
            if (weight != 1.0)
                for (int64_t t = 1; t < a.length; ++t) scale_row(a.e + t * width, width, weight);
            over_blocks(width, AddOuter{a.alpha, a.e + width, a.length - 1, n_labels, width, g.outer});
            for (int64_t t = 1; t < a.length; ++t) g.transitions[y[t - 1] * width + y[t]] -= weight;
        } else {
            for (int64_t t = 1; t < a.length; ++t) {
                edge_marginal(w, a, found, t);
                a.edge[y[t - 1] * width + y[t]] -= 1.0;
                for (int64_t i = 0; i < n_labels; ++i) scale_row(a.edge + i * width, width, weight);
                for (int64_t i = 0; i < n_labels * width; ++i) g.transitions[i] += a.edge[i];
                if (a.scores) add_pair_residual(data, w, g, first + t, a.edge);
            }
        }
        range.check(range.check_state, range.thread);
    }
    return value;
}

double value_gradient(const ChainPlan& data, const ChainWeights& w, const ChainGradient& g, const ChainRange& range) {
    return with_width(w.width, [&](auto width) { return value_gradient_of(data, w, g, range, width); });
}

void marginals(const ChainPlan& data, const ChainWeights& w, double* log_z, double* node, double* edge,
               const ChainRange& range) {
    const int64_t n_labels = w.n_labels, width = w.width;
    for (int64_t n = range.begin; n < range.end; ++n) {
        const int64_t first = data.starts[n];
        const Lattice<int64_t> a = lattice_of(data, w, range, n, width);
        log_z[n] = 0.0;
        if (a.length == 0) continue;
        const Inference found = infer(w, a);
        log_z[n] = found.log_z;
        for (int64_t t = 0; node && t < a.length; ++t)
            for (int64_t j = 0; j < n_labels; ++j) node[(first + t) * n_labels + j] = a.node[t * width + j];
        for (int64_t t = 0; edge && t < a.length; ++t) {
            if (t > 0) edge_marginal(w, a, found, t);
            for (int64_t i = 0; i < n_labels; ++i)
                for (int64_t j = 0; j < n_labels; ++j)
                    edge[((first + t) * n_labels + i) * n_labels + j] = t > 0 ? a.edge[i * width + j] : 0.0;
        }
        range.check(range.check_state, range.thread);
    }
}

// delta[P] = u[P] + max_i (previous[i] + m[i][P]).
struct MaxStep {
    const double* previous;
    const double* m;
    const double* u;
    int64_t n_labels, width;
    double* delta;
    template <int B>
    CRFKIT_INLINE_MEMBER void run(int64_t column) const {
        V best[B];
        for (int b = 0; b < B; ++b) best[b] = splat(previous[0]) + load(m + column + b * kLanes);
        for (int64_t i = 1; i < n_labels; ++i) {
            const V p = splat(previous[i]);
            for (int b = 0; b < B; ++b) best[b] = larger(best[b], p + load(m + i * width + column + b * kLanes));
        }
        for (int b = 0; b < B; ++b) store(delta + column + b * kLanes, best[b] + load(u + column + b * kLanes));
    }
};

void viterbi(const ChainPlan& data, const ChainWeights& w, int32_t* labels, double* scores, const ChainRange& range) {
    const int64_t n_labels = w.n_labels, width = w.width;
    const auto first_best = [&](auto value) {
        int64_t best = 0;
        double top = value(0);
        for (int64_t i = 1; i < n_labels; ++i)
            if (const double x = value(i); x > top) top = x, best = i;
        return best;
    };
    for (int64_t n = range.begin; n < range.end; ++n) {
        const Lattice<int64_t> a = lattice_of(data, w, range, n, width);
        scores[n] = 0.0;
        if (a.length == 0) continue;
        const double* delta = a.u;
        for (int64_t t = 1; t < a.length; ++t) {
            double* next = a.alpha + t * width;
            over_blocks(width, MaxStep{delta, pair_potentials(w, a, t), a.u + t * width, n_labels, width, next});
            delta = next;
        }
        int32_t* y = labels + data.starts[n];
        int64_t best = first_best([&](int64_t i) { return delta[i]; });
        scores[n] = delta[best];
        y[a.length - 1] = static_cast<int32_t>(best);
        // Back pointers are recomputed along the best path only: L additions per position.
        for (int64_t t = a.length - 1; t > 0; --t) {
            const double* previous = t > 1 ? a.alpha + (t - 1) * width : a.u;
            const double* m = pair_potentials(w, a, t) + best;
            best = first_best([&](int64_t i) { return previous[i] + m[i * width]; });
            y[t - 1] = static_cast<int32_t>(best);
        }
        range.check(range.check_state, range.thread);
    }
}

}  // namespace

const ChainKernels& CRFKIT_KERNELS() {
    static const ChainKernels table{CRFKIT_NAME, scratch_size, exponentiate, value_gradient, marginals, viterbi};
    return table;
}

}  // namespace crfkit
