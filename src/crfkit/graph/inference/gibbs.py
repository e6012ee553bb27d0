"""Gibbs sampling (Geman & Geman 1984), nodes of a colour at once or a whole induced forest jointly.

Couplings that are strong against the noise hold single nodes fast; drawing a forest jointly given the rest (Hamze &
de Freitas 2004) moves most of the graph in one step, and on a forest is an exact draw. log Z is estimated by annealed
importance sampling (Neal 2001) from the unary part, whose log Z is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from crfkit import _core
from crfkit._checks import check_count
from crfkit._threads import count_threads
from crfkit._types import Floats, Ids
from crfkit.errors import ParameterError
from crfkit.graph.fields.basis import is_unit
from crfkit.graph.fields.potentials import Potentials, check_states
from crfkit.graph.graph import Graph
from crfkit.graph.inference.marginals import InferenceStatus, Marginals
from crfkit.graph.inference.tree import check_threads

Block = Literal["auto", True, False]

MIN_BLOCK_RANGE = 1.0  # mean range of an interaction from which blocks save time,
MAX_OUTSIDE_SHARE = 0.25  # if no larger part of the nodes than this is outside the forest: these hold it fast
MARGINALS, ANNEALING, SAMPLES, SWEEPS = range(4)  # streams of random numbers; from SWEEPS on the caller's


@dataclass(frozen=True, eq=False)
class GibbsState:
    """The state of the chains."""

    labels: Ids  # [n, chains]
    sweeps: int  # made so far


@dataclass(frozen=True)
class Gibbs:
    """Estimates from samples, with standard errors of log Z.

    Marginals are means of conditional probabilities over the chains' states, log Z the mean weight of annealed runs.
    The same seed gives the same numbers, whatever `n_threads` is.

    Parameters
    ----------
    n_sweeps : per chain, after burn_in; every thin-th state counts.
    burn_in : sweeps per chain before that.
    n_chains : that run side by side.
    thin : sweeps between two states that count.
    seed : of everything random, except where `sample` is given its own.
    block : whether to draw a forest jointly and only the nodes outside it one by one; "auto": on forests, and where
        at most a quarter of the nodes is outside and the mean over edges of the interaction's range (max − min of the
        table after its row and column means are taken out; 2J for Ising ±J) is above 1. Large grids have a third
        of their nodes outside, and blocks gain no more there than they cost.
    ais_steps : temperatures between the unary part and the field.
    ais_runs : annealed runs; their spread gives the standard error.

    >>> field = Potentials.from_tables(Graph.grid((2, 2)), np.zeros((4, 2)), np.eye(2))
    >>> found = Gibbs().run(field)
    >>> bool(abs(found.log_z[0] - np.log(2 * np.e**4 + 12 * np.e**2 + 2)) < 4 * found.errors[0])
    True
    """

    n_sweeps: int = 1000
    burn_in: int = 200
    n_chains: int = 8
    thin: int = 2
    seed: int = 0
    block: Block = "auto"
    ais_steps: int = 500
    ais_runs: int = 16
    n_threads: int | None = None

    name = "gibbs"
    bound = "estimate"

    def __post_init__(self) -> None:
        least = {"n_sweeps": 1, "burn_in": 0, "n_chains": 1, "thin": 1, "seed": 0, "ais_steps": 1, "ais_runs": 2}
        for name, smallest in least.items():
            check_count(smallest, **{name: getattr(self, name)})
        if self.n_sweeps < self.thin:
            raise ParameterError(f"n_sweeps = {self.n_sweeps} is less than thin = {self.thin}: no state would be kept")
        _check_block(self.block)
        check_threads(self.n_threads)

    def run(self, potentials: Potentials, warm: Marginals | None = None) -> Marginals:
        """Return marginals and log Z. The chains of `warm` are continued with new random numbers."""
        graph, plan, threads = potentials.graph, gibbs_plan(potentials.graph), count_threads(self.n_threads)
        unary, tables = _arrays(potentials)
        seed, block = self.seed % 2**64, uses_blocks(potentials, self.block)
        old = warm.state if warm is not None else None
        if isinstance(old, GibbsState) and old.labels.shape == (graph.n_nodes, self.n_chains):
            labels, sweeps = old.labels.copy(), old.sweeps
            labels[labels >= potentials.n_states] = 0
        else:
            labels, sweeps = _started(potentials, self.n_chains, seed, MARGINALS, threads), 0
        rest = (block, seed, MARGINALS, threads)
        _core.gibbs_sweeps(plan, unary, tables, labels, sweeps, self.burn_in, *rest)
        sweeps += self.burn_in
        nodes, edges = _core.gibbs_marginals(plan, unary, tables, labels, sweeps, self.n_sweeps, self.thin, *rest)
        log_z, errors = self._log_z(potentials, block)
        state = GibbsState(labels, sweeps + self.n_sweeps)
        status = InferenceStatus.SAMPLED
        return Marginals(log_z, nodes, lambda: edges, status, self.n_sweeps, state=state, errors=errors)

    def _log_z(self, potentials: Potentials, block: bool) -> tuple[Floats, Floats]:
        """Return ([G] log Z, [G] standard errors): log of the mean weight, and the delta method."""
        graph = potentials.graph
        threads = count_threads(self.n_threads)
        log_weights = _core.gibbs_annealed(
            gibbs_plan(graph), *_arrays(potentials), self.ais_runs, self.ais_steps, block, self.seed % 2**64, ANNEALING,
            threads,
        )  # fmt: skip
        with np.errstate(invalid="ignore"):  # of weights that have diverged; log Z is then not finite either
            start = graph.sum_nodes(np.logaddexp.reduce(potentials.unary, axis=1))
            top = log_weights.max(axis=1)
            weights = np.exp(log_weights - top[:, None])
            mean = weights.mean(axis=1)
            errors = weights.std(axis=1, ddof=1) / (mean * np.sqrt(self.ais_runs))
            return start + top + np.log(mean), errors

    def sample(self, potentials: Potentials, n_samples: int, seed: int = 0) -> Ids:
        """Return labellings [n_samples, n]: every thin-th of each chain after burn_in.

        On forests drawn jointly they are independent; otherwise those of one chain are correlated, less with a larger
        `thin`.
        """
        check_count(0, n_samples=n_samples, seed=seed)
        graph, plan, threads = potentials.graph, gibbs_plan(potentials.graph), count_threads(self.n_threads)
        out = np.empty((n_samples, graph.n_nodes), dtype=np.int32)
        if n_samples == 0:
            return out
        unary, tables = _arrays(potentials)
        chains = min(self.n_chains, n_samples)
        block = uses_blocks(potentials, self.block)
        burn_in, thin = (0, 1) if block and plan.n_outside == 0 else (self.burn_in, self.thin)
        labels = _started(potentials, chains, seed % 2**64, SAMPLES, threads)
        sweeps = 0
        for begin in range(0, n_samples, chains):
            count = thin + (burn_in if begin == 0 else 0)
            _core.gibbs_sweeps(plan, unary, tables, labels, sweeps, count, block, seed % 2**64, SAMPLES, threads)
            sweeps += count
            out[begin : begin + chains] = labels.T[: n_samples - begin]
        return out


def gibbs_sweeps(
    potentials: Potentials,
    labels: ArrayLike,
    n_sweeps: int = 1,
    seed: int = 0,
    stream: int = 0,
    block: Block = "auto",
    n_threads: int | None = None,
) -> Ids:
    """Return an array [n]: the labels after so many sweeps from those given; (seed, stream) name the random numbers."""
    check_count(0, n_sweeps=n_sweeps, seed=seed, stream=stream)
    _check_block(block)
    y = check_states(labels, potentials).reshape(-1, 1).copy()
    plan, (unary, tables), threads = gibbs_plan(potentials.graph), _arrays(potentials), count_threads(n_threads)
    blocks = uses_blocks(potentials, block)
    _core.gibbs_sweeps(plan, unary, tables, y, 0, n_sweeps, blocks, seed % 2**64, SWEEPS + stream, threads)
    return y[:, 0]


def uses_blocks(potentials: Potentials, block: Block) -> bool:
    """Return whether a forest is drawn jointly: by the option `block`, or by the rule of "auto"."""
    if block != "auto":
        return block
    n_outside = gibbs_plan(potentials.graph).n_outside
    if n_outside == 0 or n_outside > MAX_OUTSIDE_SHARE * potentials.graph.n_nodes:
        return n_outside == 0
    unit = is_unit(potentials.basis)
    basis = potentials.tables if unit else potentials.basis
    rows, columns = basis.mean(axis=2, keepdims=True), basis.mean(axis=1, keepdims=True)
    interactions = (basis - rows - columns + basis.mean(axis=(1, 2), keepdims=True)).reshape(len(basis), -1)
    values = interactions if unit else potentials.coefficients @ interactions
    return bool(np.ptp(values, axis=1).mean() > MIN_BLOCK_RANGE)


_plans: WeakKeyDictionary[Graph, _core.GibbsPlan] = WeakKeyDictionary()


def gibbs_plan(graph: Graph) -> _core.GibbsPlan:
    """Return the colours and the forest of a graph; made once."""
    plan = _plans.get(graph)
    if plan is None:
        plan = _plans[graph] = _core.GibbsPlan(graph.native)
    return plan


def _arrays(potentials: Potentials) -> tuple[Floats, Floats]:
    return np.ascontiguousarray(potentials.unary), np.ascontiguousarray(potentials.tables)


def _started(potentials: Potentials, n_chains: int, seed: int, stream: int, threads: int) -> Ids:
    labels = np.empty((potentials.graph.n_nodes, n_chains), dtype=np.int32)
    unary = np.ascontiguousarray(potentials.unary)
    _core.gibbs_start(gibbs_plan(potentials.graph), unary, labels, seed, stream, threads)
    return labels


def _check_block(block: object) -> None:
    if not (isinstance(block, bool) or (isinstance(block, str) and block == "auto")):
        raise ParameterError(f"block must be True, False or 'auto', not {block!r}")
