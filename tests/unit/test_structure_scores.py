"""Scores under graphs that are too dense for exact inference: as many annealed runs as the wished error needs."""

from __future__ import annotations

import numpy as np
import pytest

from crfkit import StructureLearner
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference import annealed_runs
from crfkit.graph.inference.annealed import _dense_energies, pair_energies
from crfkit.graph.inference.annealed_runs import estimate_log_z
from crfkit.graph.inference.junction import Junction
from crfkit.structure import scores as structure_scores


@pytest.fixture(scope="module")
def dense():
    """A learner of 12 columns with most of the edges, and its table."""
    rng = np.random.default_rng(0)
    common = rng.random((200, 1)) < 0.5
    Y = (rng.random((200, 12)) < np.where(common, 0.75, 0.3)).astype(int)
    return StructureLearner(edge_strength=0.1, refit="pl").fit(Y), Y


@pytest.fixture
def sampled(monkeypatch):
    """Nothing is exact; return the graphs and the number of sweeps of each call of the annealed runs."""
    monkeypatch.setattr("crfkit.structure.scores.default_engine", lambda *_: "gibbs")
    calls, runs = [], annealed_runs._runs

    def counting(potentials, unary, tables, count, steps, seed, threads):
        calls.append((potentials.graph.n_graphs, count * steps))
        return runs(potentials, unary, tables, count, steps, seed, threads)

    monkeypatch.setattr(annealed_runs, "_runs", counting)
    return calls


def test_a_dense_score_is_within_its_error(dense, sampled):
    learner, Y = dense
    exact = Junction().run(learner.model_.potentials(learner.model_.encoder.encode(None))).log_z[0]
    data = learner.model_.encoder.encode(None, learner.model_.encoder.states(Y))
    expected = learner.model_.score(data, learner.model_.encoder.states(Y).ravel()).mean() - exact
    found = learner.score(Y)
    assert 0 < learner.score_error_ <= structure_scores.ERROR_RANGE[1]
    assert abs(found - expected) <= 4 * learner.score_error_


def test_all_rows_share_one_partition_function(dense, sampled):
    learner, Y = dense
    learner.score(Y)
    few = sum(sweeps for _, sweeps in sampled)
    assert {graphs for graphs, _ in sampled} == {1}
    sampled.clear()
    learner.score(np.tile(Y, (5, 1)))
    assert {graphs for graphs, _ in sampled} == {1}
    assert sum(sweeps for _, sweeps in sampled) < 20 * few  # more runs, not more graphs


def test_each_different_input_has_one_partition_function(sampled):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 3, (150, 1)).astype(float)
    Y = (rng.random((150, 6)) < 0.3 + 0.2 * X).astype(int)
    learner = StructureLearner(edge_strength=0.05, refit="pl").fit(Y, inputs=X)
    found = learner.score(Y, inputs=X)
    assert {graphs for graphs, _ in sampled} == {3}
    model = learner.model_
    data = model.encoder.encode(X, Y)
    exact = model.score(data, model.encoder.states(Y).ravel()) - Junction().run(model.potentials(data)).log_z
    assert 0 < learner.score_error_ <= structure_scores.ERROR_RANGE[1]
    assert abs(found - exact.mean()) <= 4 * learner.score_error_
    assert learner.log_likelihood(Y, inputs=X).shape == (150,)


def couplings(seed, n, scale):
    rng = np.random.default_rng(seed)
    graph = Graph.complete(n)
    values = rng.normal(0, scale, graph.n_edges)[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]])
    return Potentials.from_tables(graph, rng.normal(0, 0.3, (n, 2)), values)


@pytest.mark.parametrize("seed", range(4))
def test_log_z_has_the_wished_error(seed):
    field = couplings(seed, 13, 0.5)
    exact = Junction().run(field).log_z[0]
    for error in (0.2, 0.02):
        found = estimate_log_z(field, error, [field.unary, np.zeros_like(field.unary)], seed=seed)
        assert found.error <= error
        assert abs(found.values[0] - exact) <= 4 * error


def test_a_smaller_error_takes_more_runs():
    field = couplings(0, 13, 0.5)
    runs = [estimate_log_z(field, error, [field.unary]).runs for error in (0.1, 0.03, 0.01)]
    assert runs[0] < runs[1] < runs[2]


def test_starts_that_miss_a_mode_are_not_used():
    """Two modes with all labels equal: a start within the lesser one finds a log Z that is too small."""
    graph = Graph.complete(14)
    unary = np.zeros((14, 2))
    unary[:, 1] = 0.1
    field = Potentials.from_tables(graph, unary, 0.35 * np.eye(2) * 2)
    lesser = np.log(np.tile([0.98, 0.02], (14, 1)))
    exact = Junction().run(field).log_z[0]
    found = estimate_log_z(field, 0.03, [lesser, field.unary])
    assert abs(found.values[0] - exact) <= 4 * 0.03


def test_work_is_limited(monkeypatch):
    monkeypatch.setattr(annealed_runs, "MOST_VISITS", 1e5)
    field = couplings(0, 13, 1.0)
    found = estimate_log_z(field, 1e-6, [field.unary])
    assert found.runs * field.graph.n_edges * annealed_runs.FIRST_STEPS <= 2e5
    assert found.error > 1e-6  # and it says so


@pytest.mark.parametrize("n_states", [2, 3])
def test_energies_by_products_are_those_of_look_ups(n_states):
    rng = np.random.default_rng(0)
    graph = Graph.complete(6)
    tables, labels = rng.normal(size=(graph.n_edges, n_states, n_states)), rng.integers(0, n_states, (6, 40), np.int32)
    looked_up = [sum(t[y[i], y[j]] for t, (i, j) in zip(tables, graph.edges, strict=True)) for y in labels.T]
    np.testing.assert_allclose(_dense_energies(graph, tables, labels), looked_up)
    np.testing.assert_allclose(pair_energies(graph, tables, labels), looked_up)
