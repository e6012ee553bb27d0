// Derivatives of the marginals along a direction v in weight space: the products of Hessians with vectors.
// Part of curvature.cpp.
//
// With ubar, mbar the scores and jumps of v, normalised rows (alpha beta = p) and Mt = M mbar elementwise:
//   alpha'_t = ubar_t alpha_t + E_t (alpha'_{t-1} M + alpha_{t-1} Mt)
//   b'_t     = ubar_t b_t + E_t beta'_t,          beta'_{t-1} = M b'_t + Mt b_t
//   p'_t     = alpha'_t beta_t + alpha_t beta'_t - z p_t,     z = sum_s (alpha'_t beta_t + alpha_t beta'_t)
//   edges'   = M (alpha'_{t-1} b_t + alpha_{t-1} (b'_t - z b_t)) + Mt (alpha_{t-1} b_t)
// (Tsuboi et al. 2011; the same recursions over dual numbers.) z is the mean of v's score.

// Further scratch, after the lattice: further_size of it.
struct TangentRows {
    double *u, *alpha, *b, *node, *point_b;  // [T][span] each; node holds alpha beta', then p'
    double* beta;                            // [2][span]
    double* kept;                            // [3][T][span], where there is no cache
    double* tilted;                          // [2][L][P]: Mt of one position, and its scores
};

template <class Shape>
CRFKIT_INLINE TangentRows make_tangent(double* scratch, int64_t length, const Shape& shape) {
    const int64_t rows = length * shape.span();
    return {scratch,
            scratch + rows,
            scratch + 2 * rows,
            scratch + 3 * rows,
            scratch + 4 * rows,
            scratch + 5 * rows,
            scratch + 5 * rows + 2 * shape.span(),
            scratch + 8 * rows + 2 * shape.span()};
}

// out = x y + e (out + add)
CRFKIT_INLINE void tangent_row(const double* x, const double* y, const double* e, const double* add, int64_t span,
                               double* out) {
    for (int64_t j = 0; j < span; j += kLanes)
        store(out + j, load(x + j) * load(y + j) + load(e + j) * (load(out + j) + load(add + j)));
}

// M and Mt of the jumps to t; of their transposes in order 1 with pair attributes there are none.
struct Jumps {
    const double *m, *tilted;
};

template <class Shape>
CRFKIT_INLINE Jumps jumps_at(const ChainPlan& data, const ChainWeights& w, const ChainTangent& v,
                             const Lattice<Shape>& a, const TangentRows& d, int64_t first, int64_t t) {
    if (!a.matrices) return {w.exp_jumps, v.tilted};
    const int64_t square = a.shape.n_labels * a.shape.width;
    const double* m = a.matrices + t * square;
    double* scores = d.tilted + square;
    pair_scores(data, *v.direction, first + t, scores);
    for (int64_t i = 0; i < square; ++i) d.tilted[i] = m[i] * scores[i];
    return {m, d.tilted};
}

// d.node = p', d.alpha = alpha', d.b = b' - z b, d.point_b = b, all of one sequence.
template <class Shape>
void scaled_tangent(const ChainPlan& data, const ChainWeights& w, const ChainTangent& v, int64_t first,
                    const Lattice<Shape>& a, const KeptRows<Shape>& kept, const TangentRows& d) {
    const Shape& shape = a.shape;
    const auto span = shape.span();
    const int64_t length = a.length;
    multiply_rows(d.u, kept.alpha(0), span, d.alpha);
    double *beta = d.beta, *temporary = d.beta + span;
    for (int64_t s = 0; s < span; ++s) beta[s] = 0.0;
    for (int64_t step = 0; step < length; ++step) {
        if (const int64_t t = step; t > 0) {
            const Jumps jumps = jumps_at(data, w, v, a, d, first, t);
            double* out = d.alpha + t * span;
            shape.forward(d.alpha + (t - 1) * span, jumps.m, nullptr, out);
            shape.forward(kept.alpha(t - 1), jumps.tilted, nullptr, temporary);
            tangent_row(d.u + t * span, kept.alpha(t), kept.e(t), temporary, span, out);
        }
        const int64_t t = length - 1 - step;
        double *b = d.b + t * span, *point_b = d.point_b + t * span;
        multiply_rows(kept.alpha(t), beta, span, d.node + t * span);
        multiply_rows(kept.e(t), kept.beta(t), span, point_b);
        for (int64_t j = 0; j < span; j += kLanes)
            store(b + j, load(d.u + t * span + j) * load(point_b + j) + load(kept.e(t) + j) * load(beta + j));
        if (t == 0) continue;
        if (a.matrices) {
            const Jumps jumps = jumps_at(data, w, v, a, d, first, t);
            const int64_t n = shape.n_labels, width = shape.width;
            for (int64_t i = 0; i < n; ++i)
                beta[i] = row_dot(jumps.m + i * width, b, width) + row_dot(jumps.tilted + i * width, point_b, width);
        } else {
            shape.backward(b, w.exp_jumps_transposed, a.edge, beta);
            shape.backward(point_b, v.tilted_transposed, a.edge, temporary);
            add_row(beta, temporary, span);
        }
    }
    for (int64_t t = 0; t < length; ++t) {
        double *node = d.node + t * span, *b = d.b + t * span;
        V total = {};
        for (int64_t j = 0; j < span; j += kLanes) {
            const V x = load(node + j) + load(d.alpha + t * span + j) * load(kept.beta(t) + j);
            store(node + j, x);
            total += x;
        }
        const V z = splat(sum(total));
        for (int64_t j = 0; j < span; j += kLanes) {
            store(node + j, load(node + j) - z * (load(kept.alpha(t) + j) * load(kept.beta(t) + j)));
            store(b + j, load(b + j) - z * load(d.point_b + t * span + j));
        }
    }
}

