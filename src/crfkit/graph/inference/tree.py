"""Exact inference on forests, in the compiled core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from crfkit import _core
from crfkit._checks import is_whole
from crfkit._threads import count_threads
from crfkit._types import Floats, Ids
from crfkit.errors import ParameterError, sample_error
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.marginals import InferenceStatus, Marginals

_PLANS: WeakKeyDictionary[Graph, _core.TreePlan] = WeakKeyDictionary()


@dataclass(frozen=True)
class Tree:
    """Sum-product and max-product on graphs without cycles, O(n K²). Exact.

    >>> pair = Potentials.from_tables(Graph.path(2), np.zeros((2, 2)), np.log([[3.0, 1.0], [1.0, 3.0]]))
    >>> Tree().run(pair).edges[0].round(3).tolist()
    [[0.375, 0.125], [0.125, 0.375]]
    """

    n_threads: int | None = None  # None: all; components are shared out among them

    name = "tree"
    bound = "exact"

    def __post_init__(self) -> None:
        check_threads(self.n_threads)

    def run(self, potentials: Potentials, warm: Marginals | None = None) -> Marginals:
        log_z, nodes, edges = plan_of(potentials.graph).marginals(*native_arrays(potentials), self._threads)
        return Marginals(log_z, nodes, lambda: edges, InferenceStatus.EXACT)

    def decode(self, potentials: Potentials) -> Ids:
        """Return an array [n]: a labelling of the highest score; of equals, the lowest state."""
        labels: Ids = plan_of(potentials.graph).decode(*native_arrays(potentials), self._threads)
        return labels

    def sample(self, potentials: Potentials, n_samples: int, seed: int = 0) -> Ids:
        """Return independent labellings [n_samples, n]."""
        check_sampling(n_samples, seed)
        arrays = native_arrays(potentials)
        labels: Ids = plan_of(potentials.graph).sample(*arrays, n_samples, seed, self._threads)
        return labels

    @property
    def _threads(self) -> int:
        return count_threads(self.n_threads)


def plan_of(graph: Graph) -> _core.TreePlan:
    """Return the order of passing through a forest; found once per graph. Raises where there is a cycle."""
    plan = _PLANS.get(graph)
    if plan is None:
        plan = _core.TreePlan(graph.native)
        if plan.cyclic >= 0:
            advice = "'tree' is for forests: use 'junction' (exact) or 'bp'"
            raise sample_error(ParameterError, plan.cyclic, f" has a cycle; {advice}")
        _PLANS[graph] = plan
    return plan


def native_arrays(potentials: Potentials) -> tuple[Floats, Floats]:
    """Return (unary [n, K], tables [E, K, K]) as the core reads them."""
    return np.ascontiguousarray(potentials.unary), np.ascontiguousarray(potentials.tables)


def check_threads(n_threads: Any) -> None:
    if n_threads is not None and (not is_whole(n_threads) or n_threads < 1):
        raise ParameterError(f"n_threads must be an integer >= 1 or None (all), not {n_threads!r}")


def check_sampling(n_samples: Any, seed: Any) -> None:
    for what, given in (("the number of samples", n_samples), ("the seed", seed)):
        if not is_whole(given) or not 0 <= given < 1 << 64:
            raise ParameterError(f"{what} must be an integer >= 0, not {given!r}")
