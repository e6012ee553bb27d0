"""The likelihood of graphs under every engine: the value is what the gradient differentiates, once converged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import tied_field, untied_field
from crfkit.graph.graph import Graph
from crfkit.graph.inference.defaults import default_engine
from crfkit.graph.inference.engines import make_engine
from crfkit.graph.inference.enumerate import Enumerate
from crfkit.graph.losses.likelihood import GraphLikelihood
from crfkit.penalties import L2
from crfkit.solvers import make_solver
from crfkit.solvers.parts.stopping import GradientNorm

ENGINES = {
    "enumerate": {},
    "tree": {},
    "junction": {},
    "bp": {"tolerance": 1e-13},
    "trw": {"tolerance": 1e-12, "max_iterations": 5000},
    "mean-field": {"tolerance": 1e-14, "max_iterations": 5000},
}
FORMS = [("ising", "ising", 2), ("full", "potts", 3), ("full", "symmetric", 3), ("reference", "reference", 2)]


def problem(forest, n_states, node_form, edge_form, seed=0, hidden=False):
    rng = np.random.default_rng(seed)
    graph = Graph.join([Graph.path(4), Graph.path(3)] if forest else [Graph.grid((2, 3)), Graph.complete(4)])
    labels = rng.integers(0, n_states, graph.n_nodes)
    if hidden:
        labels[::3] = -1
    data = GraphData.make(
        graph, rng.normal(size=(graph.n_nodes, 2)), rng.normal(size=(graph.n_edges, 1)), labels, [1.5, 0.5]
    )
    field = tied_field(data, n_states, node_form, edge_form)
    return data, field, 0.4 * rng.normal(size=field.size)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize(("node_form", "edge_form", "n_states"), FORMS)
@pytest.mark.parametrize("name", ENGINES)
def test_gradient(name, node_form, edge_form, n_states, hidden):
    engine = make_engine(name, **ENGINES[name])
    data, field, w = problem(name == "tree", n_states, node_form, edge_form, hidden=hidden)
    loss = GraphLikelihood(data, field, engine)
    gradient = loss.at(w).grad
    step = 1e-5
    differences = [(loss.at(w + step * e).value - loss.at(w - step * e).value) / (2 * step) for e in np.eye(len(w))]
    accuracy = 1e-6 if engine.bound == "exact" else 1e-5
    np.testing.assert_allclose(gradient, differences, atol=accuracy * np.abs(gradient).max())
    assert loss.unsettled == 0


@pytest.mark.parametrize("name", ["tree", "junction", "bp", "trw"])
def test_engines_that_are_exact_on_forests_agree(name):
    data, field, w = problem(True, 3, "full", "full")
    options = {"tolerance": 1e-12} if name in ("bp", "trw") else {}
    found = GraphLikelihood(data, field, make_engine(name, **options)).at(w)
    exact = GraphLikelihood(data, field, Enumerate()).at(w)
    assert found.value == pytest.approx(exact.value, rel=1e-10)
    np.testing.assert_allclose(found.grad, exact.grad, atol=1e-9)


def test_bounds_of_log_z_are_bounds_of_the_loss():
    data, field, w = problem(False, 2, "ising", "ising")
    names = ("trw", "junction", "mean-field")
    value = {name: GraphLikelihood(data, field, make_engine(name)).at(w).value for name in names}
    assert value["trw"] > value["junction"] > value["mean-field"]


@pytest.mark.parametrize("name", ["junction", "bp", "mean-field"])
def test_training_ends_at_a_stationary_point(name):
    """Under a strong penalty: with strong couplings mean field has several optima, and warm starts keep to theirs."""
    data, field, _ = problem(False, 2, "ising", "ising", seed=3)
    loss = GraphLikelihood(data, field, make_engine(name, **ENGINES[name]))
    solver = make_solver("lbfgs", stopping=GradientNorm(1e-6), max_iterations=300)
    result = solver.minimize(loss, L2(8.0), np.zeros(field.size))
    assert result.status.converged
    assert np.linalg.norm(loss.at(result.w).grad + 8.0 * result.w) < 1e-5


def test_counts_and_rows_give_the_same_fit():
    rng = np.random.default_rng(1)
    structure = Graph.complete(4)
    Y = rng.integers(0, [2, 3, 2, 2], size=(50, 4))
    table, counts = GraphData.table(50, structure, None, Y), GraphData.counts(structure, Y, 3)
    field = untied_field(table, [2, 3, 2, 2])
    solver = make_solver("lbfgs", stopping=GradientNorm(1e-7))
    losses = [GraphLikelihood(data, field, Enumerate()) for data in (table, counts)]
    fits = [solver.minimize(loss, L2(1.0), np.zeros(field.size)) for loss in losses]
    np.testing.assert_allclose(fits[0].w, fits[1].w, atol=1e-6)


def test_unknown_labels_are_summed_out():
    """−log p(known) by enumeration over the unknown ones."""
    data, field, w = problem(False, 2, "ising", "ising", hidden=True)
    found = GraphLikelihood(data, field, Enumerate()).at(w).value
    unknown = np.flatnonzero(data.labels < 0)
    per_graph = np.zeros((2 ** len(unknown), 2))
    for k in range(2 ** len(unknown)):
        labels = data.labels.copy()
        labels[unknown] = [(k >> b) & 1 for b in range(len(unknown))]
        per_graph[k] = field.potentials(data, w).score(labels)
    log_z = Enumerate().run(field.potentials(data, w)).log_z
    observed = [np.log(np.exp(np.unique(per_graph[:, g])).sum()) for g in range(2)]
    assert found == pytest.approx(data.weights @ (log_z - observed), rel=1e-9)


def test_a_warm_start_saves_sweeps():
    data, field, w = problem(False, 2, "ising", "ising")
    loss = GraphLikelihood(data, field, make_engine("bp"))
    first = loss.at(w)
    assert np.isfinite(first.value)
    again = loss.at(w + 1e-6, first)
    assert np.isfinite(again.value)
    assert again.marginals.iterations < first.marginals.iterations


def test_a_subset_is_the_loss_of_some_graphs():
    data, field, w = problem(False, 2, "ising", "ising")
    loss = GraphLikelihood(data, field, Enumerate())
    parts = [loss.subset([g]).at(w) for g in range(2)]
    assert sum(part.value for part in parts) == pytest.approx(loss.at(w).value, rel=1e-12)
    np.testing.assert_allclose(sum(part.grad for part in parts), loss.at(w).grad, atol=1e-10)


def test_the_choice_of_an_engine():
    assert default_engine(Graph.path(100), 3) == "tree"
    assert default_engine(Graph.complete(6).repeat(10), 2) == "junction"
    assert default_engine(Graph.grid((100, 100)), 2) == "trw"


def test_evaluations_that_did_not_converge_are_counted():
    data, field, w = problem(False, 2, "ising", "ising")
    loss = GraphLikelihood(data, field, make_engine("bp", max_iterations=1))
    assert np.isfinite(loss.at(w).value)
    assert loss.unsettled == 1


def test_an_unlabelled_edgeless_graph_has_a_loss():
    data = GraphData.make(Graph(3, []), np.ones((3, 1)), None, [0, 1, 1])
    field = tied_field(data, 2)
    value = GraphLikelihood(data, field, make_engine("bp")).at(np.zeros(field.size)).value
    assert value == pytest.approx(3 * np.log(2))
    unknown = replace(data, labels=np.array([-1, -1, -1]))
    assert GraphLikelihood(unknown, field, make_engine("tree")).at(np.ones(field.size)).value == pytest.approx(0.0)
