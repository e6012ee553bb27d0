"""log Z by independent annealed runs (Neal 2001), as many as the required standard error needs.

    Ẑ = mean of w over runs,    Var(log Ẑ) ≈ Var(w) / (runs · E[w]²)

Runs go from independent variables to the field in `steps` temperatures. A few trial runs find the start and the number
of steps for which an error costs least. Runs are independent, so their spread is an honest error: particles that
are resampled may all end in one mode of the field, and then agree on a log Z that is too small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crfkit import _core
from crfkit._threads import count_threads
from crfkit._types import Floats
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.inference.annealed import rebased
from crfkit.graph.inference.gibbs import gibbs_plan

STREAM = 78  # of random numbers
TRIAL_RUNS = 64, 16  # of one graph, of each of several graphs
FIRST_STEPS, MOST_STEPS = 64, 4096
SPREAD = 0.5  # variance of log weights to reach: with the number of steps it falls, and a run takes longer
SIGNIFICANT_ERRORS = 2.0  # standard errors between two estimates
CHEAPER_FACTOR = 4.0  # factor in the work from which a start is preferred to a safer one
LEAST_RUNS = 8  # of each graph
CHUNK = 4  # number of runs that one call makes, in multiples of those already made
MOST_VISITS = 1e10  # of edges by all sweeps: about a minute on one core


@dataclass(frozen=True, eq=False)
class LogZ:
    """Estimates of log Z of some graphs."""

    values: Floats  # [G]
    error: float  # standard error of their mean
    runs: int  # of each graph


@dataclass(frozen=True, eq=False)
class _Start:
    """The independent variables that runs begin with, and how well they do."""

    log_z: Floats  # [G]
    unary: Floats
    tables: Floats
    steps: int
    weights: Floats  # [G, runs] log weights of trial runs

    @property
    def mean(self) -> float:
        return float((self.log_z + _log_mean(self.weights)).mean())

    @property
    def error(self) -> float:
        """Return the standard error of the mean; a few weights tell less of rare large ones than their logarithms."""
        count, runs = self.weights.shape
        even = np.full(count, 1 / count)
        by_spread = math.sqrt(math.expm1(min(_spread(self.weights), 50.0)) / (count * runs))
        return max(_mean_error(self.weights, even), by_spread)

    @property
    def cost(self) -> float:
        """Return sweeps for a standard error of 1, from the spread of log weights: that of weights needs more runs."""
        return self.steps * math.expm1(min(_spread(self.weights), 50.0))


def estimate_log_z(
    potentials: Potentials,
    error: float,
    bases: Sequence[Floats],
    times: Floats | None = None,
    bias: float | None = None,
    seed: int = 0,
    n_threads: int | None = None,
) -> LogZ:
    """Return log Z of every graph, with so many runs that the mean over graphs has the required standard error.

    Parameters
    ----------
    error : standard error of the mean to reach; a limit on the work may prevent that.
    bases : [n, K] unary log-potentials of independent variables that runs may begin with, the safest first.
    times : [G] how often each graph counts in the mean.
    bias : of the mean over several graphs to allow, from the few runs that each graph then needs; None is the error.

    >>> from crfkit.graph.graph import Graph
    >>> field = Potentials.from_tables(Graph.grid((2, 2)), np.zeros((4, 2)), np.eye(2))
    >>> found = estimate_log_z(field, 0.02, [field.unary])
    >>> bool(abs(found.values[0] - np.log(2 * np.e**4 + 12 * np.e**2 + 2)) < 4 * found.error)
    True
    """
    G = potentials.graph.n_graphs
    shares = np.ones(G) / G if times is None else np.asarray(times) / np.sum(times)
    threads = count_threads(n_threads)
    budget = MOST_VISITS / max(1, potentials.graph.n_edges)  # sweeps over all graphs
    trials = [_trial(potentials, base, seed + number, threads, budget) for number, base in enumerate(bases)]
    start = _best(trials)
    log_w = np.empty((G, 0))
    bias = error if bias is None else bias
    runs = max(LEAST_RUNS, math.ceil(_needed_runs(start.weights, shares, error, bias)))
    while True:
        left = int(budget / start.steps) - log_w.shape[1]
        count = max(1, min(runs - log_w.shape[1], left, CHUNK * max(64, log_w.shape[1])))
        new_seed = seed + len(bases) + 1 + log_w.shape[1]
        log_w = np.hstack([log_w, _runs(potentials, start.unary, start.tables, count, start.steps, new_seed, threads)])
        found = _mean_error(log_w, shares)
        done, needed = log_w.shape[1], _needed_runs(log_w, shares, error, bias)
        if (needed <= done and done >= LEAST_RUNS) or count >= left:
            break
        runs = max(LEAST_RUNS, done + 1, math.ceil(1.1 * needed))
    # The mean of a few weights has a logarithm that is too small, by half its variance.
    values = start.log_z + _log_mean(log_w) + _shortfall(log_w)
    return LogZ(values, found, log_w.shape[1])


def _trial(potentials: Potentials, base: Floats, seed: int, threads: int, budget: float) -> _Start:
    """Double the number of steps until log weights vary little; return the last trial."""
    log_z, unary, tables = _rebased(potentials, base)
    count, steps = TRIAL_RUNS[potentials.graph.n_graphs > 1], FIRST_STEPS
    while True:
        weights = _runs(potentials, unary, tables, count, steps, seed, threads)
        if _spread(weights) <= SPREAD or steps >= MOST_STEPS or 20 * steps * count > budget:
            return _Start(log_z, unary, tables, steps, weights)
        steps *= 2


def _best(trials: Sequence[_Start]) -> _Start:
    """Return the first of the starts whose estimates are not clearly less than another, or one that is much cheaper.

    An annealed estimate is hardly ever too large, since it is right in the mean; too small ones miss a mode. A start
    that a few particles found may miss one that is too rare for the trial runs, too.
    """
    errors = [trial.error for trial in trials]
    top = max(range(len(trials)), key=lambda i: trials[i].mean - errors[i])
    near = [
        trial
        for trial, error in zip(trials, errors, strict=True)
        if trial.mean + SIGNIFICANT_ERRORS * math.hypot(error, errors[top]) >= trials[top].mean
    ]
    first, cheapest = near[0], min(near, key=lambda trial: trial.cost)
    return cheapest if CHEAPER_FACTOR * cheapest.cost < first.cost else first


def _rebased(potentials: Potentials, base: Floats) -> tuple[Floats, Floats, Floats]:
    """Return ([G] log Z of the start, its unary part, the tables of all that is left)."""
    _, unary, tables = rebased(potentials, base)
    return potentials.graph.sum_nodes(np.logaddexp.reduce(unary, axis=1)), unary, tables


def _runs(
    potentials: Potentials, unary: Floats, tables: Floats, count: int, steps: int, seed: int, threads: int
) -> Floats:
    """Return log weights [G, runs] of independent annealed runs."""
    plan = gibbs_plan(potentials.graph)
    return np.asarray(_core.gibbs_annealed(plan, unary, tables, count, steps, False, seed % 2**64, STREAM, threads))


def _log_mean(log_w: Floats) -> Floats:
    return np.asarray(np.logaddexp.reduce(log_w, axis=1) - math.log(log_w.shape[1]))


def _spread(log_w: Floats) -> float:
    """Return the variance of log weights within a graph, the mean over graphs."""
    return float(log_w.var(axis=1, ddof=1).mean())


def _variances(log_w: Floats) -> Floats:
    """Return [G] variances of weights, relative to the square of their mean."""
    w = np.exp(log_w - log_w.max(axis=1, keepdims=True))
    if log_w.shape[1] < 2:
        return np.full(len(w), np.inf)
    return np.asarray(w.var(axis=1, ddof=1) / np.square(w.mean(axis=1)))


def _shortfall(log_w: Floats) -> Floats:
    """Return [G] how much the logarithm of the mean weight is too small, to first order (0 of a single run)."""
    runs = log_w.shape[1]
    return 0.5 * _variances(log_w) / runs if runs > 1 else np.zeros(len(log_w))


def _mean_error(log_w: Floats, shares: Floats) -> float:
    """Return the standard error of the mean of log Z over graphs, whose errors are independent."""
    return math.sqrt(float(np.square(shares) @ _variances(log_w)) / log_w.shape[1])


def _needed_runs(log_w: Floats, shares: Floats, error: float, bias: float) -> float:
    """Return the number of runs of each graph that the error and the bias need, by the weights so far.

    The bias of log Ẑ has terms (variance / runs)^k. The first is corrected, the second may be as large as `bias`.
    """
    variances = _variances(log_w)
    needed = float(np.square(shares) @ variances) / error**2
    return max(needed, math.sqrt(float(shares @ np.square(variances)) / bias))
