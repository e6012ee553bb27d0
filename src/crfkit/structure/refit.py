"""Weights of the chosen edges by likelihood, so that the field is right as a distribution and not only row by row.

A pseudo-likelihood fits every variable given the others. On dense graphs its weights can give marginals that are far
from those of the data. Where the junction tree is small the likelihood is exact. Elsewhere particles estimate it
(``particles``), or the weights stay unchanged, with a warning if marginals differ from the data's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crfkit._types import Entries, Floats
from crfkit.graph.graph import Graph
from crfkit.graph.inference.annealed import Annealed
from crfkit.graph.inference.gibbs import Gibbs
from crfkit.graph.inference.junction import Junction
from crfkit.graph.inference.marginals import Engine
from crfkit.graph.inference.tree import Tree
from crfkit.structure.losses.edges import EdgeLoss
from crfkit.structure.losses.likelihood import StructureLikelihood
from crfkit.structure.observations import Observations
from crfkit.structure.options import StructureOptions
from crfkit.structure.particles import sampled_weights
from crfkit.structure.solve import EdgeSolver, Solution


@dataclass(frozen=True)
class Refit:
    """The refit of the chosen edges' weights, and what is known about the field."""

    by: str  # "exact likelihood", "sampled likelihood", "pseudo-likelihood", "penalised loss"
    mismatch: float | None = None  # largest difference of a marginal from the data's
    log_likelihood: float | None = None  # mean per row of training, where sampled
    independent: float | None = None  # the same without edges

    def record(self) -> Entries:
        """Return what the model file keeps."""
        found = {"by": self.by, "mismatch": self.mismatch, "log_likelihood": self.log_likelihood}
        return {name: value for name, value in found.items() if value is not None}

    def concern(self, mismatch_limit: float) -> str | None:
        """Return a warning about using the model as a distribution; None if marginals differ by at most the limit."""
        below = (
            self.log_likelihood is not None
            and self.independent is not None
            and self.log_likelihood < self.independent - 0.05
        )
        if not below and (self.mismatch is None or self.mismatch <= mismatch_limit):
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


