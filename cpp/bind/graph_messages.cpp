#include "../core/graph/log_messages.hpp"
#include "../core/graph/mean_field.hpp"
#include "../core/graph/reweighted.hpp"
#include "../core/graph/sum_product.hpp"
#include "graph.hpp"

namespace crfkit {

namespace {

// The arrays of a field's potentials, kept alive, and what the core reads of them.
struct PotentialArrays {
    Matrix unary, coefficients;
    Tables basis;
    PotentialsView view;

    PotentialArrays(const Graph& graph, Matrix u, Matrix c, Tables b)
        : unary(std::move(u)), coefficients(std::move(c)), basis(std::move(b)) {
        const auto K = static_cast<size_t>(check_unary(graph, unary));
        const bool none = basis.shape(0) == 0;  // stands for all unit tables, which would take K⁴ numbers
        const size_t B = none ? K * K : basis.shape(0);
        check_number(static_cast<int64_t>(B), 1, kMostIds, "the number of tables");
        if (coefficients.shape(0) != static_cast<size_t>(graph.n_edges) || coefficients.shape(1) != B)
            throw nb::value_error("coefficients: not a row per edge, or not a column per table");
        if (basis.shape(1) != K || basis.shape(2) != K) throw nb::value_error("basis: not tables of states");
        bool unit = B == K * K;
        for (size_t b = 0; b < B && unit && !none; ++b)
            for (size_t x = 0; x < K * K && unit; ++x) unit = basis.data()[b * K * K + x] == (b == x ? 1.0 : 0.0);
        view = {static_cast<int>(K), static_cast<int>(B), unit, unary.data(), coefficients.data(), basis.data()};
    }
};

// The blocks of a graph, which must be those of this one.
const Blocks& blocks_of(const Graph& graph, const Blocks& blocks) {
    require(&blocks.graph == &graph, "the blocks are of another graph");
    return blocks;
}

// An engine whose potentials are finite and not too large; others have no messages.
template <class Bound>
auto& usable(Bound& engine) {
    require(engine.messages.fits(), "the potentials do not fit this engine");
    return engine.messages;
}

const MessageKernels& kernels_named(const std::string& name) {
    const MessageKernels* kernels = find_message_kernels(name.c_str());
    if (!kernels) throw nb::value_error("these kernels do not exist, or this machine cannot run them");
    return *kernels;
}

struct BoundSumProduct {
    const Graph& graph;
    PotentialArrays arrays;
    SumProduct messages;
    BoundSumProduct(const Graph& g, const Blocks& blocks, Matrix u, Matrix c, Tables b, const std::string& kernels,
                    Threads n_threads)
        : graph(g),
          arrays(g, std::move(u), std::move(c), std::move(b)),
          messages(g, blocks_of(g, blocks), arrays.view, kernels_named(kernels), n_threads) {}
};

OptionalArray<double> checked_weights(const Graph& graph, OptionalArray<double> rho) {
    if (rho && rho->size() != static_cast<size_t>(graph.n_edges)) throw nb::value_error("rho: not a number per edge");
    return rho;
}

struct BoundLogMessages {
    const Graph& graph;
    PotentialArrays arrays;
    OptionalArray<double> rho;
    LogMessages messages;
    BoundLogMessages(const Graph& g, Matrix u, Matrix c, Tables b, OptionalArray<double> r, bool maximum)
        : graph(g),
          arrays(g, std::move(u), std::move(c), std::move(b)),
          rho(checked_weights(g, std::move(r))),
          messages(g, arrays.view, pointer(rho), maximum) {}
};

struct BoundReweighted {
    const Graph& graph;
    PotentialArrays arrays;
    OptionalArray<double> rho;
    Reweighted messages;
    BoundReweighted(const Graph& g, const Blocks& blocks, Matrix u, Matrix c, Tables b, OptionalArray<double> r,
                    const std::string& kernels, Threads n_threads)
        : graph(g),
          arrays(g, std::move(u), std::move(c), std::move(b)),
          rho(checked_weights(g, std::move(r))),
          messages(g, blocks_of(g, blocks), arrays.view, pointer(rho), kernels_named(kernels), n_threads) {}
};

struct BoundMeanField {
    const Graph& graph;
    PotentialArrays arrays;
    MeanField field;
    BoundMeanField(const Graph& g, const Blocks& blocks, Matrix u, Matrix c, Tables b, const std::string& kernels,
                   Threads n_threads)
        : graph(g),
          arrays(g, std::move(u), std::move(c), std::move(b)),
          field(g, blocks_of(g, blocks), arrays.view, kernels_named(kernels), n_threads) {}
};

template <class Work>
std::tuple<int, double, bool> outcome(const Work& work) {
    const Outcome found = interruptible(work);
    return {found.iterations, found.residual, found.converged};
}

// log Z, nodes and edges of an engine, as arrays.
template <class Engine>
Numpy1<double> log_z(const Graph& graph, const Engine& engine, Threads n_threads) {
    std::vector<double> out(static_cast<size_t>(graph.n_graphs));
    without_gil([&] { engine.log_z(out.data(), n_threads); });
    return to_numpy(std::move(out));
}
template <class Fill>
Numpy2<double> node_array(const Graph& graph, int K, const Fill& fill) {
    nb::capsule owner;
    double* data = allocate<double>(size_of({graph.n_nodes, K}), owner);
    without_gil([&] { fill(data); });
    return Numpy2<double>(data, {static_cast<size_t>(graph.n_nodes), static_cast<size_t>(K)}, owner);
}
template <class Fill>
Numpy3<double> edge_array(const Graph& graph, int K, const Fill& fill) {
    nb::capsule owner;
    double* data = allocate<double>(size_of({graph.n_edges, K, K}), owner);
    without_gil([&] { fill(data); });
    const size_t n = static_cast<size_t>(K);
    return Numpy3<double>(data, {static_cast<size_t>(graph.n_edges), n, n}, owner);
}

}  // namespace

void bind_graph_messages(nb::module_& m) {
    nb::class_<Blocks>(m, "Blocks", "Nodes in blocks of eight of one colour and degree.")
        .def(
            "__init__", [](Blocks* self, const Graph& graph) { without_gil([&] { new (self) Blocks(graph); }); },
            "graph"_a, nb::keep_alive<1, 2>());

    nb::class_<BoundSumProduct>(m, "SumProduct", "Loopy belief propagation in probability space.")
        .def(nb::init<const Graph&, const Blocks&, Matrix, Matrix, Tables, const std::string&, Threads>(), "graph"_a,
             "blocks"_a, nb::arg("unary").noconvert(), nb::arg("coefficients").noconvert(),
             nb::arg("basis").noconvert(), "kernels"_a, "n_threads"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
        .def_prop_ro("fits", [](const BoundSumProduct& s) { return s.messages.fits(); })
        .def_prop_ro("form", [](const BoundSumProduct& s) { return std::string(s.messages.form()); })
        .def(
            "start_from",
            [](BoundSumProduct& s, const BoundSumProduct& other) { return s.messages.start_from(other.messages); },
            "other"_a)
        .def(
            "run",
            [](BoundSumProduct& s, int max_iterations, double tolerance, double damping, bool flooding,
               Threads n_threads) {
                return outcome([&] {
                    return usable(s).run({max_iterations, tolerance, damping, flooding, n_threads}, poll_signals);
                });
            },
            "max_iterations"_a, "tolerance"_a, "damping"_a, "flooding"_a, "n_threads"_a,
            "(iterations, largest change of a log message, whether that is within the tolerance)")
        .def(
            "log_z", [](const BoundSumProduct& s, Threads n) { return log_z(s.graph, usable(s), n); }, "n_threads"_a)
        .def(
            "nodes",
            [](const BoundSumProduct& s, Threads n) {
                return node_array(s.graph, s.arrays.view.n_states, [&](double* out) { usable(s).nodes(out, n); });
            },
            "n_threads"_a)
        .def(
            "edges",
            [](const BoundSumProduct& s, Threads n) {
                return edge_array(s.graph, s.arrays.view.n_states, [&](double* out) { usable(s).edges(out, n); });
            },
            "n_threads"_a);

    nb::class_<BoundReweighted>(m, "Reweighted", "Tree-reweighted sum-product in log space, over blocks of nodes.")
        .def(nb::init<const Graph&, const Blocks&, Matrix, Matrix, Tables, OptionalArray<double>, const std::string&,
                      Threads>(),
             "graph"_a, "blocks"_a, nb::arg("unary").noconvert(), nb::arg("coefficients").noconvert(),
             nb::arg("basis").noconvert(), "rho"_a.none(), "kernels"_a, "n_threads"_a, nb::keep_alive<1, 2>(),
             nb::keep_alive<1, 3>())
        .def_prop_ro("fits", [](const BoundReweighted& s) { return s.messages.fits(); })
        .def(
            "start_from",
            [](BoundReweighted& s, const BoundReweighted& other) { return s.messages.start_from(other.messages); },
            "other"_a)
        .def(
            "run",
            [](BoundReweighted& s, int max_iterations, double tolerance, double damping, bool flooding,
               Threads n_threads) {
                return outcome([&] {
                    return usable(s).run({max_iterations, tolerance, damping, flooding, n_threads}, poll_signals);
                });
            },
            "max_iterations"_a, "tolerance"_a, "damping"_a, "flooding"_a, "n_threads"_a,
            "(iterations, largest change of a log message, whether that is within the tolerance)")
        .def(
            "log_z", [](const BoundReweighted& s, Threads n) { return log_z(s.graph, usable(s), n); }, "n_threads"_a)
        .def(
            "nodes",
            [](const BoundReweighted& s, Threads n) {
                return node_array(s.graph, s.arrays.view.n_states, [&](double* out) { usable(s).nodes(out, n); });
            },
            "n_threads"_a)
        .def(
            "edges",
            [](const BoundReweighted& s, Threads n) {
                return edge_array(s.graph, s.arrays.view.n_states, [&](double* out) { usable(s).edges(out, n); });
            },
            "n_threads"_a);

    nb::class_<BoundLogMessages>(m, "LogMessages", "Message passing in log space: sum or max, tree-reweighted or not.")
        .def(nb::init<const Graph&, Matrix, Matrix, Tables, OptionalArray<double>, bool>(), "graph"_a,
             nb::arg("unary").noconvert(), nb::arg("coefficients").noconvert(), nb::arg("basis").noconvert(),
             "rho"_a.none(), "maximum"_a, nb::keep_alive<1, 2>())
        .def(
            "start_from",
            [](BoundLogMessages& s, const BoundLogMessages& other) { return s.messages.start_from(other.messages); },
            "other"_a)
        .def(
            "run",
            [](BoundLogMessages& s, int max_iterations, double tolerance, double damping, const std::string& schedule,
               Threads n_threads) {
                const Sweeps sweeps{max_iterations, tolerance, damping, schedule == "flooding", n_threads};
                return outcome([&] {
                    return schedule == "residual" ? s.messages.run_residual(sweeps, poll_signals)
                                                  : s.messages.run(sweeps, poll_signals);
                });
            },
            "max_iterations"_a, "tolerance"_a, "damping"_a, "schedule"_a, "n_threads"_a,
            "(iterations, largest change of a log message, whether that is within the tolerance)")
        .def(
            "log_z", [](const BoundLogMessages& s, Threads n) { return log_z(s.graph, s.messages, n); }, "n_threads"_a)
        .def(
            "nodes",
            [](const BoundLogMessages& s, Threads n) {
                return node_array(s.graph, s.arrays.view.n_states, [&](double* out) { s.messages.nodes(out, n); });
            },
            "n_threads"_a)
        .def(
            "edges",
            [](const BoundLogMessages& s, Threads n) {
                return edge_array(s.graph, s.arrays.view.n_states, [&](double* out) { s.messages.edges(out, n); });
            },
            "n_threads"_a)
        .def(
            "states",
            [](const BoundLogMessages& s, Threads n) {
                std::vector<int32_t> out(static_cast<size_t>(s.graph.n_nodes));
                without_gil([&] { s.messages.states(out.data(), n); });
                return to_numpy(std::move(out));
            },
            "n_threads"_a, "The state of the largest belief of every node.");

    nb::class_<BoundMeanField>(m, "MeanField", "Naive mean field by coordinate ascent.")
        .def(nb::init<const Graph&, const Blocks&, Matrix, Matrix, Tables, const std::string&, Threads>(), "graph"_a,
             "blocks"_a, nb::arg("unary").noconvert(), nb::arg("coefficients").noconvert(),
             nb::arg("basis").noconvert(), "kernels"_a, "n_threads"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
        .def(
            "start_from",
            [](BoundMeanField& s, const Matrix& nodes) {
                if (nodes.shape(0) != static_cast<size_t>(s.graph.n_nodes) ||
                    nodes.shape(1) != static_cast<size_t>(s.arrays.view.n_states))
                    throw nb::value_error("nodes: not a distribution per node");
                s.field.start_from(nodes.data());
            },
            "nodes"_a)
        .def(
            "run",
            [](BoundMeanField& s, int max_iterations, double tolerance, double damping, Threads n_threads) {
                return outcome(
                    [&] { return s.field.run({max_iterations, tolerance, damping, false, n_threads}, poll_signals); });
            },
            "max_iterations"_a, "tolerance"_a, "damping"_a, "n_threads"_a,
            "(iterations, largest change of a probability, whether that is within the tolerance)")
        .def(
            "log_z", [](const BoundMeanField& s, Threads n) { return log_z(s.graph, s.field, n); }, "n_threads"_a)
        .def("nodes", [](const BoundMeanField& s) {
            return node_array(s.graph, s.arrays.view.n_states, [&](double* out) { s.field.nodes(out); });
        });
}

}  // namespace crfkit
