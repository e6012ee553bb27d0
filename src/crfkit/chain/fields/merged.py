"""Attributes that occur once, at the same position: with an L2 penalty, one weight per label stands for all of them.

Rare words bring many: a template writes each of them out alone and with its neighbours. By symmetry the optimum gives m
such attributes the same weight, w say. With v = √m·w, their score m·w is √m·v and their penalty m·w² is v². So one
attribute with the value √m stands for them. Scores, penalty and the length of the gradient stay what they were. From
zero weights, a solver that is invariant to rotations takes the same steps with fewer numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crfkit._types import Array, Floats, Ids
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField


@dataclass(frozen=True, eq=False)
class MergedAttributes:
    """The data and the field in which one attribute stands for several, and how weights are carried over."""

    data: SequenceData
    field: ChainField
    whole: ChainField  # of all attributes
    number: Ids  # [attributes of `whole`]: the attribute that stands for each
    share: Floats  # [attributes of `whole`]: 1/√m

    @classmethod
    def of(cls, data: SequenceData, field: ChainField) -> MergedAttributes | None:
        """Return the smaller problem; None if there is nothing to merge or the field has no weight for every label."""
        if field.state_offsets is not None or field.label_classes is not None or data.values is not None:
            return None
        n = field.n_attributes
        once = np.bincount(data.attributes, minlength=n) == 1  # attributes that occur once
        entries = np.flatnonzero(once[data.attributes])  # ascending, so by position
        positions = np.searchsorted(data.offsets, entries, side="right") - 1
        first = np.ones(len(entries), dtype=bool)  # of its position
        first[1:] = positions[1:] != positions[:-1]
        if first.all():
            return None
        counts = np.diff(np.append(np.flatnonzero(first), len(entries)))  # m of each position
        standing = entries[first]

        dropped = entries[~first]
        stays = np.ones(n, dtype=bool)
        stays[data.attributes[dropped]] = False
        number = np.cumsum(stays, dtype=np.int32) - 1
        own = data.attributes[entries]
        number[own] = np.repeat(number[data.attributes[standing]], counts)
        share = np.ones(n)
        share[own] = np.repeat(1.0 / np.sqrt(counts), counts)

        fewer = np.zeros(len(data.offsets), dtype=np.int64)  # entries at each position, and then before each
        fewer[positions[first] + 1] = counts - 1
        values = np.ones(len(data.attributes) - len(dropped))
        values[standing - np.searchsorted(dropped, standing)] = np.sqrt(counts)
        arrays: dict[str, Array] = {
            "offsets": data.offsets - np.cumsum(fewer),
            "attributes": number[np.delete(data.attributes, dropped)],
            "values": values,
        }
        for array in arrays.values():
            array.flags.writeable = False  # not to be copied
        smaller = replace(field, n_attributes=int(stays.sum()))
        return cls(replace(data, **arrays), smaller, field, number, share)

    def in_full(self, w: Floats) -> Floats:
        """Return the weights of all attributes."""
        L = self.field.n_labels
        n, n_whole = self.field.n_attributes * L, self.whole.n_attributes * L
        full = np.empty(self.whole.size)
        rows = full[:n_whole].reshape(-1, L)
        np.take(w[:n].reshape(-1, L), self.number, axis=0, out=rows)
        rows *= self.share[:, None]
        full[n_whole:] = w[n:]
        return full

    def of_full(self, w: Floats) -> Floats:
        """Return the weights that score as weights of all attributes do; attributes that are one share theirs."""
        L = self.field.n_labels
        n_whole = self.whole.n_attributes * L
        order = np.argsort(self.number, kind="stable")
        rows = w[:n_whole].reshape(-1, L)[order] * self.share[order, None]
        begins = np.searchsorted(self.number[order], np.arange(self.field.n_attributes))
        return np.concatenate([np.add.reduceat(rows, begins).ravel(), w[n_whole:]])
