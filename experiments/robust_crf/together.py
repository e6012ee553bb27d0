"""Several runs of solvers on the same data at once: their products with the features are one product of matrices.

A run spends most of its time in reading the features: one product for the scores of all blocks and one for the
gradient, at each evaluation. Runs with other strengths or other solvers read the same features. Here each run has a
thread of its own, which waits at these products until all other runs have come to theirs. One thread runs at a time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import GraphField
from crfkit.graph.fields.potentials import Potentials


class Meeting:
    """Where the runs wait for each other; the last that comes computes the products for all."""

    def __init__(self, data: GraphData, members: int) -> None:
        self.features = data.node_features, data.edge_features
        self.members = members
        self.turn = threading.Condition()  # held by the thread that runs
        self.asked: list[tuple[bool, Any]] = []
        self.answers: list[Any] = []
        self.round = 0
        self.spent = threading.local()  # CPU seconds of a thread in products

    def product(self, back: bool, given: Any) -> Any:
        """Return (scores of nodes, scores of edges) of weights, or with `back` the sums of features by both."""
        place, now = len(self.asked), self.round
        self.asked.append((back, given))
        if len(self.asked) == self.members:
            self._answer()
        else:
            self.turn.wait_for(lambda: self.round > now)
        answers: list[Any] = self.answers
        return answers[place]

    def leave(self) -> None:
        self.members -= 1
        if self.asked and len(self.asked) == self.members:
            self._answer()

    def _answer(self) -> None:
        begin = time.thread_time()
        answers: list[Any] = [None] * len(self.asked)
        for back in (False, True):
            places = [k for k, (kind, _) in enumerate(self.asked) if kind is back]
            if places:
                pairs = [np.stack([self.asked[k][1][part] for k in places]) for part in (0, 1)]
                found = [x @ (F if back else F.T) for x, F in zip(pairs, self.features, strict=True)]
                for row, k in enumerate(places):
                    answers[k] = found[0][row], found[1][row]
        self.answers, self.asked, self.round = answers, [], self.round + 1
        self.spent.seconds = getattr(self.spent, "seconds", 0.0) + time.thread_time() - begin
        self.turn.notify_all()


@dataclass(frozen=True, eq=False)
class SharedField(GraphField):
    """An Ising field on the data of a meeting, whose products are computed there."""

    meeting: Any = None

    @classmethod
    def of(cls, field: GraphField, meeting: Meeting) -> SharedField:
        return cls(field.n_states, field.n_node_features, field.n_edge_features, 1, "ising", "ising", meeting=meeting)

    def potentials(self, data: GraphData, w: Any) -> Potentials:
        nodes, edges = self.meeting.product(False, (w[self.layout["node"]], w[self.layout["edge"]]))
        return Potentials(data.graph, nodes[:, None] @ self.node_basis, edges[:, None].copy(), self.edge_basis)

    def adjoint(self, data: GraphData, nodes: Any, edges: Any) -> Any:
        found = self.meeting.product(True, ((nodes @ self.node_basis.T)[:, 0], edges[:, 0]))
        return np.concatenate(found)


def run_together(field: GraphField, data: GraphData, runs: Sequence[Callable[[GraphField], Any]]) -> list[Any]:
    """Return (what each run returned, its own CPU seconds without the products); a run is given the field to use."""
    meeting = Meeting(data, len(runs))
    shared = SharedField.of(field, meeting)
    found: list[Any] = [None] * len(runs)

    def follow(place: int) -> None:
        with meeting.turn:
            begin = time.thread_time()
            try:
                answer = runs[place](shared)
                found[place] = answer, time.thread_time() - begin - getattr(meeting.spent, "seconds", 0.0)
            except BaseException as error:
                found[place] = error
            finally:
                meeting.leave()

    threads = [threading.Thread(target=follow, args=(k,)) for k in range(len(runs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for answer in found:
        if isinstance(answer, BaseException):
            raise answer
    return found


def product_seconds(field: GraphField, data: GraphData, times: int = 3) -> float:
    """Return the CPU seconds of the two products of an evaluation for one run by itself: the least of some."""
    w, least = np.ones(field.size), np.inf
    for _ in range(times):
        begin = time.process_time()
        made = field.potentials(data, w)
        field.adjoint(data, made.unary, made.coefficients)
        least = min(least, time.process_time() - begin)
    return least
