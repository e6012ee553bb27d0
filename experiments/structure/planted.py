"""Graphs that StructureLearner's default finds in tables whose graph is known, beside those of rivals with its rule.

Rivals are nodewise logistic regressions with the extended BIC (nodewise.py), with the likelihood of penalised fits or
of refits and the AND or the OR rule, once with the learner's γ and once with γ = .25, and mutual information with the
same price per pair. `tune` compares several γ on other fields; `empty` counts false edges on independent columns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from fields import REPORTED, TUNED, Planted, Sizes, draw, independent
from nodewise import KINDS, RULES, Paths, follow, pairs_of, sizes_of
from numpy.typing import NDArray
from rivals import mutual_information
from scores import Pairs, Scores, ranking

from crfkit import StructureLearner

USUAL = 0.25  # the γ that nodewise regressions usually have
COLUMNS = 30  # of tables without edges
TUNED_TABLES = 10_000  # the first table of independent columns that γ is chosen on


def trial(family: str, rows: int, seed: int, sizes: Sizes = REPORTED) -> dict[str, Any]:
    """Return how well each method does on a field."""
    field = draw(family, rows, seed, sizes)
    learner = StructureLearner(n_threads=1)
    begin = time.process_time()
    ours = _learnt(field, learner)
    middle = time.process_time()
    paths = follow(field.Y)
    end = time.process_time()
    gamma = learner.ebic_gamma
    return {
        "gamma": gamma,
        "default": ours,
        "same": _nodewise(field, paths, gamma),
        "usual": _nodewise(field, paths, USUAL),
        "mutual information": field.judged(*mutual_information(field.Y, gamma)),
        "seconds": {"default": middle - begin, "nodewise": end - middle},
    }


def tune(family: str, rows: int, seed: int, gammas: list[float]) -> dict[str, Any]:
    """Return F1 of the learner and of nodewise regressions with the same γ, on a field for choosing."""
    field = draw(family, rows, seed, TUNED)
    paths = follow(field.Y)
    found = {}
    for gamma in gammas:
        ours = _learnt(field, StructureLearner(n_threads=1, refit="pl", ebic_gamma=gamma))["f1"]
        rivals = {name: judged["f1"] for name, judged in _nodewise(field, paths, gamma).items()}
        found[f"{gamma:g}"] = {"default": ours, **rivals}
    with every_edge_twice():
        ours = _learnt(field, StructureLearner(n_threads=1, refit="pl"))["f1"]
    return found | {"twice": {"default": ours}}


@contextmanager
def every_edge_twice() -> Iterator[None]:
    """Let every edge pay its price twice, whatever its ends say about it."""

    def none(_: Any, i: Any, j: Any) -> Any:
        return np.zeros(np.broadcast(i, j).shape, dtype=bool)

    with (
        patch("crfkit.structure.price.with_one_weight", none),
        patch("crfkit.structure.worth.with_one_weight", none),
    ):
        yield


def empty(rows: int, table: int, gamma: float | None = None) -> int:
    """Return how many edges the learner finds among independent columns."""
    learner = StructureLearner(n_threads=1, refit="pl")
    if gamma is not None:
        learner.set_params(ebic_gamma=gamma)
    return len(learner.fit(independent(rows, COLUMNS, table)).edges_)


def empties(rows: int, table: int, gammas: list[float]) -> dict[str, int]:
    """Return how many edges the learner finds among independent columns with each γ."""
    return {f"{gamma:g}": empty(rows, table, gamma) for gamma in gammas}


def _learnt(field: Planted, learner: StructureLearner) -> dict[str, Any]:
    learner.fit(field.Y)
    sizes = {(i, j): weight for i, j, weight in learner.edges_}
    entries = {(i, j): strength for i, j, strength in learner.entry_order_}
    return field.judged(set(sizes), ranking(sizes, entries))


def _nodewise(field: Planted, paths: Paths, gamma: float) -> dict[str, Any]:
    """Return what is found with the likelihood of penalised fits and of refits, with the AND and the OR rule."""
    found = {}
    for kind in KINDS:
        W = paths.chosen(gamma, kind)
        for rule in RULES:
            pairs = pairs_of(W, rule)
            entries = _scores(sizes_of(paths.entries(), rule))
            sizes = {pair: float(max(abs(W[pair]), abs(W[pair[::-1]]))) for pair in pairs}
            found[f"{kind} {rule}"] = field.judged(pairs, ranking(sizes, entries))
    return found


def _scores(matrix: NDArray) -> Scores:
    p = len(matrix)
    every: Pairs = {(i, j) for i in range(p) for j in range(i + 1, p)}
    return {pair: float(matrix[pair]) for pair in every if matrix[pair] > 0}