@dataclass(frozen=True)
class LikelihoodRefit:
    """Gives the edges of a solution the weights of the likelihood."""

    solver: EdgeSolver

    @property
    def options(self) -> StructureOptions:
        return self.solver.options

    def refit(self, solution: Solution, engine: Engine | None = None) -> tuple[Solution, Refit]:
        """Return the solution with the weights of the likelihood, and how they were found.

        With the option `refit` "auto", the likelihood is exact within a minute, otherwise sampled, except for graphs so
        large that sampling takes minutes, too. With "likelihood", it is exact if memory allows it, otherwise sampled.
        `engine` is the one that the solution's own loss used: if it is exact, nothing remains to be done.
        """
        loss = solution.loss
        if not len(loss.edges) or (engine is not None and engine.bound == "exact"):
            return solution, Refit("exact likelihood" if len(loss.edges) else "penalised loss")
        exact = self._exact_engine(loss.table, loss.graph)
        if exact is not None:
            return self.solver.refit(Solution(_likelihood(loss, exact), solution.w)), Refit("exact likelihood")
        if loss.table.has_inputs:
            return solution, Refit("pseudo-likelihood", self._mismatch_given_inputs(solution))
        if self.options.refit == "auto" and loss.table.n_variables > self.options.tunables.sampled_variables:
            return solution, Refit("pseudo-likelihood", self._mismatch(solution))
        return self._sampled(solution)

    def _exact_engine(self, table: Observations, graph: Graph) -> Engine | None:
        """Return an exact engine for the graph if a refit with it is as fast as the options require, otherwise None."""
        n_threads, tunables = self.options.n_threads, self.options.tunables
        if graph.is_forest:
            return Tree(n_threads)
        K = int(table.n_states.max())
        engine = Junction(n_threads=n_threads)
        if not engine.fits(graph, K):
            return None
        if self.options.refit == "likelihood":
            return engine
        runs = len(table.states) if table.has_inputs else 1
        seconds = tunables.seconds_per_entry * tunables.refit_evaluations * runs * engine.entries(graph, K)
        return engine if seconds <= tunables.exact_seconds else None

    def _sampled(self, solution: Solution) -> tuple[Solution, Refit]:
        """Return the weights that particles estimate, or the given ones if those fit better."""
        loss = solution.loss
        likelihood = _likelihood(loss, Annealed())
        judge = FitJudge(likelihood, self.options.seed, self.options.n_threads)
        old_value, old_mismatch = judge.fit(solution.w)
        without_edges = self.solver.empty(likelihood).w
        apart = np.concatenate([without_edges, np.zeros(loss.size - loss.field.n_node_weights)])
        base = judge.independent(apart)
        kept = solution, Refit("pseudo-likelihood", old_mismatch, old_value, base)
        # Weights that are nonsense as a distribution are no place to start from.
        start = solution.w if old_value > base else apart
        w, rounds = sampled_weights(likelihood, self.solver.ridge(loss), start, self.options)
        if rounds == 0:
            return kept
        value, mismatch = judge.fit(w)
        if value < old_value:
            return kept
        return Solution(loss, w, solution.result), Refit("sampled likelihood", mismatch, value, base)

    def _mismatch(self, solution: Solution) -> float:
        """Return the largest difference between sampled marginals and shares of labels in a table without inputs."""
        likelihood = _likelihood(solution.loss, Gibbs())
        data = likelihood.data
        assert data.node_counts is not None
        found = self._sampler().run(likelihood.field.potentials(data, solution.w))
        return float(np.abs(found.nodes - data.node_counts / float(data.graph_weights[0])).max())

    def _mismatch_given_inputs(self, solution: Solution) -> float:
        """Return the largest difference between sampled marginals and labels, as means over some rows."""
        loss = solution.loss
        table = loss.table
        rows = np.unique(np.linspace(0, len(table.states) - 1, self.options.tunables.compared_rows).astype(int))
        some = StructureLikelihood(table.take(rows), loss.edges, loss.active_ids, Gibbs())
        found = self._sampler().run(some.field.potentials(some.data, solution.w))
        K = int(table.n_states.max())
        p, labels = found.nodes.reshape(len(rows), -1, K), table.states[rows]
        return float(np.abs(p.mean(axis=0) - (labels[:, :, None] == np.arange(K)).mean(axis=0)).max())

    def _sampler(self) -> Gibbs:
        return Gibbs(n_sweeps=200, burn_in=100, n_chains=4, ais_steps=1, ais_runs=2, seed=self.options.seed)


def _likelihood(loss: EdgeLoss, engine: Engine) -> StructureLikelihood:
    return StructureLikelihood(loss.table, loss.edges, loss.active_ids, engine)


class FitJudge:
    """Estimates how well weights fit a table without inputs."""

    def __init__(self, likelihood: StructureLikelihood, seed: int, n_threads: int | None) -> None:
        self._likelihood = likelihood
        self._engine = Annealed(0.05, seed=seed, n_threads=n_threads, max_rounds=4)
        data, field = likelihood.data, likelihood.field
        self._total = float(data.graph_weights[0])
        self._target = field.adjoint(data, *field.observed(data)) / self._total
        assert data.node_counts is not None
        self._marginals = data.node_counts / self._total

    def fit(self, w: Floats) -> tuple[float, float]:
        """Return the log-likelihood per row and the largest difference of a marginal from the data's."""
        likelihood = self._likelihood
        found = self._engine.run(likelihood.field.potentials(likelihood.data, w))
        return float(w @ self._target - found.log_z[0]), float(np.abs(found.nodes - self._marginals).max())

    def independent(self, w: Floats) -> float:
        """Return the log-likelihood per row of weights without edges."""
        unary = self._likelihood.field.potentials(self._likelihood.data, w).unary
        return float(w @ self._target - np.logaddexp.reduce(unary, axis=1).sum())
