"""Naive mean field: the closest fully factored distribution, a lower bound on log Z."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crfkit import _core
from crfkit._threads import count_threads
from crfkit._types import Floats
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.inference.belief_propagation import check_iteration, iteration_status, native_arrays
from crfkit.graph.inference.marginals import Marginals


@dataclass(frozen=True)
class MeanField:
    """Coordinate ascent on E[score] + entropy over factored distributions; it has local optima.

    log Z is a lower bound whether or not it has converged. Edge marginals are products of node marginals. It starts
    from the marginals of `warm`, or from the unary part by itself. tolerance: on the largest change of a probability
    in a sweep, as it would be without damping.

    >>> from crfkit.graph.graph import Graph
    >>> field = Potentials.from_tables(Graph.grid((2, 2)), [[0, 1]] + 3 * [[0, 0]], [[0.5, 0], [0, 0.5]])
    >>> MeanField().run(field).status.name
    'CONVERGED'
    """

    damping: float = 0.0
    max_iterations: int = 1000
    tolerance: float = 1e-10
    n_threads: int | None = None
    kernels: str = "auto"

    name = "mean-field"
    bound = "lower"

    def __post_init__(self) -> None:
        check_iteration(self)

    def run(self, potentials: Potentials, warm: Marginals | None = None) -> Marginals:
        threads = count_threads(self.n_threads)
        graph = potentials.graph
        field = _core.MeanField(graph.native, graph.blocks, *native_arrays(potentials), self.kernels, threads)
        field.start_from(_start(potentials, warm))
        damping = float(self.damping)
        iterations, residual, settled = field.run(self.max_iterations, self.tolerance, damping, threads)
        nodes = field.nodes()
        i, j = graph.edges[:, 0], graph.edges[:, 1]
        log_z = field.log_z(threads)
        return Marginals(
            log_z,
            nodes,
            lambda: nodes[i][:, :, None] * nodes[j][:, None, :],
            iteration_status(settled, log_z),
            iterations,
            residual,
            method=self.name,
        )


def _start(potentials: Potentials, warm: Marginals | None) -> Floats:
    """Return an array [n, K]: the warm marginals, of the states that are possible here; otherwise each node by itself.

    Damping would keep a share of an impossible state for ever, and a share of it makes the bound −inf.
    """
    with np.errstate(invalid="ignore", over="ignore"):  # of potentials that have overflowed; the bound is NaN then
        z: Floats = np.exp(potentials.unary - potentials.unary.max(axis=1, keepdims=True))
        z /= z.sum(axis=1, keepdims=True)
    if warm is not None and warm.nodes.shape == z.shape:
        kept = np.where(potentials.allowed, warm.nodes, 0.0)
        total = kept.sum(axis=1, keepdims=True)
        np.divide(kept, total, out=z, where=np.isfinite(total) & (total > 0))
    return z
