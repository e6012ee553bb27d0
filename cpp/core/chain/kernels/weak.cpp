// The likelihood of what is known of the labels, position by position, each with a weight of its own.
//
// Position t allows the labels K_t. With L_t = log of the sum over the labellings that keep to K_0 … K_t (and are free
// behind t), L_{-1} = log Z, and l_t = L_t - L_{t-1} = log p(y_t in K_t | y_0 in K_0, …, y_{t-1} in K_{t-1}, x):
//   loss = - sum_t v_t l_t = - sum_{t >= -1} c_t L_t,   c_{-1} = -v_0, c_t = v_t - v_{t+1}, c_{T-1} = v_{T-1}
// All v_t = 1 leave log Z - log Z(K). The gradient of L_t is the expectation under the chain that keeps to K up to t.
// All of them together take one pass. The posterior is a Markov chain, P_t(r, s) = M_t(r, s) b_t(s) / beta_{t-1}(r):
//   k_t = [s in K_t] (k_{t-1} P_t) / n_t, n_t so that sum_s k_t(s) = 1:  l_t = log n_t,  k_0 from the marginal p_0
//   A_t = (A_{t-1} + c_{t-1} k_{t-1}) P_t,  A_0 = c_{-1} p_0             the parts that ended before t
//   B_{t-1} = c_{t-1} + P_t ([K_t] B_t) / n_t,  B_{T-1} = c_{T-1}        those that end at t - 1 or behind it
//   node:  A_t + k_t B_t        edge:  P_t(r, s) (A_{t-1} + c_{t-1} k_{t-1})(r) + k_{t-1}(r) P_t(r, s) [K_t] B_t(s) /
//   n_t

#include "entries.hpp"

