"""The assignment of weights to groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import NDArray

from crfkit._compiled import _core
from crfkit.arrays import put
from crfkit.errors import ParameterError
from crfkit.protocols import Vector


class Groups:
    """Disjoint groups of weights.

    Parameters
    ----------
    groups : an integer for every weight, equal within a group, −1 where the weight belongs to none; or a list of
        slices or lists of indices, one for every group: what they leave out belongs to none.

    >>> len(Groups([0, 0, -1, 5])), len(Groups([slice(0, 3), [4, 6]]))
    (2, 2)
    """

    def __init__(self, groups: object) -> None:
        ids, self.open_ended = _ids(groups)
        self.ids: NDArray[np.int64] = ids  # [n]; −1: in no group
        self.ids.flags.writeable = False

    @cached_property
    def blocks(self) -> tuple[NDArray[np.int64], ...]:
        """Indices of the weights, [groups of this size][size], for every size that occurs."""
        starts = self.offsets[:-1]
        sizes = np.diff(self.offsets)
        return tuple(self.members[starts[places][:, None] + np.arange(sizes[places[0]])] for places in self.places)

    @cached_property
    def members(self) -> NDArray[np.int64]:
        """Indices of all weights of groups, group by group, the groups by their numbers."""
        order = np.argsort(self.ids, kind="stable")
        return order[self.ids[order] >= 0]

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """[groups + 1] where the members of each group begin and end."""
        sizes = np.unique(self.ids[self.members], return_counts=True)[1]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @cached_property
    def native(self) -> _core.GroupMembers:
        return _core.GroupMembers(self.members, self.offsets)

    @cached_property
    def places(self) -> tuple[NDArray[np.int64], ...]:
        """Which of the groups, in their order, the rows of each block are."""
        sizes = np.diff(self.offsets)
        return tuple(np.flatnonzero(sizes == size) for size in np.unique(sizes))

    @cached_property
    def spans(self) -> tuple[slice | None, ...]:
        """Return the slice of each block whose weights lie one after another, so a view suffices."""

        def span(indices: NDArray[np.int64]) -> slice | None:
            whole = slice(int(indices[0]), int(indices[0]) + len(indices))
            return whole if np.array_equal(indices, np.arange(whole.start, whole.stop)) else None

        return tuple(span(block.ravel()) for block in self.blocks)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Groups):
            return NotImplemented
        return self.open_ended == other.open_ended and np.array_equal(self.ids, other.ids)

    def __hash__(self) -> int:
        return hash((self.open_ended, self.ids.tobytes()))

    def __repr__(self) -> str:
        return f"<{len(self)} groups of {int((self.ids >= 0).sum())} weights>"

    def __getstate__(self) -> dict[str, object]:
        return {"ids": self.ids, "open_ended": self.open_ended}

    def rows(self, w: Vector) -> Iterable[Vector]:
        """The weights of the groups, [groups of one size][size], size by size."""
        self.check(w)
        return (_take(w, block, span) for block, span in zip(self.blocks, self.spans, strict=True))

    def map(self, f: Callable[..., Vector], *vectors: Vector) -> Vector:
        """f of the rows of the vectors; weights of no group keep the value that they have in the last vector."""
        self.check(vectors[-1])
        xp = array_namespace(vectors[-1])
        out = 1.0 * vectors[-1]
        for block, span in zip(self.blocks, self.spans, strict=True):
            put(out, block.ravel(), xp.reshape(f(*(_take(vector, block, span) for vector in vectors)), (-1,)))
        return out

    def reduce(self, f: Callable[[Vector], Vector], w: Vector) -> Vector:
        """[groups] f of the rows, one number for each."""
        self.check(w)
        xp = array_namespace(w)
        out = xp.zeros(len(self), dtype=w.dtype, device=device(w))
        for block, span, places in zip(self.blocks, self.spans, self.places, strict=True):
            put(out, places, xp.reshape(f(_take(w, block, span)), (-1,)))
        return out

    def map_with(
        self, f: Callable[[Vector, Vector], tuple[Vector, Vector]], w: Vector, alpha: Vector
    ) -> tuple[Vector, Vector]:
        """f(rows, numbers of their groups [groups][1]) of both; weights of no group keep their values."""
        self.check(w)
        xp = array_namespace(w)
        out, numbers = 1.0 * w, 1.0 * alpha
        for block, span, places in zip(self.blocks, self.spans, self.places, strict=True):
            x, a = f(_take(w, block, span), _take(alpha, places[:, None]))
            put(out, block.ravel(), xp.reshape(x, (-1,)))
            put(numbers, places, xp.reshape(a, (-1,)))
        return out, numbers

    def check(self, w: Vector) -> None:
        """Raise unless w has as many weights as the groups cover."""
        n = len(self.ids)
        if w.shape[0] != n and not (self.open_ended and w.shape[0] > n):
            least = "at least " if self.open_ended else ""
            raise ParameterError(f"the groups cover {least}{n} weights, but there are {w.shape[0]}")


def pairs_and_one(size: int) -> list[int]:
    """Return groups for examples: the first weight in none, the next in pairs, one that may be alone."""
    return [-1, *(k // 2 for k in range(size - 1))]


class LossBlocks(Groups):
    """The blocks of a loss that can grow, as groups: a penalty of them is bound anew when the loss has grown."""


def _take(w: Vector, block: NDArray[np.int64], span: slice | None = None) -> Vector:
    xp = array_namespace(w)
    if span is not None:
        return xp.reshape(w[span], block.shape)
    return xp.reshape(xp.take(w, xp.asarray(block.ravel(), device=device(w))), block.shape)


def _ids(groups: object) -> tuple[NDArray[np.int64], bool]:
    if isinstance(groups, (list, tuple)) and any(not isinstance(group, (int, np.integer)) for group in groups):
        return _from_blocks(groups), True
    ids = np.array(groups)
    if ids.ndim != 1 or (ids.size and not np.issubdtype(ids.dtype, np.integer)):
        raise ParameterError(
            f"groups must be one integer for every weight or a list of slices or of lists of indices, not {groups!r}"
        )
    if ids.size and ids.min() < -1:
        where = int(np.argmax(ids < -1))
        raise ParameterError(f"weight {where} has the group {ids[where]}; groups are >= 0, or -1 for none")
    return ids.astype(np.int64), False


def _from_blocks(groups: Iterable[Any]) -> NDArray[np.int64]:
    members = []
    for number, group in enumerate(groups):
        if isinstance(group, slice):
            if group.stop is None or group.stop < 0 or (group.start or 0) < 0:
                raise ParameterError(f"group {number} is {group!r}: give its first weight and its end, both >= 0")
            group = range(group.start or 0, group.stop, group.step or 1)
        indices = np.array(group, dtype=np.float64 if len(group) == 0 else None)
        if indices.ndim != 1 or (indices.size and (not np.issubdtype(indices.dtype, np.integer) or indices.min() < 0)):
            raise ParameterError(f"group {number} must be a slice or a list of indices >= 0, not {group!r}")
        members.append(indices.astype(np.int64))
    everyone = np.concatenate(members) if members else np.zeros(0, dtype=np.int64)
    times = np.bincount(everyone)
    if (times > 1).any():
        raise ParameterError(
            f"weight {int(np.argmax(times > 1))} belongs to {times.max()} groups; expected at most one"
        )
    ids = np.full(len(times), -1, dtype=np.int64)
    ids[everyone] = np.repeat(np.arange(len(members)), [len(m) for m in members])
    return ids