// The same in log space, by conditional means of v's score given the state at t: F of what lies before (and at) t,
// B of what lies behind, each less its mean over the states, so that nothing grows with the length. Adds the
// derivatives of the edges to g; the lattice holds log_recursions' results.
template <class Shape>
void log_tangent(const ChainPlan& data, const ChainWeights& w, const ChainTangent& v, const ChainGradient& g,
                 int64_t first, double weight, const Inference& found, const Lattice<Shape>& a, const TangentRows& d) {
    const Shape& shape = a.shape;
    const int64_t span = shape.span(), width = shape.width, length = a.length, n = shape.n_labels;
    double *F = d.alpha, *B = d.b, *terms = a.edge;
    const auto scores_of_v = [&](int64_t t) {
        if (!a.scores) return v.direction->jumps;
        pair_scores(data, *v.direction, first + t, d.tilted);
        return static_cast<const double*>(d.tilted);
    };
    const auto mean = [&](int64_t count, const auto& value) {  // of value(i) under exp(terms)
        const double total = log_sum_exp(terms, count);
        if (!std::isfinite(total)) return 0.0;
        double result = 0.0;
        for (int64_t i = 0; i < count; ++i)
            if (const double p = std::exp(terms[i] - total); p > 0.0) result += p * value(i);
        return result;
    };
    const auto centre = [&](double* x, int64_t t) {
        double total = 0.0;
        shape.each([&](int64_t s) { total += a.node[t * span + s] * x[t * span + s]; });
        shape.each([&](int64_t s) { x[t * span + s] -= total; });
    };
    for (int64_t i = 0; i < length * span; ++i) F[i] = B[i] = 0.0;
    for (int64_t t = 0; t < length; ++t) {
        const double *m = jumps_to(w, a, t), *bar = t > 0 ? scores_of_v(t) : nullptr;
        shape.each([&](int64_t s) {
            double before = 0.0;
            if (t > 0 && s < n * width) {
                for (int64_t i = 0; i < shape.n_before(); ++i) {
                    const int64_t r = shape.before(s, i);
                    terms[i] = a.alpha[(t - 1) * span + r] + m[r * width + shape.label(s)];
                }
                before = mean(shape.n_before(), [&](int64_t i) {
                    const int64_t r = shape.before(s, i);
                    return F[(t - 1) * span + r] + bar[r * width + shape.label(s)];
                });
            }
            F[t * span + s] = d.u[t * span + s] + before;
        });
        centre(F, t);
    }
    for (int64_t t = length - 1; t > 0; --t) {
        const double *m = jumps_to(w, a, t), *bar = scores_of_v(t);
        shape.each([&](int64_t s) {
            for (int64_t k = 0; k < n; ++k) terms[k] = m[s * width + k] + a.e[t * span + shape.after(s, k)];
            B[(t - 1) * span + s] = mean(n, [&](int64_t k) {
                const int64_t r = t * span + shape.after(s, k);
                return bar[s * width + k] + d.u[r] + B[r];
            });
        });
        centre(B, t - 1);
    }
    for (int64_t t = 0; t < length; ++t) {
        const double *f = F + t * span, *b = B + t * span, *p = a.node + t * span;
        double *out = d.node + t * span, z = 0.0;
        shape.each([&](int64_t s) { z += p[s] * (f[s] + b[s]); });
        for (int64_t s = 0; s < span; ++s) out[s] = 0.0;
        shape.each([&](int64_t s) { out[s] = p[s] * (f[s] + b[s] - z); });
    }
    for (int64_t t = 1; t < length; ++t) {
        const double* bar = scores_of_v(t);
        edge_marginal(w, a, found, t);
        const auto score = [&](int64_t s, int64_t k) {
            const int64_t r = t * span + shape.after(s, k);
            return F[(t - 1) * span + s] + bar[s * width + k] + d.u[r] + B[r];
        };
        double z = 0.0;
        const auto each_edge = [&](const auto& f) {
            shape.each([&](int64_t s) {
                for (int64_t k = 0; k < n; ++k)
                    if (a.edge[s * width + k] > 0.0) f(s, k);
            });
        };
        each_edge([&](int64_t s, int64_t k) { z += a.edge[s * width + k] * score(s, k); });
        each_edge([&](int64_t s, int64_t k) { a.edge[s * width + k] *= weight * (score(s, k) - z); });
        add_row(g.jumps, a.edge, shape.jump_rows() * width);
        if (a.scores) add_pair_residual(data, w, g, first + t, a.edge);
    }
}
