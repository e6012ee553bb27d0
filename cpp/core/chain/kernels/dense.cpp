// Log Z and beliefs of chains of order 1 whose label scores a network made.
#include "entries.hpp"

namespace crfkit::CRFKIT_SPACE {
namespace {

#include "dense.inl"

// The score of the labels; takes their counts from the marginals.
template <class Shape>
double take_labels(const ChainDenseOf<Real>& data, const Weights& w, const Lattice<Shape>& a, int64_t n, Real* node,
                   Real* edge) {
    const int64_t n_labels = a.shape.n_labels;
    const int64_t* y = data.labels + n * data.n_steps;
    double score = 0.0;
    for (int64_t t = 0; t < a.length; ++t) {
        score += a.u[t * a.shape.span() + y[t]];
        node[t * n_labels + y[t]] -= 1;
        if (t == 0) continue;
        score += w.jumps[y[t - 1] * w.width + y[t]];
        edge[y[t - 1] * n_labels + y[t]] -= 1;
    }
    return score;
}

// Both are NaN where log Z is, so that whoever looks for NaN in a gradient finds it.
template <class Shape>
void store_node(const Lattice<Shape>& a, int64_t n_steps, bool usable, Real* node) {
    const int64_t n_labels = a.shape.n_labels;
    for (int64_t t = 0; t < n_steps; ++t, node += n_labels) {
        const Real* from = a.node + t * a.shape.span();
        for (int64_t j = 0; j < n_labels; ++j) node[j] = t >= a.length ? Real{} : usable ? from[j] : Real(NAN);
    }
}

// edge[L][L] = sum over time of edge marginals; `total`: scratch of [L][P].
template <class Shape>
void store_edge(const Weights& w, const Lattice<Shape>& a, const Inference& found, Real* total, Real* edge) {
    const Shape& shape = a.shape;
    const auto width = shape.span();
    const int64_t n_labels = shape.n_labels, square = n_labels * width;
    for (int64_t i = 0; i < square; ++i) total[i] = 0;
    if (!found.in_log_space) {
        shape.outer(a.alpha, a.e + width, a.length - 1, total);
        for (int64_t i = 0; i < square; ++i) total[i] *= w.exp_jumps[i];
    } else {
        for (int64_t t = 1; t < a.length; ++t) {
            edge_marginal(w, a, found, t);
            add_row(total, a.edge, square);
        }
    }
    for (int64_t i = 0; i < n_labels; ++i)
        for (int64_t j = 0; j < n_labels; ++j)
            edge[i * n_labels + j] = std::isnan(found.log_z) ? Real(NAN) : total[i * width + j];
}

template <class Shape>
void beliefs_of(const ChainDenseOf<Real>& data, const Weights& w, double* log_z, Real* node, Real* edge,
                const ChainRange& range, const Shape& shape) {
    const int64_t n_labels = shape.n_labels;
    for (int64_t n = range.begin; n < range.end; ++n) {
        const Lattice<Shape> a = dense_lattice(data, range, n, shape);
        Inference found{0.0, true};
        if (a.length > 0) found = infer(w, a);
        log_z[n] = found.log_z;
        Real* nodes = node + n * data.n_steps * n_labels;
        Real* edges = edge + n * n_labels * n_labels;
        store_node(a, data.n_steps, !std::isnan(found.log_z), nodes);
        store_edge(w, a, found, a.square, edges);
        if (data.labels) log_z[n] -= take_labels(data, w, a, n, nodes, edges);
        range.check(range.check_state, range.thread);
    }
}

}  // namespace

void dense_beliefs(const ChainDenseOf<Real>& data, const Weights& w, double* log_z, Real* node, Real* edge,
                   const ChainRange& range) {
    with_shape(w.n_labels, 1, [&]<class Shape>(const Shape& shape) {
        if constexpr (!std::is_same_v<Shape, LabelPairStates>) beliefs_of(data, w, log_z, node, edge, range, shape);
    });
}

}  // namespace crfkit::CRFKIT_SPACE
