// Forward-backward and Viterbi over one sequence. Part of chain_kernels.inl.
//
// With scores u_t(j), pair potentials m_t(i, j) and E_t(j) = exp(u_t(j) - max u_t):
//   alpha_0 = E_0,       alpha_t(j) = E_t(j) sum_i alpha_{t-1}(i) M_t(i, j)
//   beta_{T-1} = 1,      b_t(j) = E_t(j) beta_t(j),   beta_{t-1}(i) = sum_j M_t(i, j) b_t(j)
//   node marginal        alpha_t(j) beta_t(j) / c_t,                     c_t = sum_j alpha_t(j) beta_t(j)
//   edge marginal        alpha_{t-1}(i) M_t(i, j) b_t(j) f_t / c_t
// f_t is the factor by which alpha_t was rescaled (1 at most positions). Because max E_t = 1, alpha
// shrinks by exp(-range of m) per step at the most and grows by L, and so does beta: that fixes how
// often to rescale. With a range above kMaxRange the log-space twin runs instead.

constexpr double kMaxRange = 200.0;
constexpr double kMaxDrift = 230.0;  // e^230 = 1e100: alpha and beta stay within 1e+-100 of 1

// Scratch for one sequence of length T.
template <class Width>
struct Lattice {
    int64_t length, n_labels;
    Width width;
    double* u;         // [T][P] scores
    double* e;         // [T][P] E, later b scaled so that alpha_{t-1}(i) M(i, j) e_t(j) is the edge marginal
    double* alpha;     // [T][P]
    double* node;      // [T][P] beta, later node marginals
    double* edge;      // [L][P] one edge marginal; a row of temporaries before
    double* factor;    // [T] f_t
    double* scores;    // [T][L][P] pair potentials m_t, null without pair attributes: the transitions
    double* matrices;  // [T][L][P] exp(m_t - max m_t)
};

CRFKIT_INLINE int64_t lattice_size(int64_t length, int64_t n_labels, bool pairs) {
    const int64_t width = padded(n_labels);
    return 4 * length * width + n_labels * width + length + (pairs ? 2 * length * n_labels * width : 0);
}

template <class Width>
CRFKIT_INLINE Lattice<Width> make_lattice(double* scratch, int64_t length, int64_t n_labels, Width width, bool pairs) {
    const int64_t rows = length * width;
    Lattice<Width> a{
        length,  n_labels, width,  scratch, scratch + rows, scratch + 2 * rows, scratch + 3 * rows, scratch + 4 * rows,
        nullptr, nullptr,  nullptr};
    a.factor = a.edge + n_labels * width;
    if (pairs) {
        a.scores = a.factor + length;
        a.matrices = a.scores + length * n_labels * width;
    }
    return a;
}

// out[P] = sum_i a[i] m[i][P], times e where given.
struct RowTimesMatrix {
    const double* a;
    const double* m;
    int64_t n_labels, width;
    const double* e;
    double* out;
    template <int B>
    CRFKIT_INLINE_MEMBER void run(int64_t column) const {
        V even[B] = {}, odd[B] = {};  // two chains of additions, to hide their latency
        const double* row = m + column;
        int64_t i = 0;
#pragma GCC unroll 4
        for (; i + 1 < n_labels; i += 2, row += 2 * width) {
            const V a0 = splat(a[i]), a1 = splat(a[i + 1]);
            for (int b = 0; b < B; ++b) {
                even[b] += a0 * load(row + b * kLanes);
                odd[b] += a1 * load(row + width + b * kLanes);
            }
        }
        if (i < n_labels) {
            const V a0 = splat(a[i]);
            for (int b = 0; b < B; ++b) even[b] += a0 * load(row + b * kLanes);
        }
        for (int b = 0; b < B; ++b) {
            V total = even[b] + odd[b];
            if (e) total *= load(e + column + b * kLanes);
            store(out + column + b * kLanes, total);
        }
    }
};

CRFKIT_INLINE double row_sum(const double* x, int64_t width) {
    V total = load(x);
    for (int64_t j = kLanes; j < width; j += kLanes) total += load(x + j);
    return sum(total);
}

CRFKIT_INLINE void scale_row(double* x, int64_t width, double factor) {
    for (int64_t j = 0; j < width; j += kLanes) store(x + j, load(x + j) * splat(factor));
}

CRFKIT_INLINE void multiply_rows(const double* x, const double* y, int64_t width, double* out) {
    for (int64_t j = 0; j < width; j += kLanes) store(out + j, load(x + j) * load(y + j));
}

