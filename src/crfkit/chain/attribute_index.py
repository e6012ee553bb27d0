"""The positions at which each attribute occurs, and data that hold some attributes only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crfkit import _core
from crfkit._types import Floats, Ids, Ints
from crfkit.errors import DataError


@dataclass(frozen=True, eq=False)
class AttributeIndex:
    """Attributes 0 … A−1: a occurs at ``positions[offsets[a] : offsets[a+1]]`` with ``values`` (None: all 1).

    Attribute a has the weights ``codes[code_offsets[a] : code_offsets[a+1]]`` (labels, or coded pairs of labels), or,
    where there are no lists, all of 0 … width − 1.
    """

    offsets: Ints  # [A+1]
    positions: Ids
    values: Floats | None
    n_positions: int
    width: int
    code_offsets: Ints | None = None  # [A+1]
    codes: Ids | None = None

    @classmethod
    def of(
        cls,
        offsets: Ints,
        ids: Ids,
        values: Floats | None,
        n: int,
        width: int,
        code_offsets: Ints | None,
        codes: Ids | None,
    ) -> AttributeIndex:
        """Return the index of the attributes of each position; there are n attributes."""
        try:
            first, positions, turned = _core.transpose(offsets, ids, values, n)
        except ValueError as error:
            raise DataError(f"the attributes do not fit: {error}") from None
        return cls(first, positions, turned, len(offsets) - 1, width, code_offsets, codes)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def native(self) -> _core.Inverted:
        return _core.Inverted(self.offsets, self.positions, self.values, self.n_positions)

    @cached_property
    def weight_offsets(self) -> Ints:
        """Return where the weights of each attribute would begin if all existed; [A+1]."""
        return self.code_offsets if self.code_offsets is not None else self.width * np.arange(len(self) + 1)

    def joined(self, more: AttributeIndex) -> AttributeIndex:
        """Return these attributes followed by others of the same positions."""
        values = None
        if self.values is not None or more.values is not None:
            values = np.concatenate(
                [np.ones(len(part.positions)) if part.values is None else part.values for part in (self, more)]
            )
        lists: tuple[Ints | None, Ids | None] = (None, None)
        if self.code_offsets is not None and self.codes is not None and more.code_offsets is not None:
            assert more.codes is not None
            lists = _chained(self.code_offsets, more.code_offsets), np.concatenate([self.codes, more.codes])
        return AttributeIndex(
            _chained(self.offsets, more.offsets),
            np.concatenate([self.positions, more.positions]),
            values,
            self.n_positions,
            self.width,
            *lists,
        )

    def gather(self, chosen: Ints) -> tuple[Ints, Ids, Floats | None]:
        """Return (offsets, ids, values) by position of the chosen attributes, renumbered in this order."""
        found: tuple[Ints, Ids, Floats | None] = self.native.gather(np.ascontiguousarray(chosen, dtype=np.int64))
        return found

    def lists(self, chosen: Ints) -> tuple[Ints, Ids] | tuple[None, None]:
        """Return the lists of weights of the chosen attributes."""
        if self.code_offsets is None or self.codes is None:
            return None, None
        counts = np.diff(self.code_offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        places = np.arange(offsets[-1]) + np.repeat(self.code_offsets[chosen] - offsets[:-1], counts)
        return offsets, self.codes[places]

    def chunks(self, weights: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of attributes with at most this many weights each (or with one attribute)."""
        first, ends = 0, self.weight_offsets
        while first < len(self):
            last = int(np.searchsorted(ends, ends[first] + weights, side="right")) - 1
            last = max(last, first + 1)
            yield first, last
            first = last

    def add_gradients(self, first: int, last: int, residual: Floats, t0: int, out: Floats, n_threads: int) -> None:
        """Add ``Σ value·residual[t − t0, c]`` over the positions t of a to ``out[a, c]``, first ≤ a < last."""
        self.native.add_gradients(self.code_offsets, self.codes, first, last, residual, t0, out, n_threads)


def block_norms(gradient: Floats, offsets: Ints, norm: str) -> Floats:
    """Return the norm ("max", "l1" or "l2") of gradient[offsets[k] : offsets[k+1]] for every k; 0 of nothing."""
    reduce = {"max": np.maximum, "l1": np.add, "l2": np.add}[norm]
    size = gradient * gradient if norm == "l2" else np.abs(gradient)
    norms = np.zeros(len(offsets) - 1)
    some: NDArray[np.bool_] = np.diff(offsets) > 0
    if some.any():
        norms[some] = reduce.reduceat(size, offsets[:-1][some])
    return np.sqrt(norms) if norm == "l2" else norms


def _chained(first: Ints, second: Ints) -> Ints:
    return np.concatenate([first, first[-1] + second[1:]])