namespace crfkit::CRFKIT_SPACE {
namespace {

// Whether what is known at position t allows the state.
template <class Shape>
CRFKIT_INLINE bool keeps(const ChainPlan& data, const Shape& shape, int64_t n_labels, int64_t t, int64_t s) {
    const int64_t label = shape.label(s);
    return data.targets ? data.targets[t * n_labels + label] != 0 : data.labels[t] == label;
}

CRFKIT_INLINE double token_weight(const ChainPlan& data, int64_t t) {
    return data.token_weights ? data.token_weights[t] : 1.0;
}

// c_t of a sequence of positions first … first + length.
CRFKIT_INLINE double part_of(const ChainPlan& data, int64_t first, int64_t length, int64_t t) {
    const double here = t < 0 ? 0.0 : token_weight(data, first + t);
    return here - (t + 1 < length ? token_weight(data, first + t + 1) : 0.0);
}

// The loss of a sequence as the sum of c_t L_t, each by an inference of its own; adds to the gradient. Slow, and right
// for any range of scores. The nodes of all parts are added up first, as the gradient of an attribute that occurs once
// is stored, not added. `scratch`: [2][T][span].
template <class Shape>
double weak_by_parts(const ChainPlan& data, const Weights& w, const Gradient& g, int64_t first, double weight,
                     Lattice<Shape> a, Real* scratch) {
    const Shape& shape = a.shape;
    const int64_t span = shape.span(), width = shape.width, square = shape.jump_rows() * width;
    double value = 0.0;
    Real *scores = scratch, *nodes = scratch + a.length * span;
    for (int64_t i = 0; i < a.length * span; ++i) scores[i] = a.u[i], nodes[i] = 0;
    a.limited = true;
    for (int64_t part = -1; part < a.length; ++part) {
        const double c = part_of(data, first, a.length, part);
        if (c == 0.0) continue;
        for (int64_t i = 0; i < a.length * span; ++i) a.u[i] = scores[i];
        for (int64_t t = 0; t <= part; ++t)
            shape.each([&](int64_t s) {
                if (!keeps(data, shape, w.n_labels, first + t, s)) a.u[t * span + s] = kLowest;
            });
        const Inference found = infer(w, a);
        value -= c * found.log_z;
        const double scale = -c * weight;
        for (int64_t i = 0; i < a.length * span; ++i) nodes[i] += static_cast<Real>(scale) * a.node[i];
        for (int64_t t = 1; t < a.length; ++t) {
            edge_marginal(w, a, found, t);
            scale_row(a.edge, square, scale);
            add_row(g.jumps, a.edge, square);
            if (a.scores) add_pair_residual(data, w, g, first + t, a.edge);
        }
    }
    for (int64_t t = 0; t < a.length; ++t) add_states(data, w, g, first + t, t == 0, a, nodes + t * span);
    return value;
}

// Further scratch, after the lattice.
struct WeakRows {
    Real* kept;        // [3][T][span] of infer
    Real *k, *over;    // [T][span] k_t, and k_t / beta_t
    Real *a, *moving;  // [T][span] A_t, and (A_t + c_t k_t) / beta_t
    Real* b;           // [T][span] [K_t] b_t B_t / n_t
};

// The loss of a sequence whose lattice is filled, and its gradient.
template <class Shape>
double weak_loss(const ChainPlan& data, const Weights& w, const Gradient& g, int64_t first, double weight,
                 const Lattice<Shape>& a, Real* scratch) {
    const Shape& shape = a.shape;
    const auto span = shape.span();
    const int64_t length = a.length, rows = length * span, width = shape.width;
    const WeakRows d{scratch,           scratch + 3 * rows, scratch + 4 * rows, scratch + 5 * rows, scratch + 6 * rows,
                     scratch + 7 * rows};
    const auto by_parts = [&] { return weak_by_parts(data, w, g, first, weight, plain(a), scratch); };
    if (infer(w, a, d.kept).in_log_space) return by_parts();
    const KeptRows<Shape> kept{shape, length, d.kept};
    const auto divide = [&](const Real* x, int64_t t, Real* out) {
        const Real* beta = kept.beta(t);
        for (int64_t s = 0; s < span; ++s) out[s] = beta[s] > 0 ? x[s] / beta[s] : Real{};
    };
    const auto jumps = [&](int64_t t) { return a.matrices ? a.matrices + t * shape.n_labels * width : w.exp_jumps; };

    double value = 0.0;
    const auto start = static_cast<Real>(part_of(data, first, length, -1));
    for (int64_t s = 0; s < span; ++s) d.a[s] = start * a.node[s];
    for (int64_t t = 0; t < length; ++t) {
        Real *k = d.k + t * span, *a_t = d.a + t * span, *moving = d.moving + t * span;
        if (t > 0) {
            shape.forward(d.over + (t - 1) * span, jumps(t), a.e + t * span, k);
            shape.forward(moving - span, jumps(t), a.e + t * span, a_t);
        } else {
            for (int64_t s = 0; s < span; ++s) k[s] = a.node[s];
        }
        double total = 0.0;
        shape.each([&](int64_t s) {
            if (k[s] != 0.0) total += k[s] = keeps(data, shape, w.n_labels, first + t, s) ? k[s] : Real{};
        });
        if (!(total > kLeastSum)) return by_parts();
        value -= token_weight(data, first + t) * std::log(total);
        scale_row(k, span, 1.0 / total);
        a.factor[t] = static_cast<Real>(total);
        const double c = part_of(data, first, length, t);
        for (int64_t s = 0; s < span; ++s) moving[s] = a_t[s] + static_cast<Real>(c) * k[s];
        divide(moving, t, moving);
        divide(k, t, d.over + t * span);
    }
    // B_t goes to the rows of the marginals, which are needed no more.
    for (int64_t t = length - 1; t >= 0; --t) {
        Real *b = a.node + t * span, *h = d.b + t * span;
        const double c = part_of(data, first, length, t);
        if (t + 1 < length) {
            step_back(w, a, t + 1, h + span, b);
            divide(b, t, b);
        } else {
            for (int64_t s = 0; s < span; ++s) b[s] = 0.0;
        }
        for (int64_t s = 0; s < span; ++s) {
            b[s] += static_cast<Real>(c);
            h[s] = d.k[t * span + s] > 0.0 ? a.e[t * span + s] * b[s] / a.factor[t] : Real{};
            b[s] = static_cast<Real>(-weight) * (d.a[t * span + s] + d.k[t * span + s] * b[s]);
        }
    }
    for (int64_t t = 0; t < length; ++t) add_states(data, w, g, first + t, t == 0, a, a.node + t * span);
    for (int64_t t = 1; t < length; ++t) {
        scale_row(a.e + t * span, span, -weight);
        scale_row(d.b + t * span, span, -weight);
    }
    if (!a.matrices) {
        shape.outer(d.moving, a.e + span, length - 1, g.outer);
        shape.outer(d.over, d.b + span, length - 1, g.outer);
        return value;
    }
    for (int64_t t = 1; t < length; ++t) {
        const Real *m = jumps(t), *e = a.e + t * span, *h = d.b + t * span;
        shape.each([&](int64_t r) {
            const Real moving = d.moving[(t - 1) * span + r], over = d.over[(t - 1) * span + r];
            for (int64_t j = 0; j < width; ++j)
                a.edge[r * width + j] = m[r * width + j] * (moving * e[j] + over * h[j]);
        });
        add_row(g.jumps, a.edge, shape.n_labels * width);
        add_pair_residual(data, w, g, first + t, a.edge);
    }
    return value;
}

template <class Shape>
double weak_value_gradient_of(const ChainPlan& data, const Weights& w, const Gradient& g, const ChainRange& range,
                              const Shape& shape) {
    double value = 0.0;
    for (int64_t n = range.begin; n < range.end; ++n) {
        const double weight = weight_of(data, n);
        const Lattice<Shape> a = filled_lattice(data, w, range, n, shape);
        if (a.length == 0) continue;
        Real* scratch = static_cast<Real*>(range.scratch) + lattice_size(shape, a.length, a.scores != nullptr);
        value += weight * weak_loss(data, w, g, data.starts[n], weight, a, scratch);
        range.check(range.check_state, range.thread);
    }
    return value;
}

}  // namespace

double weak_value_gradient(const ChainPlan& data, const Weights& w, const Gradient& g, const ChainRange& range) {
    return with_shape(w.n_labels, w.order,
                      [&](const auto& shape) { return weak_value_gradient_of(data, w, g, range, shape); });
}

}  // namespace crfkit::CRFKIT_SPACE
