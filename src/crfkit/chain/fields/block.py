"""Blocks of weights: lists of codes, such as the labels that each attribute has a weight for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crfkit._types import Flags, Floats, Ids, Ints
from crfkit.errors import DataError


@dataclass(frozen=True, eq=False)
class WeightBlock:
    """Weights of `n` lists of codes below `width`: ``codes[offsets[k] : offsets[k+1]]`` are those of list k.

    Without offsets and codes, every list has all of them. A weight has the key ``k·width + code``; weights stand in the
    order of their keys. Labels of attributes, label pairs of pair attributes and classes of attributes are such lists;
    transitions and triples are a block of one list, or of none.

    >>> some = WeightBlock.of_keys(2, 3, [0, 2, 4])
    >>> some.codes.tolist(), some.table(np.array([5.0, 6.0, 7.0])).tolist()
    ([0, 2, 1], [[5.0, 0.0, 6.0], [0.0, 7.0, 0.0]])
    >>> some.union(WeightBlock.of_keys(2, 3, [1, 4])).keys.tolist()
    [0, 1, 2, 4]
    """

    n: int
    width: int
    offsets: Ints | None = None
    codes: Ids | None = None

    @classmethod
    def of_keys(cls, n: int, width: int, keys: object) -> WeightBlock:
        """Return the block of some keys, ascending."""
        lists, codes = np.divmod(np.asarray(keys, dtype=np.int64), max(width, 1))
        return cls(n, width, _ends(np.bincount(lists, minlength=n)), codes.astype(np.int32))

    @property
    def complete(self) -> bool:
        """Return whether every list has all codes, without saying so one by one."""
        return self.offsets is None or self.codes is None

    @property
    def size(self) -> int:
        return self.n * self.width if self.codes is None else len(self.codes)

    @cached_property
    def keys(self) -> Ints:
        """Return the key of every weight."""
        if self.offsets is None or self.codes is None:
            return np.arange(self.size, dtype=np.int64)
        return np.repeat(np.arange(self.n, dtype=np.int64) * self.width, np.diff(self.offsets)) + self.codes

    @property
    def ids(self) -> tuple[Ids, Ids]:
        """Return (list, code) of every weight."""
        lists, codes = np.divmod(self.keys, max(self.width, 1))
        return lists.astype(np.int32), codes.astype(np.int32)

    def take(self, lists: Flags) -> tuple[WeightBlock, Ints]:
        """Return the block of some lists, and the places of its weights in this one."""
        n = int(lists.sum())
        if self.offsets is None or self.codes is None:
            return WeightBlock(n, self.width), np.flatnonzero(np.repeat(lists, self.width))
        counts = np.diff(self.offsets)
        places = np.flatnonzero(np.repeat(lists, counts))
        return WeightBlock(n, self.width, _ends(counts[lists]), self.codes[places]), places

    def keep(self, weights: Flags, lists: Flags | None = None) -> WeightBlock:
        """Return the block of some weights and, if given, of some lists, which must have them."""
        ids, codes = self.ids
        counts = np.bincount(ids[weights], minlength=self.n)
        if lists is not None:
            counts = counts[lists]
        return WeightBlock(len(counts), self.width, _ends(counts), codes[weights])

    def union(self, other: WeightBlock) -> WeightBlock:
        """Return the block of the weights that either has."""
        if (self.n, self.width) != (other.n, other.width):
            raise DataError("the fields have different labels or attributes")
        if self.complete or other.complete:
            return WeightBlock(self.n, self.width)
        return WeightBlock.of_keys(self.n, self.width, np.union1d(self.keys, other.keys))

    def extended(self, n: int, *, empty: bool = False) -> WeightBlock:
        """Return the block with n more lists of all codes, or of none if `empty`; a complete block stays complete."""
        if self.offsets is None or self.codes is None:
            return WeightBlock(self.n + n, self.width)
        width = 0 if empty else self.width
        offsets = np.append(self.offsets, self.offsets[-1] + width * np.arange(1, n + 1))
        codes = np.append(self.codes, np.tile(np.arange(width, dtype=np.int32), n))
        return WeightBlock(self.n + n, self.width, offsets, codes)

    # --- weights

    def table(self, w: Floats) -> Floats:
        """Return the weights as [n, width], 0 where there is none."""
        table = np.zeros(self.n * self.width)
        table[self.keys] = w
        return table.reshape(self.n, self.width)

    def rows(self, w: Floats, lists: Ids) -> Floats:
        """Return the weights of some lists as [lists, width], 0 where there is none."""
        if self.offsets is None or self.codes is None:
            rows: Floats = w.reshape(self.n, self.width)[lists]
            return rows
        table = np.zeros((len(lists), self.width))
        counts = self.offsets[lists + 1] - self.offsets[lists]
        row = np.repeat(np.arange(len(lists)), counts)
        entry = np.arange(len(row)) + np.repeat(self.offsets[lists] - (np.cumsum(counts) - counts), counts)
        table[row, self.codes[entry]] = w[entry]
        return table

    def at(self, w: Floats, k: int, code: int) -> float:
        """Return the weight of a code of list k, 0 if there is none."""
        if self.offsets is None or self.codes is None:
            return float(w[k * self.width + code]) if self.n else 0.0
        begin, end = int(self.offsets[k]), int(self.offsets[k + 1])
        place = begin + int(np.searchsorted(self.codes[begin:end], code))
        return float(w[place]) if place < end and self.codes[place] == code else 0.0


def layout(blocks: Mapping[str, WeightBlock]) -> Mapping[str, slice]:
    """Return where each block stands in the weight vector."""
    ends = np.cumsum([block.size for block in blocks.values()]).tolist()
    return {name: slice(end - block.size, end) for (name, block), end in zip(blocks.items(), ends, strict=True)}


def _ends(counts: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
