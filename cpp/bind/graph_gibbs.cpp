#include "../core/graph/gibbs.hpp"
#include "../core/support/parallel.hpp"
#include "graph.hpp"

namespace crfkit {

namespace {

using Labels = Aligned<int32_t, 2>;  // [N][C]

// There are probabilities of all nodes in all chains, and 32-bit numbers of those of a node.
void check_probabilities(const Graph& graph, int64_t n_chains, int K) {
    check_number(n_chains * K, 1, kMostIds, "the number of chains times states");
    checked_product({graph.n_nodes, n_chains, K}, "probabilities");
}

// labels must be those of the graph, in range: kernels index by them. −1 marks labels that are yet to be drawn.
void check_chains(const Graph& graph, int K, const Labels& labels, bool set) {
    if (labels.shape(0) != static_cast<size_t>(graph.n_nodes) || labels.shape(1) < 1)
        throw nb::value_error("labels: not a row of chains per node");
    check_number(static_cast<int64_t>(labels.shape(1)), 1, kMostIds, "the number of chains");
    check_probabilities(graph, static_cast<int64_t>(labels.shape(1)), K);
    if (set) check_ids({labels.data(), labels.size()}, K, "labels");
}

// Sweeps are numbered, and their numbers choose among forests.
void check_sweeps(int64_t first, int64_t n_sweeps) {
    check_number(first, 0, kMostIds * kMostIds, "first");
    check_number(n_sweeps, 0, kMostIds * kMostIds, "n_sweeps");
}

GibbsRun make_run(size_t n_chains, bool block, Threads n_threads, uint64_t seed, uint64_t stream) {
    return GibbsRun{static_cast<int>(n_chains), block, n_threads, seed, stream, poll_signals};
}

}  // namespace

void bind_graph_gibbs(nb::module_& m) {
    nb::class_<GibbsPlan>(m, "GibbsPlan", "What of a graph the Gibbs sampler needs: colours and induced forests.")
        .def(nb::init<const Graph&>(), "graph"_a, nb::keep_alive<1, 2>())
        .def_prop_ro("n_outside", [](const GibbsPlan& plan) { return plan.first.outside.members.size(); })
        .def(
            "forest",
            [](const GibbsPlan& plan, int64_t sweep) {
                const GibbsForest& forest = plan.forest(sweep);
                return std::make_tuple(to_numpy(std::vector<int64_t>(forest.trees)),
                                       to_numpy(std::vector<int32_t>(forest.members)));
            },
            "sweep"_a = 1, "(bounds of the trees, nodes by tree, parents before children), in turn by sweep");

    m.def(
        "gibbs_start",
        [](const GibbsPlan& plan, const Matrix& unary, Labels labels, uint64_t seed, uint64_t stream,
           Threads n_threads) {
            const int K = check_unary(plan.graph, unary);
            check_chains(plan.graph, K, labels, false);
            const GibbsField field{plan, K, unary.data(), nullptr};
            const GibbsRun options = make_run(labels.shape(1), false, n_threads, seed, stream);
            interruptible([&] { gibbs_start(field, options, labels.data()); });
        },
        "plan"_a, nb::arg("unary").noconvert(), nb::arg("labels").noconvert(), "seed"_a, "stream"_a, "n_threads"_a,
        "Fills labels [nodes, chains] with independent draws from the unary part.");

    m.def(
        "gibbs_sweeps",
        [](const GibbsPlan& plan, const Matrix& unary, const Tables& tables, Labels labels, int64_t first,
           int64_t n_sweeps, bool block, uint64_t seed, uint64_t stream, Threads n_threads) {
            const int K = check_potentials(plan.graph, unary, tables);
            check_chains(plan.graph, K, labels, true);
            check_sweeps(first, n_sweeps);
            const GibbsField field{plan, K, unary.data(), tables.data()};
            const GibbsRun options = make_run(labels.shape(1), block, n_threads, seed, stream);
            interruptible([&] { gibbs_sweeps(field, options, first, n_sweeps, labels.data()); });
        },
        "plan"_a, nb::arg("unary").noconvert(), nb::arg("tables").noconvert(), nb::arg("labels").noconvert(), "first"_a,
        "n_sweeps"_a, "block"_a, "seed"_a, "stream"_a, "n_threads"_a,
        "Sweeps over labels [nodes, chains] in place, after `first` earlier ones.");

    m.def(
        "gibbs_marginals",
        [](const GibbsPlan& plan, const Matrix& unary, const Tables& tables, Labels labels, int64_t first,
           int64_t n_sweeps, int64_t thin, bool block, uint64_t seed, uint64_t stream, Threads n_threads) {
            const int K = check_potentials(plan.graph, unary, tables);
            check_chains(plan.graph, K, labels, true);
            check_sweeps(first, n_sweeps);
            if (thin < 1 || n_sweeps < thin) throw nb::value_error("no sweep to average over");
            const GibbsField field{plan, K, unary.data(), tables.data()};
            const GibbsRun options = make_run(labels.shape(1), block, n_threads, seed, stream);
            const size_t n = unary.shape(0), e = tables.shape(0), k = unary.shape(1);
            nb::capsule node_owner, edge_owner;
            double* nodes = allocate<double>(n * k, node_owner);
            double* edges = allocate<double>(e * k * k, edge_owner);
            interruptible([&] { gibbs_marginals(field, options, first, n_sweeps, thin, labels.data(), nodes, edges); });
            return std::make_tuple(Numpy2<double>(nodes, {n, k}, node_owner),
                                   Numpy3<double>(edges, {e, k, k}, edge_owner));
        },
        "plan"_a, nb::arg("unary").noconvert(), nb::arg("tables").noconvert(), nb::arg("labels").noconvert(), "first"_a,
        "n_sweeps"_a, "thin"_a, "block"_a, "seed"_a, "stream"_a, "n_threads"_a,
        "The same, and (node marginals, edge marginals) from the state after each thin-th sweep.");

    m.def(
        "gibbs_annealed",
        [](const GibbsPlan& plan, const Matrix& unary, const Tables& tables, int n_runs, int64_t n_steps, bool block,
           uint64_t seed, uint64_t stream, Threads n_threads) {
            const int K = check_potentials(plan.graph, unary, tables);
            if (n_runs < 1 || n_steps < 1) throw nb::value_error("no runs or steps");
            const GibbsField field{plan, K, unary.data(), tables.data()};
            const GibbsRun options = make_run(static_cast<size_t>(n_runs), block, n_threads, seed, stream);
            check_probabilities(plan.graph, n_runs, K);
            const size_t g = static_cast<size_t>(plan.graph.n_graphs), r = static_cast<size_t>(n_runs);
            nb::capsule owner;
            double* log_weights = allocate<double>(size_of({plan.graph.n_graphs, n_runs}), owner);
            interruptible([&] { gibbs_annealed(field, options, n_steps, log_weights); });
            return Numpy2<double>(log_weights, {g, r}, owner);
        },
        "plan"_a, nb::arg("unary").noconvert(), nb::arg("tables").noconvert(), "n_runs"_a, "n_steps"_a, "block"_a,
        "seed"_a, "stream"_a, "n_threads"_a,
        "[graphs, runs] log weights of annealed importance sampling from the unary part.");
}

}  // namespace crfkit
