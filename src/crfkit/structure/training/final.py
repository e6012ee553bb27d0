"""Weights of the chosen edges by likelihood, so that the field is right as a distribution and not only row by row.

A pseudo-likelihood fits every variable given the others. On dense graphs its weights can give marginals that are far
from those of the data. Where the junction tree is small the likelihood is exact; else particles stand in for it
(structure_particles.py), or the weights stay as they are, with a warning that says how far off they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crfkit._types import Floats
from crfkit.graph.graph import Graph
from crfkit.graph.inference.annealed import Annealed
from crfkit.graph.inference.gibbs import Gibbs
from crfkit.graph.inference.junction import Junction
from crfkit.graph.inference.marginals import Engine
from crfkit.graph.inference.tree import Tree
from crfkit.structure.losses.edges import EdgeLoss
from crfkit.structure.losses.likelihood import StructureLikelihood
from crfkit.structure.observations import Observations
from crfkit.structure.training.particles import sampled_weights
from crfkit.structure.training.refit import REFIT, Solution
from crfkit.structure.training.search import Search

REFITS = ("auto", "likelihood", "pseudo-likelihood")
RATE = 2e-7  # seconds per entry of the tables of a junction tree, for an evaluation of the likelihood
EVALUATIONS = 40  # of a refit
PATIENCE = 60.0  # seconds that "auto" spends on exact inference
SAMPLED = 150  # variables up to which "auto" estimates the likelihood by particles: a minute or so
ROWS = 200  # with inputs, of which marginals are compared
OFF = 0.1  # difference of a marginal from the data's that is worth a warning


@dataclass(frozen=True)
class Refit:
    """How the weights of the chosen edges were made, and what is known about the field."""

    by: str  # "exact likelihood", "sampled likelihood", "pseudo-likelihood", "penalised loss"
    mismatch: float | None = None  # largest difference of a marginal from the data's
    log_likelihood: float | None = None  # mean per row of training, where sampled
    independent: float | None = None  # the same without edges

    def record(self) -> dict[str, Any]:
        """For the model file."""
        found = {"by": self.by, "mismatch": self.mismatch, "log_likelihood": self.log_likelihood}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def concern(self) -> str | None:
        """Return what a person should know before using the model as a distribution; None if all is well."""
        below = (
            self.log_likelihood is not None
            and self.independent is not None
            and self.log_likelihood < self.independent - 0.05
        )
        if not below and (self.mismatch is None or self.mismatch <= OFF):
            return None
        size = "" if self.mismatch is None else f": a marginal differs from the data's by {self.mismatch:.2f}"
        if below:
            size += (
                f"; the log-likelihood is {self.log_likelihood:.2f} per row, against {self.independent:.2f} for "
                "independent columns"
            )
        return (
            "the graph is too dense to fit its weights by exact likelihood, and the field does not match the "
            f"data{size}. Edges and predictions of one variable from the others are not concerned; score(), sample() "
            "and marginals are. Fewer edges help (a larger ebic_gamma, edge_strength='stability'), or "
            "refit='likelihood' with patience"
        )


def refit_weights(
    solution: Solution, search: Search, how: str = "auto", engine: Engine | None = None
) -> tuple[Solution, Refit]:
    """Return the edges of a solution with the weights of the likelihood, and how they were found.

    `how`: "auto" is exact within a minute, else sampled, but for graphs so large that sampling takes minutes, too;
    "likelihood" is exact if memory allows it, else sampled. `engine`, where it
    is exact, is the one that the solution's own loss used: nothing is left to do.
    """
    loss = solution.loss
    if not len(loss.edges) or (engine is not None and engine.bound == "exact"):
        return solution, Refit("exact likelihood" if len(loss.edges) else "penalised loss")
    exact = exact_engine(loss.table, loss.graph, how, search.options.n_threads)
    if exact is not None:
        found = search.refits.smooth(Solution(_likelihood(loss, exact), solution.w))
        return found, Refit("exact likelihood")
    if loss.table.has_inputs:
        return solution, Refit("pseudo-likelihood", _mismatch_given_inputs(solution, search.options.seed))
    if how == "auto" and loss.table.n_variables > SAMPLED:
        return solution, Refit("pseudo-likelihood", _mismatch(solution, search.options.seed))
    return _sampled(solution, search)


def exact_engine(table: Observations, graph: Graph, how: str, n_threads: int | None) -> Engine | None:
    """Return an exact engine for the graph if a refit with it takes no longer than `how` allows, else None."""
    if graph.is_forest:
        return Tree(n_threads)
    K = int(table.n_states.max())
    engine = Junction(n_threads=n_threads)
    if not engine.fits(graph, K):
        return None
    if how == "likelihood":
        return engine
    runs = len(table.states) if table.has_inputs else 1
    return engine if RATE * EVALUATIONS * runs * engine.entries(graph, K) <= PATIENCE else None


def _likelihood(loss: EdgeLoss, engine: Engine) -> StructureLikelihood:
    return StructureLikelihood(loss.table, loss.edges, loss.active_ids, engine)


def _sampled(solution: Solution, search: Search) -> tuple[Solution, Refit]:
    """Return the weights that particles estimate, or the ones that there were if those fit better."""
    options, loss = search.options, solution.loss
    likelihood = _likelihood(loss, Annealed())
    data, n_nodes = likelihood.data, loss.field.n_node_weights
    ridge = np.full(loss.size, REFIT)
    ridge[:n_nodes] = search.node_strength
    judge = Judge(likelihood, options.seed, options.n_threads)
    old = judge.of(solution.w)
    independent = search.empty(likelihood).w
    apart = np.concatenate([independent, np.zeros(loss.size - n_nodes)])
    base = judge.independent(apart)
    # Weights that are nonsense as a distribution are no place to start from.
    start = solution.w if old[0] > base else apart
    table = loss.table
    w, rounds = sampled_weights(
        data, loss.field, table.states, table.weights, ridge, start, options.seed, options.n_threads
    )
    if rounds == 0:
        return solution, Refit("pseudo-likelihood", old[1], old[0], base)
    new = judge.of(w)
    if new[0] < old[0]:
        return solution, Refit("pseudo-likelihood", old[1], old[0], base)
    return Solution(loss, w, solution.result), Refit("sampled likelihood", new[1], new[0], base)


class Judge:
    """Estimates how well weights fit a table without inputs."""

    def __init__(self, likelihood: StructureLikelihood, seed: int, n_threads: int | None) -> None:
        self._likelihood = likelihood
        self._engine = Annealed(0.05, seed=seed, n_threads=n_threads, max_rounds=4)
        data, field = likelihood.data, likelihood.field
        self._total = float(data.graph_weights[0])
        self._target = field.adjoint(data, *field.observed(data)) / self._total
        assert data.node_counts is not None
        self._marginals = data.node_counts / self._total

    def of(self, w: Floats) -> tuple[float, float]:
        """Return the log-likelihood per row and the largest difference of a marginal from the data's."""
        likelihood = self._likelihood
        found = self._engine.run(likelihood.field.potentials(likelihood.data, w))
        return float(w @ self._target - found.log_z[0]), float(np.abs(found.nodes - self._marginals).max())

    def independent(self, w: Floats) -> float:
        """Return the log-likelihood per row of weights without edges."""
        unary = self._likelihood.field.potentials(self._likelihood.data, w).unary
        return float(w @ self._target - np.logaddexp.reduce(unary, axis=1).sum())


