"""Run the independent parts of a search: one after the other here, in `distributed.tasks` on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import ClassVar, TypeVar

D = TypeVar("D")  # what all parts share
I = TypeVar("I")  # noqa: E741 - what tells a part from the others
V = TypeVar("V")  # what all parts are given at a time
S = TypeVar("S")  # what a part leaves for the next time
R = TypeVar("R")


class Tasks:
    """Runs the parts of a search in this process, one after the other.

    A part is a function of the shared data and a small item. It changes neither, so it may run anywhere, and
    again if it was lost. Close the generators that the methods return if you leave them before their end.

    >>> list(Tasks().map(pow, 2, [1, 2, 3]))
    [2, 4, 8]
    >>> def add(data, item, value, state):
    ...     total = value + (state or 0)
    ...     return data[item] * total, total
    >>> list(Tasks().together(add, [1, 10], [0, 1], [5, 6]))
    [[5, 50], [11, 110]]
    """

    here: ClassVar[bool] = True  # whether parts run in this thread, so that callbacks may see what happens in them

    def map(self, function: Callable[[D, I], R], data: D, items: Iterable[I]) -> Generator[R, None, None]:
        """Yield function(data, item) of each item, in their order."""
        return (function(data, item) for item in items)

    def together(
        self,
        function: Callable[[D, I, V, S | None], tuple[R, S]],
        data: D,
        items: Iterable[I],
        values: Iterable[V],
    ) -> Generator[list[R], None, None]:
        """Yield the results of all items at each value.

        function(data, item, value, state) returns a result and the state that it is given at the next value; None at
        the first.
        """
        parts = list(items)
        states: list[S | None] = [None] * len(parts)
        for value in values:
            results = []
            for k, item in enumerate(parts):
                result, states[k] = function(data, item, value, states[k])
                results.append(result)
            yield results
