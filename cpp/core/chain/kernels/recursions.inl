// Forward-backward over one sequence. Part of inference.hpp.
//
// With scores u_t(s), jumps m_t(r, s) and E_t(s) = exp(u_t(s) - max u_t):
//   alpha_0 = E_0,       alpha_t(s) = E_t(s) sum_r alpha_{t-1}(r) M_t(r, s)
//   beta_{T-1} = 1,      b_t(s) = E_t(s) beta_t(s),   beta_{t-1}(r) = sum_s M_t(r, s) b_t(s)
//   node marginal        alpha_t(s) beta_t(s) / c_t,                     c_t = sum_s alpha_t(s) beta_t(s)
//   edge marginal        alpha_{t-1}(r) M_t(r, s) b_t(s) f_t / c_t
// f_t is the factor by which alpha_t was rescaled (1 at most positions). Where all labels may follow each
// other, max E_t = 1 bounds how alpha shrinks: by exp(-range of m) per step at the most; it grows by L; and so
// does beta: that fixes how often to rescale. Elsewhere (masks, order 2) every step is rescaled and checked.
// Where the range or the rounding is too much, the log-space twin runs instead.

constexpr Real kLowest = -std::numeric_limits<Real>::infinity();
constexpr bool kSingle = sizeof(Real) == 4;
constexpr double kMaxRange = kSingle ? kMaxSingleRange : 200.0;
constexpr double kMaxDrift = kSingle ? 40.0 : 230.0;  // alpha and beta stay within e^+-this of 1, their products finite
constexpr double kLeastSum = kSingle ? 1e-15 : 1e-150;  // below it, terms that were rounded to zero may matter

// Scratch for one sequence of length T.
struct LatticeRows {
    int64_t length;
    Real* u;         // [T][span] scores; -inf where a mask forbids the state
    Real* e;         // [T][span] E, later b scaled so that alpha_{t-1}(r) M(r, s) e_t(s) is the edge marginal
    Real* alpha;     // [T][span]
    Real* node;      // [T][span] beta, later node marginals
    Real* edge;      // [jump rows][P] one edge marginal; temporaries before
    Real* factor;    // [T] f_t
    Real* square;    // [L][P] and a row: label pairs of one position
    Real* scores;    // [T][L][P] pair potentials m_t, null without pair attributes and in order 2
    Real* matrices;  // [T][L][P] exp(m_t - max m_t)
    bool limited;    // single positions forbid labels
};

template <class Shape>
struct Lattice : LatticeRows {
    Shape shape;
};

template <class Shape>
CRFKIT_INLINE auto plain(const Lattice<Shape>& a) {
    const LatticeRows& rows = a;
    return Lattice<std::decay_t<decltype(plain(a.shape))>>{rows, plain(a.shape)};
}

template <class Shape>
CRFKIT_INLINE int64_t lattice_size(const Shape& shape, int64_t length, bool pairs) {
    const int64_t square = shape.n_labels * shape.width;
    return 4 * length * shape.span() + (shape.jump_rows() + 1) * shape.width + length + 2 * square + shape.width +
           (pairs ? 2 * length * square : 0);
}

template <class Shape>
CRFKIT_INLINE Lattice<Shape> make_lattice(Real* scratch, int64_t length, const Shape& shape, bool pairs) {
    const int64_t rows = length * shape.span(), square = shape.n_labels * shape.width;
    Lattice<Shape> a{{length, scratch, scratch + rows, scratch + 2 * rows, scratch + 3 * rows, scratch + 4 * rows,
                      nullptr, nullptr, nullptr, nullptr, false},
                     shape};
    a.factor = a.edge + (shape.jump_rows() + 1) * shape.width;
    a.square = a.factor + length;
    if (pairs) {
        a.scores = a.square + 2 * square + shape.width;
        a.matrices = a.scores + length * square;
    }
    return a;
}

CRFKIT_INLINE Real row_sum(const Real* x, int64_t width) {
    V total = load(x);
    for (int64_t j = kLanes; j < width; j += kLanes) total += load(x + j);
    return sum(total);
}

