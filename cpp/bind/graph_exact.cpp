#include <algorithm>

#include "../core/graph/junction.hpp"
#include "../core/graph/tree.hpp"
#include "../core/support/parallel.hpp"
#include "graph.hpp"

namespace crfkit {

namespace {

// The plan of one engine with potentials that fit it.
TreeProblem make_problem(const TreePlan& plan, const Matrix& unary, const Tables& tables, Threads n_threads) {
    if (plan.cyclic >= 0) throw nb::value_error("not a forest");
    const int K = check_potentials(plan.graph, unary, tables);
    return {plan, K, unary.data(), tables.data(), n_threads, poll_signals};
}

JunctionProblem make_problem(const JunctionPlan& plan, const Matrix& unary, const Tables& tables, Threads n_threads) {
    if (check_potentials(plan.elimination.graph, unary, tables) != plan.K)
        throw nb::value_error("the plan is for another number of states");
    return {plan, unary.data(), tables.data(), n_threads, poll_signals};
}

const Graph& graph_of(const TreePlan& plan) { return plan.graph; }
const Graph& graph_of(const JunctionPlan& plan) { return plan.elimination.graph; }

// The methods that the two engines share; the kernels do the rest.
template <auto kMarginals, auto kDecode, auto kSample, class Plan>
void bind_engine(nb::class_<Plan>& c) {
    c.def(
        "marginals",
        [](const Plan& plan, const Matrix& unary, const Tables& tables, Threads n_threads) {
            const auto problem = make_problem(plan, unary, tables, n_threads);
            const Graph& graph = graph_of(plan);
            const auto n = static_cast<size_t>(graph.n_nodes), E = static_cast<size_t>(graph.n_edges);
            const auto G = static_cast<size_t>(graph.n_graphs), K = unary.shape(1);
            nb::capsule z_owner, node_owner, edge_owner;
            double* log_z = allocate<double>(G, z_owner);
            double* nodes = allocate<double>(n * K, node_owner);
            double* edges = allocate<double>(E * K * K, edge_owner);
            interruptible([&] { kMarginals(problem, log_z, nodes, edges); });
            return nb::make_tuple(Numpy1<double>(log_z, {G}, z_owner), Numpy2<double>(nodes, {n, K}, node_owner),
                                  Numpy3<double>(edges, {E, K, K}, edge_owner));
        },
        "unary"_a, "tables"_a, "n_threads"_a, "(log Z per graph, node marginals, edge marginals)",
        nb::sig("def marginals(self, unary: NDArray[numpy.float64], tables: NDArray[numpy.float64], n_threads: int) -> "
                "tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]"));
    c.def(
        "decode",
        [](const Plan& plan, const Matrix& unary, const Tables& tables, Threads n_threads) {
            const auto problem = make_problem(plan, unary, tables, n_threads);
            const auto n = static_cast<size_t>(graph_of(plan).n_nodes);
            nb::capsule owner;
            auto* labels = allocate<int32_t>(n, owner);
            interruptible([&] { kDecode(problem, labels); });
            return Numpy1<int32_t>(labels, {n}, owner);
        },
        "unary"_a, "tables"_a, "n_threads"_a, "A labelling of the highest score.");
    c.def(
        "sample",
        [](const Plan& plan, const Matrix& unary, const Tables& tables, size_t n_samples, uint64_t seed,
           Threads n_threads) {
            const auto problem = make_problem(plan, unary, tables, n_threads);
            const auto n = static_cast<size_t>(graph_of(plan).n_nodes);
            nb::capsule owner;
            auto* labels = allocate<int32_t>(size_of({static_cast<int64_t>(n_samples), graph_of(plan).n_nodes}), owner);
            interruptible([&] { kSample(problem, static_cast<int64_t>(n_samples), seed, labels); });
            return Numpy2<int32_t>(labels, {n_samples, n}, owner);
        },
        "unary"_a, "tables"_a, "n_samples"_a, "seed"_a, "n_threads"_a, "Independent labellings.");
}

}  // namespace

void bind_graph_exact(nb::module_& m) {
    nb::class_<TreePlan> tree(m, "TreePlan", "The order in which exact inference passes through a forest.");
    tree.def(nb::init<const Graph&>(), "graph"_a, nb::keep_alive<1, 2>());
    tree.def_prop_ro(
        "cyclic", [](const TreePlan& plan) { return plan.cyclic; }, "The first graph that has a cycle; -1: none.");
    bind_engine<tree_marginals, tree_decode, tree_sample>(tree);

    nb::class_<Elimination>(m, "Elimination", "Orders in which to eliminate the nodes of graphs.")
        .def(
            "__init__",
            [](Elimination* self, const Graph& graph, int64_t n_states, int64_t limit, int64_t budget) {
                interruptible([&] { new (self) Elimination(graph, n_states, limit, budget, poll_signals); });
            },
            "graph"_a, "n_states"_a, "limit"_a, "budget"_a, nb::keep_alive<1, 2>())
        .def_prop_ro(
            "stopped", [](const Elimination& e) { return e.stopped; }, "The graph without an order; -1: none.")
        .def_prop_ro(
            "widest", [](const Elimination& e) { return e.widest; }, "The graph of the largest clique.")
        .def_prop_ro(
            "width", [](const Elimination& e) { return e.width; }, "Its width: the nodes of a clique less one.")
        .def(
            "most_entries",
            [](const Elimination& e, int64_t K) {
                const auto [graph, entries] = e.most_entries(K);
                return std::make_tuple(graph, entries);
            },
            "n_states"_a, "(graph, entries): the graph that needs most for all its tables together.");

    nb::class_<JunctionPlan> junction(m, "JunctionPlan", "Clique tables of graphs, for so many states.");
    junction.def(
        "__init__",
        [](JunctionPlan* self, const Elimination& elimination, int n_states) {
            require(elimination.stopped < 0, "there are no orders");
            check_states(n_states);
            without_gil([&] { new (self) JunctionPlan(elimination, n_states); });
        },
        "elimination"_a, "n_states"_a, nb::keep_alive<1, 2>());
    junction.def_prop_ro(
        "max_size", [](const JunctionPlan& plan) { return plan.max_size; },
        "Entries of all tables of the largest graph.");
    bind_engine<junction_marginals, junction_decode, junction_sample>(junction);
    junction.def(
        "pair_marginals",
        [](const JunctionPlan& plan, const Matrix& unary, const Tables& tables, const Pairs& pairs, Threads n_threads) {
            const JunctionProblem problem = make_problem(plan, unary, tables, n_threads);
            const size_t M = pairs.shape(0), K = unary.shape(1);
            require(pairs.shape(1) == 2, "not pairs");
            check_ids(span_of(pairs), graph_of(plan).n_nodes, "node");
            nb::capsule owner;
            double* marginals = allocate<double>(M * K * K, owner);
            interruptible([&] { junction_pairs(problem, static_cast<int64_t>(M), pairs.data(), marginals); });
            return Numpy3<double>(marginals, {M, K, K}, owner);
        },
        "unary"_a, "tables"_a, "pairs"_a, "n_threads"_a,
        "Marginals of pairs of nodes of a graph each; those of the same first node stand together.");
}

}  // namespace crfkit
