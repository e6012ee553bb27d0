"""Parts of experiments/robust_crf that could go wrong without a trace: runs side by side, facts of few results."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crfkit import Graph, GraphData
from crfkit.graph.fields.field import tied_field
from crfkit.graph.inference.engines import make_engine
from crfkit.losses import GraphLikelihood, PseudoLikelihood
from crfkit.penalties import L1
from crfkit.solvers import FISTA, ISTA, OGM

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
FOLDER = EXPERIMENTS / "robust_crf"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the experiments are not here")


@pytest.fixture
def module(monkeypatch):
    """Import a module of the experiment; the names are taken back afterwards."""
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(FOLDER) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


@pytest.mark.parametrize("inference", ["pl", "bp"])
def test_runs_together_are_the_runs_alone(module, inference):
    """Runs of other lengths and with another number of evaluations in an iteration; each gets its own products."""
    together = module("together")
    rng = np.random.default_rng(0)
    graph = Graph.join([Graph.grid((4, 5))] * 3)
    X = rng.normal(size=(graph.n_nodes, 4))
    labels = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
    data = GraphData.make(graph, X, np.abs(X[graph.edges[:, 0]] - X[graph.edges[:, 1]]), labels)
    field = tied_field(data, 2, "ising", "ising")

    def loss(shared):
        return PseudoLikelihood(data, shared) if inference == "pl" else GraphLikelihood(data, shared, make_engine("bp"))

    solvers = [ISTA(max_iterations=7), FISTA(max_iterations=30), OGM(max_iterations=12), FISTA(max_iterations=2)]
    w0 = np.zeros(field.size)
    runs = [lambda shared, s=s: s.minimize(loss(shared), L1(0.5), w0) for s in solvers]
    found = together.run_together(field, data, runs)
    for run, (result, seconds) in zip(runs, found, strict=True):
        alone = run(field)
        assert result.evaluations == alone.evaluations
        assert seconds >= 0
        assert_allclose(result.w, alone.w, atol=1e-10)
        assert_allclose(result.value, alone.value, rtol=1e-12)


def test_a_run_that_fails_is_reported_and_does_not_stop_the_others_for_ever(module):
    together = module("together")
    data = GraphData.make(Graph.grid((2, 2)), np.eye(4), np.eye(4), [0, 0, 1, 1])
    field = tied_field(data, 2, "ising", "ising")

    def fails(shared):
        raise ValueError("this run has failed")

    runs = [
        lambda shared: FISTA(max_iterations=3).minimize(PseudoLikelihood(data, shared), L1(0.1), np.zeros(field.size))
    ]
    with pytest.raises(ValueError, match="has failed"):
        together.run_together(field, data, [*runs, fails])


def test_facts_of_no_results_and_the_coverage_of_every_table_and_figure(module, tmp_path):
    values = module("facts").facts(tmp_path)
    assert values["cells"] == []
    assert values["noise"] is None
    items = [row["item"] for row in values["coverage"]]
    assert items == ["Algorithm 1", "Algorithm 2", *(f"Figure {k}" for k in range(1, 13)), "Table I", "Table II"]
    assert {row["outcome"] for row in values["coverage"]} <= {
        "reproduced", "partly reproduced", "not reproduced", "not possible",
    }  # fmt: skip


def test_the_quick_plan_is_a_short_form_of_the_full_one(module, tmp_path):
    steps = module("plan").steps
    quick, full = (steps(short, tmp_path, tmp_path / "out") for short in (True, False))
    assert {step.name for step in quick} <= {step.name for step in full}
    assert sum(step.minutes for step in quick) <= 4
    assert len({step.name for step in full}) == len(full)
