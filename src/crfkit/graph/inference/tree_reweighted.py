"""Tree-reweighted sum-product (Wainwright, Jaakkola & Willsky 2005): an upper bound on log Z, convex."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from crfkit._checks import check_count
from crfkit._types import Floats
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.belief_propagation import SCHEDULES, check_iteration, pass_messages
from crfkit.graph.inference.marginals import Marginals
from crfkit.names import check_name


@dataclass(frozen=True)
class TreeReweighted:
    """Belief propagation with edges weighted by how often they appear in spanning trees.

    At convergence log Z is an upper bound. The weights are those of an even mixture of at least `n_trees` spanning
    forests that together cover every edge. Other options as for belief propagation.

    >>> from crfkit.graph.graph import Graph
    >>> field = Potentials.from_tables(Graph.grid((2, 2)), [[0, 1]] + 3 * [[0, 0]], [[0.5, 0], [0, 0.5]])
    >>> TreeReweighted().run(field).status.name
    'CONVERGED'
    """

    damping: float | None = None
    schedule: str = "sweep"
    max_iterations: int = 1000
    tolerance: float = 1e-10
    n_trees: int = 16
    n_threads: int | None = None
    kernels: str = "auto"

    name = "trw"
    bound = "upper"

    def __post_init__(self) -> None:
        check_name("schedule", self.schedule, SCHEDULES)
        check_count(n_trees=self.n_trees)
        check_iteration(self, adaptive=True)

    def run(self, potentials: Potentials, warm: Marginals | None = None) -> Marginals:
        rho = edge_appearances(potentials.graph, int(self.n_trees))
        return pass_messages(self, potentials, rho, warm)


_APPEARANCES: WeakKeyDictionary[Graph, dict[int, Floats]] = WeakKeyDictionary()


def edge_appearances(graph: Graph, n_trees: int) -> Floats:
    """Return the share [E] of spanning forests that have each edge; each forest prefers the edges least used so far."""
    known = _APPEARANCES.setdefault(graph, {})
    if n_trees not in known:
        known[n_trees] = _appearances(graph, n_trees)
    return known[n_trees]


def _appearances(graph: Graph, n_trees: int) -> Floats:
    used = np.zeros(graph.n_edges)
    if graph.is_forest:
        return used + 1
    ties = np.random.default_rng(0)
    cost = np.empty(graph.n_edges)
    trees = 0
    while trees < n_trees or not used.all():
        # Integers first, so that what is least used comes first; random ties spread the trees.
        ties.random(out=cost)
        cost += used
        used[graph.native.spanning_forest(cost)] += 1
        trees += 1
    return used / trees
