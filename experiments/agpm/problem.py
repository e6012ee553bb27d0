"""The problems of Xue & Zhang (2016) and the methods that they compare.

Random pairwise CRFs (every pair an edge with probability .5), all pairs as candidates, λ₁‖v‖² + λ₂Σ‖w_s‖_∞ with
λ₁ = λ₂ = .5, from zero until ‖P(x − ∇f) − x‖ < 10⁻⁴, at most 10,000 iterations. The weights are those of the paper:
v_{i,2} = 0, w_{ij,22} = 0. The test error is the share of nodes whose most probable label by exact marginals is wrong.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

import numpy as np
from halves import Halves

from crfkit.graph.fields.field import untied_field
from crfkit.graph.inference.junction import Junction
from crfkit.losses import GraphLikelihood, PseudoLikelihood
from crfkit.penalties import L2, Blockwise, GroupLinf
from crfkit.solvers import AGPM, SPG, GradientNorm, Zhou
from crfkit.synthetic import PairwiseTable, random_pairwise

METHODS = {"M-[14]": SPG, "M-[23]": Zhou, "AGPM": AGPM}
SETTINGS = [(nodes, features) for nodes in (5, 10, 15) for features in (5, 10, 15, 20)]
LAMBDA_1, LAMBDA_2, EPSILON = 0.5, 0.5, 1e-4
N_TEST = 100
FEW_NODES = 5  # up to here the junction tree is as fast as listing labellings in halves


@lru_cache(maxsize=2)
def table_of(nodes: int, features: int, n_train: int, draw: int) -> PairwiseTable:
    return random_pairwise(nodes, features, n_train + N_TEST, seed=100_000 * draw + 1000 * nodes + features)


def engine_of(nodes: int) -> Any:
    return Junction(n_threads=1) if nodes <= FEW_NODES else Halves()


class Problem:
    """One draw of the data with one loss, "pl" or "likelihood"."""

    def __init__(self, kind: str, nodes: int, features: int, n_train: int, draw: int = 0, engine: Any = None) -> None:
        self.table = table_of(nodes, features, n_train, draw)
        train, self.test = self.table[:n_train].data(), self.table[n_train:].data()
        self.field = untied_field(train, 2)
        self.engine = engine or engine_of(nodes)
        self.loss: Any = (
            PseudoLikelihood(train, self.field, 1) if kind == "pl" else GraphLikelihood(train, self.field, self.engine)
        )
        self.pairs = train.graph.take([0])[0].edges.tolist()
        groups = np.repeat(np.arange(len(self.pairs)), self.field.n_edge_weights // len(self.pairs))
        self.penalty = Blockwise({"node": L2(2 * LAMBDA_1), "edge": GroupLinf(LAMBDA_2, groups)})
        self.evaluate(np.zeros(self.loss.size))  # builds what is built once

    def evaluate(self, w: Any) -> Any:
        return self.loss.at(w).grad

    def minimize(self, solver: Any) -> tuple[Any, float]:
        """Return the result and its CPU seconds."""
        begin = time.process_time()
        result = solver.minimize(self.loss, self.penalty, np.zeros(self.loss.size))
        return result, time.process_time() - begin

    def row(self, result: Any, cpu: float) -> dict[str, Any]:
        """Return what is kept of a run."""
        kept = result.w[self.field.layout["edge"]].reshape(len(self.pairs), -1).any(axis=1)
        true = set(map(tuple, self.table.edges.tolist()))
        marginals = self.engine.run(self.field.potentials(self.test, result.w)).nodes
        return {
            "evaluations": result.evaluations,
            "iterations": result.iterations,
            "cpu": [round(cpu, 4)],
            "objective": round(result.value, 9),
            "error": float(((marginals[:, 1] > 0.5) != self.test.labels).mean().round(6)),
            "edges": int(kept.sum()),
            "true": len(true),
            "candidates": len(self.pairs),
            "hits": sum(tuple(pair) in true for pair, k in zip(self.pairs, kept, strict=True) if k),
            "status": result.status.name,
        }


def paper_rule(make: Any, **options: Any) -> Any:
    """Return a solver that stops by the rule of the paper and no other."""
    return make(eps=EPSILON, stopping=GradientNorm(0.0), **options)
