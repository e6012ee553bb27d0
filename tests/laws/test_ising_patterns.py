"""Conditionals of a binary table from counts of patterns: against sums over rows, one at a time, in plain Python."""

import gc
import math

import numpy as np
import pytest

from crfkit.structure.losses import ising_patterns
from crfkit.structure.losses.evaluation import SparseEvaluation
from crfkit.structure.losses.ising_patterns import CACHED_NEIGHBOURHOODS, binary_table, signs
from crfkit.structure.losses.pseudo import StructurePseudoLikelihood
from crfkit.structure.observations import Observations

P = 9
HUB = [*((0, j) for j in range(1, 7)), (2, 4)]
RING = sorted({(min(i, j), max(i, j)) for i in range(P) for j in ((i + 1) % P, (i + 2) % P, (i + 3) % P)})
GRAPHS = {"none": [], "hub": HUB, "ring": RING}  # with up to six neighbours


def make_table(rows, weighted, seed=0):
    rng = np.random.default_rng(seed)
    Y = rng.integers(0, 2, (rows, P))
    Y[:, 3] = np.where(rng.random(rows) < 0.8, Y[:, 0], Y[:, 3])
    return Observations.of(Y, 2, None, rng.uniform(0.5, 2.0, rows) if weighted else None, ising=True)


def by_rows(table, edges, w):
    """(value, gradient, Hessian, [p, p] gradient by all couplings, [p, m] curvatures), by definition."""
    size = P + len(edges)
    value, gradient, hessian = 0.0, np.zeros(size), np.zeros((size, size))
    pairs, curvature = np.zeros((P, P)), np.zeros((P, len(table.states)))
    for n, (states, c) in enumerate(zip(table.states.tolist(), table.weights.tolist(), strict=True)):
        s = [2 * y - 1 for y in states]
        for i in range(P):
            features = {i: 1.0}
            for e, (a, b) in enumerate(edges):
                if i in (a, b):
                    features[P + e] = float(s[a + b - i])
            t = -2.0 * s[i] * sum(w[k] * x for k, x in features.items())
            q = 1.0 / (1.0 + math.exp(-t))
            value += c * (max(t, 0.0) + math.log1p(math.exp(-abs(t))))
            curvature[i, n] = c * 4.0 * q * (1.0 - q)
            for k, x in features.items():
                gradient[k] -= 2.0 * c * q * s[i] * x
                for other, y in features.items():
                    hessian[k, other] += curvature[i, n] * x * y
            for j in range(P):
                pairs[i, j] -= 2.0 * c * q * s[i] * s[j]
                pairs[j, i] -= 2.0 * c * q * s[i] * s[j]
    return value, gradient, hessian, pairs, curvature


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("largest", [0, 3, 12])
def test_patterns_say_what_rows_say(graph, weighted, largest, monkeypatch):
    """With patterns for no variable, for some, and for all."""
    monkeypatch.setattr(ising_patterns, "MAX_PATTERN_SIGNS", largest)
    table, edges = make_table(250, weighted), GRAPHS[graph]
    loss = StructurePseudoLikelihood(table, None, [i * P + j for i, j in edges])
    w = np.random.default_rng(1).normal(size=loss.size)
    assert len(table.states) >= 128
    assert len(loss.neighbours.few) == sum(sum(i in edge for edge in edges) < largest for i in range(P))
    found = loss.at(w)
    assert isinstance(found, SparseEvaluation)
    value, gradient, hessian, pairs, curvature = by_rows(table, edges, w.tolist())
    assert found.value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(found.grad, gradient, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.hessian(), hessian, rtol=1e-10, atol=1e-10)
    off = ~np.eye(P, dtype=bool)
    np.testing.assert_allclose(found.pairs[0][off], pairs[off], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.curvature, curvature, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.grad, gradient, rtol=1e-10, atol=1e-10)  # from the pairs, now that they are known


def test_codes_are_the_numbers_of_patterns():
    table = make_table(60, True)
    rows, others = binary_table(table), np.array([5, 0, 6])
    s = table.indicator_rows
    np.testing.assert_array_equal(signs(4)[:, rows.codes(2, others)], s[2] * np.stack([np.ones_like(s[2]), *s[others]]))
    assert rows.counts(2, others).sum() == pytest.approx(table.total)


def test_a_table_remembers_few_neighbourhoods_and_no_longer_than_it_lives():
    table = make_table(100, False)
    rows = binary_table(table)
    assert binary_table(table) is rows
    first = rows.counts(0, np.array([1]))
    for j in range(2, 2 + CACHED_NEIGHBOURHOODS - 1):
        rows.counts(0, np.array([j]))
    assert rows.counts(0, np.array([1])) is first
    rows.counts(0, np.array([1, 2]))
    rows.counts(0, np.array([1, 3]))
    assert len(rows._kept[0]) == CACHED_NEIGHBOURHOODS
    assert rows.counts(0, np.array([1])) is first
    before = len(ising_patterns._TABLES)
    del table
    gc.collect()
    assert len(ising_patterns._TABLES) < before


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_tables_with_fewer_rows_than_patterns(rows):
    table = make_table(rows, False, seed=2)
    loss = StructurePseudoLikelihood(table, None, [i * P + j for i, j in GRAPHS["hub"]])
    w = np.random.default_rng(3).normal(size=loss.size)
    value, gradient, *_ = by_rows(table, GRAPHS["hub"], w.tolist())
    assert loss.at(w).value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(loss.at(w).grad, gradient, rtol=1e-10, atol=1e-10)