// x in the lanes that are labels, `other` in the padding: only the last kPad lanes of a row hold any.
CRFKIT_INLINE V labels_or(V x, V other, int64_t column, int64_t n_labels, int64_t width) {
    return column + kLanes <= width - kPad ? x : label_mask(column, n_labels) ? x : other;
}

// e = exp(u - max u), 0 in the padding; returns the maximum.
CRFKIT_INLINE double exp_row(const double* u, int64_t n_labels, int64_t width, double* e) {
    const V lowest = splat(-INFINITY);
    V top = lowest;
    for (int64_t j = 0; j < width; j += kLanes) top = larger(top, labels_or(load(u + j), lowest, j, n_labels, width));
    const double shift = maximum(top);
    for (int64_t j = 0; j < width; j += kLanes)
        store(e + j, labels_or(exp_nonpositive(load(u + j) - splat(shift)), V{}, j, n_labels, width));
    return shift;
}

// Scores of sequence n into the lattice.
template <class Width>
static void fill_scores(const ChainPlan& data, const ChainWeights& w, int64_t n, const Lattice<Width>& a) {
    const int64_t first = data.starts[n];
    for (int64_t t = 0; t < a.length; ++t) position_scores(data, w, a.width, first + t, a.u + t * a.width);
    for (int64_t t = 1; a.scores && t < a.length; ++t)
        pair_scores(data, w, first + t, a.scores + t * a.n_labels * a.width);
}

// exp(m_t - max m_t) of every position; returns the sum of the maxima, or NaN if a range is too wide.
template <class Width>
static double fill_matrices(const Lattice<Width>& a) {
    double shift = 0.0;
    const int64_t n = a.n_labels, width = a.width;
    for (int64_t t = 1; t < a.length; ++t) {
        const double* m = a.scores + t * n * width;
        double low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < n; ++j) {
                const double x = m[i * width + j];
                low = x < low ? x : low;
                high = x > high ? x : high;
            }
        if (!(high - low <= kMaxRange)) return NAN;
        double* out = a.matrices + t * n * width;
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < width; j += kLanes) {
                const V x = exp_nonpositive(load(m + i * width + j) - splat(high));
                store(out + i * width + j, labels_or(x, V{}, j, n, width));
            }
        shift += high;
    }
    return shift;
}

// Scaled forward-backward: fills alpha, node and e as Lattice says; returns log Z.
template <class Width>
static double scaled_recursions(const ChainWeights& w, const Lattice<Width>& a) {
    const int64_t n = a.n_labels, length = a.length;
    const Width width = a.width;
    double shift = a.matrices ? fill_matrices(a) : w.shift * static_cast<double>(length - 1);
    if (std::isnan(shift)) return NAN;
    double drift = a.matrices ? kMaxRange : w.range;
    if (const double growth = std::log(static_cast<double>(n)); drift < growth) drift = growth;
    int64_t period = static_cast<int64_t>(kMaxDrift / (drift + 0.1));
    if (period < 1) period = 1;

    double log_z = 0.0;
    for (int64_t t = 0; t < length; ++t) log_z += exp_row(a.u + t * width, n, width, a.e + t * width);

    for (int64_t j = 0; j < width; ++j) {
        a.alpha[j] = a.e[j];
        a.node[(length - 1) * width + j] = j < n ? 1.0 : 0.0;
    }
    a.factor[0] = 1.0;
    double* b = a.edge;
    // The two recursions are independent: side by side they hide each other's latency.
    for (int64_t step = 1; step < length; ++step) {
        const int64_t t = step, s = length - step;
        const double* forward = a.matrices ? a.matrices + t * n * width : w.exp_transitions;
        over_blocks(width,
                    RowTimesMatrix{a.alpha + (t - 1) * width, forward, n, width, a.e + t * width, a.alpha + t * width});
        multiply_rows(a.e + s * width, a.node + s * width, width, b);
        double* beta = a.node + (s - 1) * width;
        if (a.matrices) {
            const double* m = a.matrices + s * n * width;
            for (int64_t j = 0; j < width; ++j) beta[j] = 0.0;
            for (int64_t i = 0; i < n; ++i) {
                V total = load(m + i * width) * load(b);
                for (int64_t j = kLanes; j < width; j += kLanes) total += load(m + i * width + j) * load(b + j);
                beta[i] = sum(total);
            }
        } else {
            over_blocks(width, RowTimesMatrix{b, w.exp_transposed, n, width, nullptr, beta});
        }
        a.factor[t] = 1.0;
        if (step % period == 0) {
            const double total = row_sum(a.alpha + t * width, width);
            log_z += std::log(total);
            a.factor[t] = 1.0 / total;
            scale_row(a.alpha + t * width, width, 1.0 / total);
            scale_row(beta, width, 1.0 / row_sum(beta, width));
        }
    }
    log_z += std::log(row_sum(a.alpha + (length - 1) * width, width)) + shift;

    for (int64_t t = 0; t < length; ++t) {
        double *alpha = a.alpha + t * width, *node = a.node + t * width, *e = a.e + t * width;
        V total = load(alpha) * load(node);
        for (int64_t j = kLanes; j < width; j += kLanes) total += load(alpha + j) * load(node + j);
        const double c = 1.0 / sum(total);
        const V scale = splat(c), edge_scale = splat(c * a.factor[t]);
        for (int64_t j = 0; j < width; j += kLanes) {
            const V beta = load(node + j);
            store(node + j, load(alpha + j) * beta * scale);
            store(e + j, load(e + j) * beta * edge_scale);
        }
    }
    return log_z;
}

