"""The L2 strength of a table with inputs when none was given: the one that predicts held-out rows best.

The best strength depends on the number of inputs, labels and rows. Strengths are tried from the largest down, with the
pseudo-likelihood, which takes a fraction of a second for each. Held-out rows are judged by their exact likelihood where
that is affordable, otherwise by the pseudo-likelihood, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crfkit._types import Floats, Ints
from crfkit.graph.data import GraphData
from crfkit.graph.encoding.tables import TableEncoder
from crfkit.graph.fields.field import GraphField
from crfkit.graph.inference.defaults import default_engine, explain_table_engine
from crfkit.graph.losses.likelihood import GraphLikelihood
from crfkit.graph.losses.pseudo import PseudoLikelihood
from crfkit.graph.model import ready_engine
from crfkit.penalties import L2, Blockwise
from crfkit.protocols import Loss, Penalty
from crfkit.result import Status
from crfkit.training.options import SolverOptions

STRENGTHS = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
RATIOS = (0.3, 0.1, 0.03), (3.0, 10.0, 30.0)  # strength of edges / strength of nodes: lower ones, otherwise higher ones
LEAST_ROWS = 50  # below which no rows are held out
MOST_ROWS = 5000  # rows that are used, at random
FOLDS = 5  # parts that the rows are split into; one is held out at a time
JUDGING_ROWS = 300  # held-out rows to reach: small tables hold out several parts, one after the other
PATIENCE = 2  # strengths in a row that predict worse than the best one; the search then ends
TOLERANCE = 1e-4  # relative decrease of the objective over ten iterations
OWN_RATIOS, OWN_TOLERANCE = (1.0, 0.3, 0.1), 1e-3  # strengths of edges under the likelihood, over those found before


class Strength(NamedTuple):
    """Strengths that were chosen, how many rows were held out to choose them, and weights to begin training at."""

    node: float
    edge: float
    held_out: int
    weights: Floats

    @property
    def penalty(self) -> Penalty:
        return L2(self.node) if self.node == self.edge else Blockwise({"node": L2(self.node), "edge": L2(self.edge)})

    def __str__(self) -> str:
        edges = "" if self.node == self.edge else f" of nodes, L2({self.edge:g}) of edges"
        return f"L2({self.node:g}){edges}, chosen on {self.held_out} held-out rows"


def choose_strength(
    data: GraphData, field: GraphField, encoder: TableEncoder, options: SolverOptions, *, likelihood: bool, blocks: bool
) -> Strength | None:
    """Return the strengths of L2 that predict held-out rows best; None if there are too few rows.

    `data` holds the standardised rows that the field is trained on; those with unknown labels are not used. One
    strength for all weights is searched first, then the strength of edges. `likelihood`: whether the field is
    trained by its exact likelihood: the strength of edges is then lowered further with that, because the
    pseudo-likelihood, which sees every edge from both of its ends, prefers stronger penalties. `blocks`: whether
    the solver allows edges a strength of their own.
    """
    assert data.labels is not None
    known = (data.labels.reshape(len(data), -1) >= 0).all(axis=1) & (data.graph_weights > 0)
    rows = np.flatnonzero(known)
    if len(rows) < LEAST_ROWS:
        return None
    rows = np.random.default_rng(options.seed).permutation(rows)[:MOST_ROWS]
    n_folds = min(FOLDS, math.ceil(JUDGING_ROWS * FOLDS / len(rows)))
    folds = [_Fold.make(data, part, rows, field, encoder, options) for part in np.array_split(rows, FOLDS)[:n_folds]]
    search = _Search(folds, options)
    start = Strength(1.0, 1.0, sum(fold.n_held_out for fold in folds), np.zeros(field.size))
    found = search.along([start._replace(node=s, edge=s) for s in STRENGTHS], PATIENCE)
    if not (blocks and field.n_edge_weights):
        return found
    for ratios in RATIOS:
        better = search.along([found._replace(edge=on_grid(r * found.node)) for r in (1.0, *ratios)])
        if better.edge != better.node:
            found = better
            break
    if likelihood and all(fold.likelihood is not None for fold in folds):
        one = _Search(folds[:1], options, OWN_TOLERANCE)
        found = one.along([found._replace(edge=on_grid(r * found.edge)) for r in OWN_RATIOS], likelihood=True)
    return found


def on_grid(strength: float) -> float:
    """Return the nearest of …, 0.1, 0.3, 1, 3, 10, …

    >>> on_grid(0.9), on_grid(0.03 * 30.0)
    (1.0, 1.0)
    """
    return float(f"{10.0 ** (round(2.0 * math.log10(strength)) / 2.0):.0e}")


@dataclass(frozen=True)
class _Fold:
    """Losses of the rows to train on, and of those that are held out."""

    pseudo: Loss
    likelihood: Loss | None  # None where it is too expensive
    judge: Loss
    n_held_out: int

    @classmethod
    def make(
        cls, data: GraphData, held: Ints, rows: Ints, field: GraphField, encoder: TableEncoder, options: SolverOptions
    ) -> _Fold:
        train, test = data.take(np.setdiff1d(rows, held)), data.take(np.sort(held))
        judge = _likelihood(test, field, encoder, options)
        return cls(
            PseudoLikelihood(train, field, options.n_threads),
            _likelihood(train, field, encoder, options),
            PseudoLikelihood(test, field, options.n_threads) if judge is None else judge,
            len(held),
        )


@dataclass(frozen=True)
class _Search:
    """Trains with one strength after the other, each from the weights of the one before, and judges the weights."""

    folds: Sequence[_Fold]
    options: SolverOptions
    tolerance: float = TOLERANCE

    def along(self, candidates: Sequence[Strength], worse: int = 1, likelihood: bool = False) -> Strength:
        """Return the best candidate; the search ends when so many in a row are worse than the best one."""
        w = [candidates[0].weights] * len(self.folds)
        best, lowest, since = candidates[0], np.inf, 0
        for candidate in candidates:
            w = [self._train(fold, candidate, v, likelihood) for fold, v in zip(self.folds, w, strict=True)]
            value = sum(float(fold.judge.at(v).value) for fold, v in zip(self.folds, w, strict=True))
            since += 1
            if value < lowest:
                best, lowest, since = candidate._replace(weights=w[0]), value, 0
            if since >= worse:
                break
        return best

    def _train(self, fold: _Fold, strength: Strength, w: Floats, likelihood: bool) -> Floats:
        n_threads, seed = self.options.n_threads, self.options.seed
        solver = SolverOptions(None, "lbfgs", self.tolerance, None, n_threads, seed).make_solver()
        result = solver.minimize(fold.likelihood if likelihood else fold.pseudo, strength.penalty, w)
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return np.asarray(result.w)


def _likelihood(data: GraphData, field: GraphField, encoder: TableEncoder, options: SolverOptions) -> Loss | None:
    """Return the likelihood of rows where it is exact and affordable, otherwise None."""
    states: int | list[int] = field.max_states if encoder.edges_differ else encoder.n_states
    if explain_table_engine(encoder.structure, states, len(data)):
        return None
    name = default_engine(encoder.structure, states, "table", len(data))
    engine = ready_engine(name, encoder.structure, field.max_states, options.n_threads, options.seed)
    return GraphLikelihood(data, field, engine)
