"""Ordinal edges: one weight, times the scores of both states."""

import numpy as np
import pytest

from crfkit.structure.losses.ordinal import pseudo_likelihood
from crfkit.structure.losses.standardised import column_scales
from crfkit.structure.observations import Observations
from crfkit.structure.worth import gains


def make_table(seed=0, rows=60, own=True, levels=(5, 2, 4, 5)):
    rng = np.random.default_rng(seed)
    Y = rng.integers(0, levels, size=(rows, len(levels)))
    Y[:, 3] = np.where(rng.random(rows) < 0.5, 4 - Y[:, 0], Y[:, 3])
    X = np.hstack([np.ones((rows, 1)), rng.normal(size=(rows, 2))]) if own else None
    its = rng.normal(size=(rows, len(levels), 2)) if own else None
    return Observations.of(Y, levels, X, rng.uniform(0.5, 2.0, rows), own=its, ordinal=True)


@pytest.mark.parametrize("own", [False, True])
def test_derivatives_by_differences(own):
    loss = pseudo_likelihood(make_table(own=own), active=[1, 3, 6])
    rng = np.random.default_rng(1)
    w, v = 0.3 * rng.normal(size=loss.size), rng.normal(size=loss.size)
    h = 1e-5
    here, up, down = loss.at(w), loss.at(w + h * v), loss.at(w - h * v)
    assert here.grad @ v == pytest.approx((up.value - down.value) / (2 * h), rel=1e-6)
    numeric = (up.grad - down.grad) / (2 * h)
    np.testing.assert_allclose(here.hessp(v), numeric, atol=1e-5)
    np.testing.assert_allclose(here.hessian() @ v, numeric, atol=1e-5)
    np.testing.assert_allclose(here.hess_diag(), np.diagonal(here.hessian()), atol=1e-9)


def test_an_ordinal_edge_is_a_table_of_products_of_scores():
    table = make_table(own=False)
    ordinal = pseudo_likelihood(table, active=[3, 6])
    full = pseudo_likelihood(Observations.of(table.states, table.n_states, None, table.weights), active=[3, 6])
    w = np.random.default_rng(2).normal(size=ordinal.size)
    nodes = ordinal.field.n_node_weights
    scores = [np.linspace(-1, 1, k) for k in table.n_states]
    tables = [c * np.outer(scores[i], scores[j]) for c, (i, j) in zip(w[nodes:], ordinal.edges, strict=True)]
    wide = np.concatenate([w[:nodes], *(t.ravel() for t in tables)])
    assert ordinal.at(w).value == pytest.approx(full.at(wide).value, rel=1e-12)
    for a, b in zip(ordinal.at(w).conditionals, full.at(wide).conditionals, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_binary_columns_have_the_ising_form():
    rng = np.random.default_rng(3)
    Y = rng.integers(0, 2, (50, 4))
    ordinal, ising = (Observations.of(Y, 2, **{form: True}) for form in ("ordinal", "ising"))
    np.testing.assert_allclose(column_scales(ordinal), column_scales(ising), rtol=1e-12)
    a, b = (pseudo_likelihood(table, active=[1, 6]) for table in (ordinal, ising))
    couplings, bias = rng.normal(size=2), rng.normal(size=4)
    w = np.concatenate([np.stack([-bias, bias], axis=1).ravel(), couplings])
    u = np.concatenate([bias, couplings])
    assert a.at(w).value == pytest.approx(b.at(u).value, rel=1e-12)
    np.testing.assert_allclose(a.at(w).grad[-2:], b.at(u).grad[-2:], atol=1e-10)
    np.testing.assert_allclose(gains(a, w)[1], gains(b, u)[1], rtol=1e-9)