CRFKIT_INLINE Real row_dot(const Real* x, const Real* y, int64_t width) {
    V total = load(x) * load(y);
    for (int64_t j = kLanes; j < width; j += kLanes) total += load(x + j) * load(y + j);
    return sum(total);
}

CRFKIT_INLINE void scale_row(Real* x, int64_t width, double factor) {
    for (int64_t j = 0; j < width; j += kLanes) store(x + j, load(x + j) * splat(static_cast<Real>(factor)));
}

CRFKIT_INLINE void multiply_rows(const Real* x, const Real* y, int64_t width, Real* out) {
    for (int64_t j = 0; j < width; j += kLanes) store(out + j, load(x + j) * load(y + j));
}

// x in the lanes that are labels, `other` in the padding: only the last kPad lanes of a row hold any.
CRFKIT_INLINE V labels_or(V x, V other, int64_t column, int64_t n_labels, int64_t width) {
    return column + kLanes <= width - kPad<Real> ? x : label_mask(column, n_labels) ? x : other;
}

// e = exp(u - max u), 0 in the padding; returns the maximum.
CRFKIT_INLINE Real exp_row(const Real* u, int64_t n_labels, int64_t width, Real* e) {
    const V lowest = splat(kLowest);
    V top = lowest;
    for (int64_t j = 0; j < width; j += kLanes) top = larger(top, labels_or(load(u + j), lowest, j, n_labels, width));
    const Real shift = maximum(top);
    for (int64_t j = 0; j < width; j += kLanes)
        store(e + j, labels_or(exp_nonpositive(load(u + j) - splat(shift)), V{}, j, n_labels, width));
    return shift;
}

// The same under a mask, which is 0 in the padding.
CRFKIT_INLINE Real exp_masked_row(const Real* u, const Real* mask, int64_t span, Real* e) {
    V top = splat(kLowest);
    for (int64_t j = 0; j < span; j += kLanes) top = larger(top, load(u + j));
    const Real shift = maximum(top);
    for (int64_t j = 0; j < span; j += kLanes)
        store(e + j, exp_nonpositive(load(u + j) - splat(shift)) * load(mask + j));
    return shift;
}

CRFKIT_INLINE void forbid(const Real* mask, int64_t span, Real* u) {
    for (int64_t s = 0; mask && s < span; ++s)
        if (mask[s] == 0) u[s] = kLowest;
}

// -inf for the labels that position t forbids, in a row of labels.
CRFKIT_INLINE void forbid_labels(const ChainPlan& data, int64_t t, int64_t n_labels, Real* u) {
    for (int64_t j = 0; data.allowed && j < n_labels; ++j)
        if (!data.allowed[t * n_labels + j]) u[j] = kLowest;
}

CRFKIT_INLINE const Real* mask_at(const Weights& w, int64_t t) { return t == 0 ? w.first_mask : w.inner_mask; }

// The label scores at t, with the cost of the labels that are not the true one.
template <class Width>
CRFKIT_INLINE void label_scores(const ChainPlan& data, const Weights& w, Width width, int64_t t, Real* u) {
    position_scores(data, w, width, t, u);
    if (data.cost) {
        const double* cost = data.cost + data.labels[t] * w.n_labels;
        for (int64_t j = 0; j < w.n_labels; ++j) u[j] += static_cast<Real>(cost[j]);
    }
    forbid_labels(data, t, w.n_labels, u);
}

// Scores of sequence n into the lattice. `masked`: -inf where a state is not allowed.
template <class Width>
void fill_scores(const ChainPlan& data, const Weights& w, int64_t n, const Lattice<LabelStates<Width>>& a,
                 bool masked = true) {
    const int64_t first = data.starts[n];
    const Width width = a.shape.width;
    for (int64_t t = 0; t < a.length; ++t) {
        label_scores(data, w, width, first + t, a.u + t * width);
        if (masked && w.first_mask) forbid(mask_at(w, t), width, a.u + t * width);
    }
    if (masked && w.last_mask && a.length > 0) forbid(w.last_mask, width, a.u + (a.length - 1) * width);
    for (int64_t t = 1; a.scores && t < a.length; ++t)
        pair_scores(data, w, first + t, a.scores + t * a.shape.n_labels * width);
}

