#include "../core/graph/pseudo.hpp"

#include "../core/support/parallel.hpp"
#include "graph.hpp"

namespace crfkit {

namespace {

// Outputs of a row of K per node or of B per edge.
struct Rows {
    size_t n, width;
    nb::capsule owner;
    double* data;
    Rows(size_t n, size_t width) : n(n), width(width), data(allocate<double>(n * width, owner)) {}
    Numpy2<double> numpy() const { return Numpy2<double>(data, {n, width}, owner); }
};

void check_shape(const Matrix& matrix, size_t rows, size_t columns, const char* message) {
    if (matrix.shape(0) != rows || matrix.shape(1) != columns) throw nb::value_error(message);
}

const Tables& square(const Tables& tables) {
    require(tables.shape(1) == tables.shape(2), "basis: not tables [K][K]");
    check_states(static_cast<int64_t>(tables.shape(1)));
    check_number(static_cast<int64_t>(tables.shape(0)), 0, kMostIds, "the number of tables");
    return tables;
}

// What all losses read, checked; an invalid array of coefficients is one that is not read.
struct Checked {
    BasisTerms basis;
    LabelledField field;
    size_t n, E;

    Checked(const Graph& graph, const Matrix& unary, const Matrix& coefficients, const Tables& tables,
            const Array<int32_t>& labels, const Array<double>& weights)
        : basis(square(tables).data(), static_cast<int>(tables.shape(0)), static_cast<int>(tables.shape(1))),
          field{graph,         basis,         unary.data(), coefficients.is_valid() ? coefficients.data() : nullptr,
                labels.data(), weights.data()},
          n(static_cast<size_t>(graph.n_nodes)),
          E(static_cast<size_t>(graph.n_edges)) {
        const size_t K = tables.shape(1);
        check_shape(unary, n, K, "unary: not a row of K per node");
        if (coefficients.is_valid())
            check_shape(coefficients, E, static_cast<size_t>(basis.B), "coefficients: not one per edge and table");
        check_size(labels.size(), graph.n_nodes, "labels");
        check_size(weights.size(), graph.n_nodes, "weights");
        check_ids(span_of(labels), static_cast<int64_t>(K), "labels");
    }
    Checked(const Checked&) = delete;  // the field refers to the basis

    Rows node_rows() const { return {n, static_cast<size_t>(basis.K)}; }
    Rows edge_rows() const { return {E, static_cast<size_t>(basis.B)}; }
};

}  // namespace

void bind_graph_pseudo(nb::module_& m) {
    m.def(
        "pseudo_value",
        [](const Graph& graph, const Matrix& unary, const Matrix& coefficients, const Tables& basis,
           const Array<int32_t>& labels, const Array<double>& weights, Threads n_threads) {
            const Checked c(graph, unary, coefficients, basis, labels, weights);
            const Rows p = c.node_rows(), nodes = c.node_rows(), edges = c.edge_rows();
            const double value = interruptible(
                [&] { return pseudo_value(c.field, p.data, nodes.data, edges.data, n_threads, poll_signals); });
            return std::make_tuple(value, p.numpy(), nodes.numpy(), edges.numpy());
        },
        "graph"_a, "unary"_a, "coefficients"_a, "basis"_a, "labels"_a, "weights"_a, "n_threads"_a,
        "(pseudo-likelihood, conditionals, its derivatives by unary and by coefficients)");
    m.def(
        "pseudo_tangent",
        [](const Graph& graph, const Matrix& unary, const Matrix& coefficients, const Tables& basis,
           const Array<int32_t>& labels, const Array<double>& weights, const Matrix& p, Threads n_threads) {
            const Checked c(graph, unary, coefficients, basis, labels, weights);
            check_shape(p, c.n, basis.shape(1), "p: not a row of K per node");
            const Rows nodes = c.node_rows(), edges = c.edge_rows();
            interruptible([&] { pseudo_tangent(c.field, p.data(), nodes.data, edges.data, n_threads, poll_signals); });
            return std::make_tuple(nodes.numpy(), edges.numpy());
        },
        "graph"_a, "unary"_a, "coefficients"_a, "basis"_a, "labels"_a, "weights"_a, "p"_a, "n_threads"_a,
        "The derivatives of pseudo_value's derivatives along a direction (unary, coefficients), at conditionals p.");
    m.def(
        "pseudo_variances",
        [](const Graph& graph, const Tables& basis, const Array<int32_t>& labels, const Array<double>& weights,
           const Matrix& p, Threads n_threads) {
            const Checked c(graph, p, Matrix(), basis, labels, weights);
            const Rows edges = c.edge_rows();
            interruptible([&] { pseudo_variances(c.field, p.data(), edges.data, n_threads, poll_signals); });
            return edges.numpy();
        },
        "graph"_a, "basis"_a, "labels"_a, "weights"_a, "p"_a, "n_threads"_a,
        "Second derivatives of the pseudo-likelihood by the coefficients of each edge.");
    m.def(
        "composite_value",
        [](const Graph& graph, const Matrix& unary, const Matrix& coefficients, const Tables& basis,
           const Array<int32_t>& labels, const Array<double>& weights, Threads n_threads) {
            const Checked c(graph, unary, coefficients, basis, labels, weights);
            const Rows nodes = c.node_rows(), edges = c.edge_rows();
            const double value = interruptible(
                [&] { return composite_value(c.field, nodes.data, edges.data, n_threads, poll_signals); });
            return std::make_tuple(value, nodes.numpy(), edges.numpy());
        },
        "graph"_a, "unary"_a, "coefficients"_a, "basis"_a, "labels"_a, "weights"_a, "n_threads"_a,
        "(edge composite likelihood, its derivatives by unary and by coefficients)");
}

}  // namespace crfkit
