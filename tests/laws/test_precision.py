"""A loss that is evaluated roughly at first has the same optimum; sweeps, `auto` and what is said about inference."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from crfkit import L1, L2, Graph, GraphCRF, GraphData, GridCRF
from crfkit.errors import ApproximationWarning, ParameterError
from crfkit.graph.fields.field import tied_field
from crfkit.graph.inference.defaults import default_engine, explain_table_engine
from crfkit.graph.inference.engines import make_engine
from crfkit.graph.inference.marginals import NEGLIGIBLE
from crfkit.graph.inference.tree_reweighted import TreeReweighted
from crfkit.losses import GraphLikelihood
from crfkit.solvers import GradientNorm, make_solver


def images(n=3, side=14, noise=0.8):
    rng = np.random.default_rng(0)
    truth = np.zeros((side, side), dtype=int)
    truth[3:10, 4:11] = 1
    X = [np.stack([truth + noise * rng.normal(size=truth.shape), rng.normal(size=truth.shape)], -1) for _ in range(n)]
    return X, [truth] * n


def losses(start_tolerance):
    X, Y = images()
    graph = Graph.join([Graph.grid(y.shape) for y in Y])
    H = np.concatenate([x.reshape(-1, 2) for x in X])
    i, j = graph.edges.T
    data = GraphData.make(graph, H, np.abs(H[i] - H[j]), labels=np.concatenate([y.ravel() for y in Y]))
    field = tied_field(data, 2, "ising", "ising")
    return GraphLikelihood(data, field, TreeReweighted(n_threads=1), start_tolerance)


@pytest.mark.parametrize(("solver", "penalty"), [("lbfgs", L2(1.0)), ("owlqn", L1(2.0))])
def test_rough_evaluations_lead_to_the_same_optimum(solver, penalty):
    found, sweeps, tolerances = {}, {}, []
    for start in (None, 1e-2):
        loss = losses(start)
        counted = []

        def watch(_, loss=loss, counted=counted, start=start):
            counted.append(loss.last.marginals.iterations)
            if start is not None:
                tolerances.append(loss.tolerance)

        made = make_solver(solver, stopping=GradientNorm(1e-5), max_iterations=500)
        result = made.minimize(loss, penalty, np.zeros(loss.size), [watch])
        assert result.status.converged
        found[start], sweeps[start] = result, sum(counted)
    exact, rough = found[None], found[1e-2]
    np.testing.assert_allclose(rough.w, exact.w, atol=1e-5)
    assert rough.value == pytest.approx(exact.value, rel=1e-9)
    assert all(np.diff(tolerances) <= 0)  # they are only ever lowered
    assert sweeps[1e-2] < 0.7 * sweeps[None]
    precise = losses(None).at(rough.w).grad  # the gradient at the end, evaluated as precisely as can be
    assert np.abs(precise - losses(None).at(exact.w).grad).max() < 1e-3


def test_estimators_train_with_rough_evaluations_and_end_where_precise_ones_do():
    X, Y = images()
    tight = {"penalty": L2(1.0), "tolerance": GradientNorm(1e-5), "n_threads": 1}
    rough = GridCRF(inference="trw", **tight).fit(X, Y)
    exact = GridCRF(inference=TreeReweighted(n_threads=1), **tight).fit(X, Y)
    np.testing.assert_allclose(rough.coef_, exact.coef_, atol=2e-5)


def test_sweeps_are_the_limit_of_every_evaluation(monkeypatch):
    X, Y = images(2)
    limits = []
    run = TreeReweighted.run
    monkeypatch.setattr(
        TreeReweighted, "run", lambda self, *given: limits.append(self.max_iterations) or run(self, *given)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        GridCRF(inference="trw", sweeps=3).fit(X, Y)
    assert set(limits) == {3}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sweeps": 0}, "sweeps must be None or an integer >= 1"),
        ({"sweeps": 5, "inference": "junction"}, "'junction' has no such limit"),
        ({"sweeps": 5, "inference": make_engine("trw")}, "its max_iterations instead"),
    ],
)
def test_sweeps_that_make_no_sense(options, said):
    with pytest.raises(ParameterError, match=said):
        GridCRF(**options).fit(*images(1))


def wide_table(rows=40, labels=6):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(rows, 3))
    Y = (X @ rng.normal(size=(3, labels)) + rng.normal(size=(rows, labels)) > 0).astype(int)
    return X, Y


def test_auto_is_the_pseudo_likelihood_where_exact_inference_is_predicted_to_be_slow(monkeypatch):
    X, Y = wide_table()
    monkeypatch.setattr("crfkit.graph.inference.defaults.PATIENCE", 1e-9)
    with pytest.warns(ApproximationWarning, match=r"s for each evaluation.*loss='pseudo-likelihood'"):
        crf = GraphCRF(n_threads=1).fit(X, Y)
    assert crf.model_.training["auto"]["loss"] == "pseudo-likelihood"
    np.testing.assert_allclose(crf.coef_, GraphCRF(loss="pseudo-likelihood").fit(X, Y).coef_, atol=1e-6)
    exact = GraphCRF(inference="junction").fit(X, Y)
    np.testing.assert_allclose(crf.log_likelihood(X, Y).mean(), exact.log_likelihood(X, Y).mean(), rtol=0.05)
    with pytest.warns(ApproximationWarning, match="'trw'"):  # the pseudo-likelihood needs all labels
        assert GraphCRF().fit(X, np.where(X[:, :1] > 1, np.nan, Y)).model_.training["auto"]["loss"] == "likelihood"


def test_fourteen_labels_are_trained_and_judged_exactly():
    X, Y = wide_table(300, 14)
    crf = GraphCRF(tolerance=1e-2).fit(X, Y)
    assert crf.model_.training["auto"]["inference"] == "halves"
    assert crf.inference_status_.name == "EXACT"
    values = crf.log_likelihood(X[:2], Y[:2])
    assert crf.inference_status_.name == "EXACT"
    np.testing.assert_allclose(values, crf.set_params(inference="junction").log_likelihood(X[:2], Y[:2]), atol=1e-8)


def test_the_likelihood_leaves_exact_inference_where_it_is_predicted_to_be_slow(monkeypatch, tmp_path):
    X, Y = wide_table()
    exact = GraphCRF(n_threads=1).fit(X, Y)  # no warning: 40 rows of 64 labellings take no time
    assert exact.inference_status_.name == "EXACT"
    monkeypatch.setattr("crfkit.graph.inference.defaults.PATIENCE", 1e-9)
    with pytest.warns(ApproximationWarning, match=r"s for each evaluation.*'trw'"):
        crf = GraphCRF(n_threads=1, loss="likelihood").fit(X, Y)
    assert crf.inference_status_.name == "CONVERGED"
    assert crf.model_.training["inference"] == "trw"
    crf.save(tmp_path / "m.crf")
    loaded = GraphCRF.load(tmp_path / "m.crf")
    expected = GraphCRF.load(tmp_path / "m.crf").set_params(inference="trw").log_partition(X)
    np.testing.assert_allclose(loaded.log_partition(X), expected)  # prediction by what training used
    assert np.abs(expected - loaded.set_params(inference="junction").log_partition(X)).max() > 1e-6
    GraphCRF(n_threads=1, loss="pseudo-likelihood").fit(X, Y)  # the way out needs no warning
    GraphCRF(n_threads=1, inference="junction").fit(X, Y)


def test_predicted_seconds_grow_with_rows_and_labels():
    small = default_engine(Graph.complete(14), 2, "table", 1000)
    large = default_engine(Graph.complete(22), 2, "table", 1000)
    said = explain_table_engine(Graph.complete(22), 2, 1000)
    assert (small, large) == ("halves", "trw")
    assert re.search(r"about \d\.\d s for each evaluation of the loss \(1000 rows\)", said)
    assert "too large" in explain_table_engine(Graph.complete(60), 2, 1000)
    assert default_engine(Graph.path(40), 2, "table", 10**6) == "tree"
    assert explain_table_engine(Graph.path(40), 2, 10**6) == ""


def test_warnings_of_trw_do_not_recommend_trw_and_name_the_right_option():
    X, Y = images(2)
    with pytest.warns(ConvergenceWarning) as said:
        crf = GridCRF(inference="trw", sweeps=1).fit(X, Y)
    text = next(str(w.message) for w in said if "sweep" in str(w.message))
    assert "trw stopped at its limit of 1 sweep" in text
    assert "still changed by" in text
    assert "Raise sweeps" in text
    assert "use 'trw'" not in text
    assert "max_iterations" not in text
    crf.set_params(inference=make_engine("trw", max_iterations=1))
    with pytest.warns(ConvergenceWarning, match=r"make_engine\('trw', max_iterations=…\)"):
        crf.predict_marginals(X)


def test_a_change_that_is_negligible_is_no_warning():
    X, Y = images(1)
    crf = GridCRF(inference="trw").fit(X, Y)
    crf.set_params(inference=make_engine("trw", max_iterations=1000, tolerance=0.0))
    crf.predict_marginals(X)  # 1000 sweeps, and the last changed nothing that counts
    assert crf.inference_status_.name == "NOT_CONVERGED"
    data = crf.model_.encoder.encode(X)
    assert crf.model_.infer(data).residual < NEGLIGIBLE
