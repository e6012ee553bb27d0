"""Max-product messages: the best labelling, exact on forests."""

from __future__ import annotations

from dataclasses import dataclass

from crfkit import _core
from crfkit._threads import count_threads
from crfkit._types import Ids
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.inference.belief_propagation import SCHEDULES, check_iteration, native_arrays
from crfkit.names import check_name


@dataclass(frozen=True)
class MaxProduct:
    """Loopy max-product; options as for belief propagation.

    >>> from crfkit.graph.graph import Graph
    >>> field = Potentials.from_tables(Graph.grid((2, 2)), [[1.5, 0], [0, 1], [0, 1], [0, 1]], [[1, 0], [0, 1]])
    >>> labels, converged = MaxProduct().decode(field)
    >>> labels.tolist(), converged
    ([1, 1, 1, 1], True)
    """

    damping: float = 0.5
    schedule: str = "sweep"
    max_iterations: int = 200
    tolerance: float = 1e-6
    n_threads: int | None = None

    name = "max-product"

    def __post_init__(self) -> None:
        check_name("schedule", self.schedule, SCHEDULES)
        check_iteration(self)

    def decode(self, potentials: Potentials) -> tuple[Ids, bool]:
        """Return (the state of the largest belief of every node, whether the messages converged)."""
        threads = count_threads(self.n_threads)
        messages = _core.LogMessages(potentials.graph.native, *native_arrays(potentials), None, True)
        damping = float(self.damping)
        _, _, settled = messages.run(self.max_iterations, self.tolerance, damping, self.schedule, threads)
        return messages.states(threads), settled