// In inference.cpp.
void fill_scores(const ChainPlan& data, const Weights& w, int64_t n, const Lattice<LabelPairStates>& a,
                 bool masked = true);

// exp(m_t - max m_t) of every position; returns the sum of the maxima, or NaN if a range is too wide.
template <class Shape>
double fill_matrices(const Lattice<Shape>& a) {
    double shift = 0.0;
    const int64_t n = a.shape.n_labels, width = a.shape.width;
    for (int64_t t = 1; t < a.length; ++t) {
        const Real* m = a.scores + t * n * width;
        Real low = -kLowest, high = kLowest;
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < n; ++j) {
                const Real x = m[i * width + j];
                low = x < low && x != kLowest ? x : low;
                high = x > high ? x : high;
            }
        if (!(high - low <= kMaxRange)) return NAN;
        Real* out = a.matrices + t * n * width;
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < width; j += kLanes) {
                const V score = load(m + i * width + j);
                const V x = score > splat(kLowest) ? exp_nonpositive(score - splat(high)) : V{};
                store(out + i * width + j, labels_or(x, V{}, j, n, width));
            }
        shift += high;
    }
    return shift;
}

// Rows that a Hessian product starts from; see ChainCache.
template <class Shape>
struct KeptRows {
    const Shape& shape;
    int64_t length;
    Real* rows;
    CRFKIT_INLINE Real* alpha(int64_t t) const { return rows + t * shape.span(); }
    CRFKIT_INLINE Real* e(int64_t t) const { return rows + (length + t) * shape.span(); }
    CRFKIT_INLINE Real* beta(int64_t t) const { return rows + (2 * length + t) * shape.span(); }
};

// beta_{t-1} from b_t.
template <class Shape>
CRFKIT_INLINE void step_back(const Weights& w, const Lattice<Shape>& a, int64_t t, const Real* b, Real* beta) {
    if (!a.matrices) {
        a.shape.backward(b, w.exp_jumps_transposed, a.edge + a.shape.span(), beta);
        return;
    }
    const int64_t n = a.shape.n_labels, width = a.shape.width;
    const Real* m = a.matrices + t * n * width;
    for (int64_t j = n; j < width; ++j) beta[j] = 0.0;
    for (int64_t i = 0; i < n; ++i) beta[i] = row_dot(m + i * width, b, width);
}

