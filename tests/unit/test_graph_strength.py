"""The L2 strengths of tables with inputs when none are given."""

import numpy as np
import pytest

from crfkit import L2, GraphCRF, GraphModel
from crfkit.errors import ApproximationWarning
from crfkit.graph.inference import defaults
from crfkit.solvers import GradientNorm


def table(rows=300, inputs=40, useful=2, labels=4, seed=0):
    """Return inputs, few of which matter, and labels that share a hidden factor: training and test rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows + 300, inputs))
    scores = X[:, :useful] @ rng.normal(size=(useful, labels)) + 2.0 * rng.normal(size=(rows + 300, 1))
    Y = (scores + rng.logistic(size=scores.shape) > 0).astype(int)
    return X[:rows], Y[:rows], X[rows:], Y[rows:]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_useless_inputs_get_a_stronger_penalty_and_rows_a_higher_likelihood(seed):
    X, Y, X_new, Y_new = table(seed=seed)
    chosen = GraphCRF().fit(X, Y)
    fixed = GraphCRF(penalty=L2(1.0)).fit(X, Y)
    better = chosen.log_likelihood(X_new, Y_new).mean() - fixed.log_likelihood(X_new, Y_new).mean()
    assert better > 0.05, chosen.model_.training["auto"]["penalty"]


def test_the_choice_is_recorded_and_repeats(tmp_path):
    X, Y, *_ = table()
    crf = GraphCRF(loss="pseudo-likelihood", random_state=3).fit(X, Y)
    said = crf.model_.training["auto"]["penalty"]
    assert said.startswith("L2(")
    assert said.endswith("held-out rows")
    crf.save(tmp_path / "model.crf")
    assert GraphModel.load(tmp_path / "model.crf").training["auto"]["penalty"] == said
    again = GraphCRF(loss="pseudo-likelihood", random_state=3).fit(X, Y)
    assert np.array_equal(again.coef_, crf.coef_)


@pytest.mark.parametrize(
    ("options", "rows"),
    [({"penalty": L2(1.0)}, 300), ({"edge_penalty": L2(2.0)}, 300), ({"loss": "softmax-margin"}, 300), ({}, 40)],
    ids=["a penalty", "a penalty of edges", "a margin", "few rows"],
)
def test_nothing_is_chosen_with(options, rows):
    X, Y, *_ = table(rows)
    assert "penalty" not in GraphCRF(**options).fit(X, Y).model_.training["auto"]


def test_a_field_without_inputs_keeps_its_penalty():
    _, Y, *_ = table()
    tight = {"tolerance": GradientNorm(1e-7)}
    plain, given = GraphCRF(**tight).fit(None, Y), GraphCRF(penalty=L2(1.0), **tight).fit(None, Y)
    np.testing.assert_allclose(plain.coef_, given.coef_, atol=1e-6)


def test_rows_with_unknown_labels_are_trained_on_but_not_held_out():
    X, Y, X_new, Y_new = table()
    holes = Y.astype(float)
    holes[::3, 1] = np.nan
    crf = GraphCRF().fit(X, holes)
    assert "held-out rows" in crf.model_.training["auto"]["penalty"]
    assert crf.log_likelihood(X_new, Y_new).mean() > 4 * np.log(0.5)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_pseudo_likelihood_judges_well_where_the_likelihood_is_too_expensive(monkeypatch, seed):
    monkeypatch.setattr(defaults, "PATIENCE", 0.0)
    X, Y, X_new, Y_new = table(labels=12, seed=seed)
    with pytest.warns(ApproximationWarning, match="pseudo-likelihood"):
        chosen = GraphCRF().fit(X, Y)
    fixed = GraphCRF(loss="pseudo-likelihood", penalty=L2(1.0)).fit(X, Y)
    exact = [crf.set_params(inference="halves").log_likelihood(X_new, Y_new).mean() for crf in (chosen, fixed)]
    assert exact[0] > exact[1]