def _mismatch(solution: Solution, seed: int) -> float:
    """Return the largest difference between sampled marginals and shares of labels in a table without inputs."""
    likelihood = _likelihood(solution.loss, Gibbs())
    data = likelihood.data
    assert data.node_counts is not None
    found = _sampler(seed).run(likelihood.field.potentials(data, solution.w))
    return float(np.abs(found.nodes - data.node_counts / float(data.graph_weights[0])).max())


def _sampler(seed: int) -> Gibbs:
    return Gibbs(n_sweeps=200, burn_in=100, n_chains=4, ais_steps=1, ais_runs=2, seed=seed)


def _mismatch_given_inputs(solution: Solution, seed: int) -> float:
    """Return the largest difference between sampled marginals and labels, as means over some rows."""
    loss = solution.loss
    table = loss.table
    rows = np.unique(np.linspace(0, len(table.states) - 1, ROWS).astype(int))
    some = StructureLikelihood(table.take(rows), loss.edges, loss.active_ids, Gibbs())
    potentials = some.field.potentials(some.data, solution.w)
    found = _sampler(seed).run(potentials)
    K = int(table.n_states.max())
    p, labels = found.nodes.reshape(len(rows), -1, K), table.states[rows]
    return float(np.abs(p.mean(axis=0) - (labels[:, :, None] == np.arange(K)).mean(axis=0)).max())