// Scaled forward-backward: fills alpha, node and e as Lattice says, and `kept` where its rows are not null; returns
// log Z, or NaN where scaled space is not enough.
template <class Shape>
double scaled_recursions(const Weights& w, const Lattice<Shape>& a, const KeptRows<Shape>& kept) {
    const int64_t n = a.shape.n_labels, length = a.length;
    const auto span = a.shape.span();
    double shift = a.matrices ? fill_matrices(plain(a)) : w.shift * static_cast<Real>(length - 1);
    if (std::isnan(shift)) return NAN;
    double drift = a.matrices ? kMaxRange : w.range;
    if (const double growth = std::log(static_cast<Real>(n)); drift < growth) drift = growth;
    int64_t period = static_cast<int64_t>(kMaxDrift / (drift + 0.1));
    const bool masked = w.first_mask || a.limited;
    if (period < 1 || masked) period = 1;

    double log_z = 0.0;
    for (int64_t t = 0; t < length; ++t)
        log_z += w.first_mask ? exp_masked_row(a.u + t * span, mask_at(w, t), span, a.e + t * span)
                              : exp_row(a.u + t * span, n, span, a.e + t * span);
    for (int64_t i = 0; a.limited && i < length * span; ++i)  // of -inf, exp_nonpositive is not 0
        if (a.u[i] == kLowest) a.e[i] = 0;
    if (w.last_mask) multiply_rows(a.e + (length - 1) * span, w.last_mask, span, a.e + (length - 1) * span);

    for (int64_t s = 0; s < span; ++s) {
        a.alpha[s] = a.e[s];
        a.node[(length - 1) * span + s] = masked || s < n ? Real{1} : Real{};
    }
    a.factor[0] = 1.0;
    Real* b = a.edge;
    // The two recursions are independent: side by side they hide each other's latency.
    for (int64_t step = 1; step < length; ++step) {
        const int64_t t = step, s = length - step;
        const Real* forward = a.matrices ? a.matrices + t * n * a.shape.width : w.exp_jumps;
        a.shape.forward(a.alpha + (t - 1) * span, forward, a.e + t * span, a.alpha + t * span);
        multiply_rows(a.e + s * span, a.node + s * span, span, b);
        Real* beta = a.node + (s - 1) * span;
        step_back(w, a, s, b, beta);
        a.factor[t] = 1.0;
        if (step % period == 0) {
            const double total = row_sum(a.alpha + t * span, span), back = row_sum(beta, span);
            if (masked && !(total > kLeastSum && back > kLeastSum)) return NAN;
            log_z += std::log(total);
            a.factor[t] = static_cast<Real>(1.0 / total);
            scale_row(a.alpha + t * span, span, 1.0 / total);
            scale_row(beta, span, 1.0 / back);
        }
    }
    const double last = row_sum(a.alpha + (length - 1) * span, span);
    log_z += std::log(last) + shift;

    for (int64_t t = 0; t < length; ++t) {
        Real *alpha = a.alpha + t * span, *node = a.node + t * span, *e = a.e + t * span;
        const double total = row_dot(alpha, node, span);
        if (masked && !(total > kLeastSum)) return NAN;
        const V scale = splat(static_cast<Real>(1.0 / total)), factor = splat(a.factor[t]);
        for (int64_t j = 0; j < span; j += kLanes) {
            const V beta = load(node + j) * scale, scaled = load(e + j) * factor;
            if (kept.rows) {
                store(kept.alpha(t) + j, load(alpha + j));
                store(kept.e(t) + j, scaled);
                store(kept.beta(t) + j, beta);
            }
            store(node + j, load(alpha + j) * beta);
            store(e + j, scaled * beta);
        }
    }
    return log_z;
}

CRFKIT_INLINE double log_sum_exp(const Real* x, int64_t n) {
    double top = -INFINITY, total = 0.0;
    for (int64_t i = 0; i < n; ++i) top = x[i] > top ? x[i] : top;
    if (!std::isfinite(top)) return top;
    for (int64_t i = 0; i < n; ++i) total += std::exp(x[i] - top);
    return top + std::log(total);
}

// Log-potentials of the jumps to position t, a row of P for each state that they leave.
template <class Shape>
CRFKIT_INLINE const Real* jumps_to(const Weights& w, const Lattice<Shape>& a, int64_t t) {
    return a.scores ? a.scores + t * a.shape.n_labels * a.shape.width : w.jumps;
}