CRFKIT_INLINE double log_sum_exp(const double* x, int64_t n) {
    double top = -INFINITY, total = 0.0;
    for (int64_t i = 0; i < n; ++i) top = x[i] > top ? x[i] : top;
    if (!std::isfinite(top)) return top;
    for (int64_t i = 0; i < n; ++i) total += std::exp(x[i] - top);
    return top + std::log(total);
}

template <class Width>
CRFKIT_INLINE const double* pair_potentials(const ChainWeights& w, const Lattice<Width>& a, int64_t t) {
    return a.scores ? a.scores + t * a.n_labels * a.width : w.transitions;
}

// The same in log space, for any range of potentials, -inf included: alpha and e hold log alpha_t(j)
// and u_t(j) + log beta_t(j); node holds marginals. Returns log Z.
template <class Width>
static double log_recursions(const ChainWeights& w, const Lattice<Width>& a) {
    const int64_t n = a.n_labels, width = a.width, length = a.length;
    double* terms = a.edge;
    for (int64_t j = 0; j < n; ++j) a.alpha[j] = a.u[j];
    for (int64_t t = 1; t < length; ++t) {
        const double* m = pair_potentials(w, a, t);
        for (int64_t j = 0; j < n; ++j) {
            for (int64_t i = 0; i < n; ++i) terms[i] = a.alpha[(t - 1) * width + i] + m[i * width + j];
            a.alpha[t * width + j] = a.u[t * width + j] + log_sum_exp(terms, n);
        }
    }
    const double log_z = log_sum_exp(a.alpha + (length - 1) * width, n);
    for (int64_t t = length - 1; t >= 0; --t) {
        const double* m = t + 1 < length ? pair_potentials(w, a, t + 1) : nullptr;
        for (int64_t j = 0; j < width; ++j) a.node[t * width + j] = 0.0;
        for (int64_t i = 0; i < n; ++i) {
            double beta = 0.0;
            if (m) {
                for (int64_t j = 0; j < n; ++j) terms[j] = m[i * width + j] + a.e[(t + 1) * width + j];
                beta = log_sum_exp(terms, n);
            }
            a.e[t * width + i] = a.u[t * width + i] + beta;
            a.node[t * width + i] = std::exp(a.alpha[t * width + i] + beta - log_z);
        }
    }
    return log_z;
}

struct Inference {
    double log_z;
    bool in_log_space;
};

// Marginals of the filled lattice, in scaled space where that is safe.
template <class Width>
static Inference infer(const ChainWeights& w, const Lattice<Width>& a) {
    if (w.range <= kMaxRange) {
        const double log_z = scaled_recursions(w, a);
        if (!std::isnan(log_z)) return {log_z, false};
        if (!a.matrices) return {log_z, false};  // the input is NaN
    }
    return {log_recursions(w, a), true};
}

// a.edge[L][P] = marginal of the pair (t - 1, t); 0 in the padding.
template <class Width>
static void edge_marginal(const ChainWeights& w, const Lattice<Width>& a, const Inference& found, int64_t t) {
    const int64_t n = a.n_labels, width = a.width;
    const double *alpha = a.alpha + (t - 1) * width, *e = a.e + t * width;
    if (found.in_log_space) {
        const double* m = pair_potentials(w, a, t);
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < width; ++j)
                a.edge[i * width + j] = j < n ? std::exp(alpha[i] + m[i * width + j] + e[j] - found.log_z) : 0.0;
        return;
    }
    const double* m = a.matrices ? a.matrices + t * n * width : w.exp_transitions;
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < width; j += kLanes)
            store(a.edge + i * width + j, splat(alpha[i]) * load(m + i * width + j) * load(e + j));
}