// The same in log space, for any range of potentials, -inf included: alpha holds log alpha_t(s), normalised, e holds
// u_t(s) + log beta_t(s), normalised likewise; node holds marginals; factor[t] is what makes edge marginals of
// alpha_{t-1} + m_t + e_t. Nothing grows with the length, so nothing is lost to rounding. Returns log Z.
template <class Shape>
double log_recursions(const Weights& w, const Lattice<Shape>& a) {
    const Shape& shape = a.shape;
    const int64_t span = shape.span(), width = shape.width, length = a.length;
    Real* terms = a.edge;
    for (int64_t i = 0; i < length * span; ++i) a.alpha[i] = a.e[i] = kLowest, a.node[i] = 0;
    // log sum exp over the states of x + y
    const auto total_of = [&](const Real* x, const Real* y) {
        int64_t n = 0;
        shape.each([&](int64_t s) { terms[n++] = y ? x[s] + y[s] : x[s]; });
        return log_sum_exp(terms, n);
    };
    double log_z = 0.0;
    for (int64_t t = 0; t < length; ++t) {
        const Real* m = jumps_to(w, a, t);
        Real* alpha = a.alpha + t * span;
        shape.each([&](int64_t s) {
            if (t == 0) {
                alpha[s] = a.u[s];
            } else if (s < shape.n_labels * width) {  // order 2: nothing leads to the states of the start
                for (int64_t i = 0; i < shape.n_before(); ++i) {
                    const int64_t r = shape.before(s, i);
                    terms[i] = a.alpha[(t - 1) * span + r] + m[r * width + shape.label(s)];
                }
                alpha[s] = static_cast<Real>(a.u[t * span + s] + log_sum_exp(terms, shape.n_before()));
            }
        });
        const double total = total_of(alpha, nullptr);
        log_z += total;
        if (!std::isfinite(total)) return log_z;  // no labelling is allowed, or the input is NaN
        shape.each([&](int64_t s) { alpha[s] = static_cast<Real>(alpha[s] - total); });
    }
    for (int64_t t = length - 1; t >= 0; --t) {
        const Real* m = t + 1 < length ? jumps_to(w, a, t + 1) : nullptr;
        Real *e = a.e + t * span, *node = a.node + t * span;
        shape.each([&](int64_t s) {
            for (int64_t k = 0; m && k < shape.n_labels; ++k)
                terms[k] = m[s * width + k] + a.e[(t + 1) * span + shape.after(s, k)];
            node[s] = m ? static_cast<Real>(log_sum_exp(terms, shape.n_labels)) : Real{};  // log beta
        });
        const double total = total_of(a.alpha + t * span, node);
        if (t + 1 < length) a.factor[t + 1] = static_cast<Real>(total);
        Real top = kLowest;
        shape.each([&](int64_t s) {
            e[s] = a.u[t * span + s] + node[s];
            top = e[s] > top ? e[s] : top;
            node[s] = static_cast<Real>(std::exp(a.alpha[t * span + s] + node[s] - total));
        });
        shape.each([&](int64_t s) { e[s] -= top; });
    }
    return log_z;
}

struct Inference {
    double log_z;
    bool in_log_space;
};

// Marginals of the filled lattice, in scaled space where that is safe. Leaves rows for Hessian products in
// `kept`, unless it runs in log space.
template <class Shape>
Inference infer(const Weights& w, const Lattice<Shape>& a, Real* kept = nullptr) {
    if (w.range <= kMaxRange) {
        const double log_z = scaled_recursions(w, a, KeptRows<Shape>{a.shape, a.length, kept});
        if (!std::isnan(log_z)) return {log_z, false};
        if (!a.matrices && !w.first_mask && !a.limited) return {log_z, false};  // the input is NaN
    }
    return {log_recursions(w, plain(a)), true};
}

template <class Shape>
void plain_edge_marginal(const Weights& w, const Lattice<Shape>& a, const Inference& found, int64_t t) {
    const Shape& shape = a.shape;
    const int64_t span = shape.span(), width = shape.width;
    const Real *alpha = a.alpha + (t - 1) * span, *e = a.e + t * span;
    const Real* log_m = jumps_to(w, a, t);
    const Real* m = a.matrices ? a.matrices + t * shape.n_labels * width : w.exp_jumps;
    for (int64_t i = 0; i < shape.jump_rows() * width; ++i) a.edge[i] = 0.0;
    shape.each([&](int64_t s) {
        Real* out = a.edge + s * width;
        const Real* next = e + shape.after(s, 0);
        if (found.in_log_space)
            for (int64_t k = 0; k < shape.n_labels; ++k)
                out[k] = std::exp(alpha[s] + log_m[s * width + k] + next[k] - a.factor[t]);
        else
            for (int64_t k = 0; k < width; k += kLanes)
                store(out + k, splat(alpha[s]) * load(m + s * width + k) * load(next + k));
    });
}

// a.edge[jump rows][P] = marginal of the jump to t; 0 in the padding.
template <class Shape>
CRFKIT_INLINE void edge_marginal(const Weights& w, const Lattice<Shape>& a, const Inference& found, int64_t t) {
    plain_edge_marginal(w, plain(a), found, t);
}
