"""Counts of the attributes that a chain model met in training, which an update needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from crfkit._types import Array, Floats, Ids, Ints
from crfkit.chain.data import SequenceData
from crfkit.errors import ModelFileError

PIECE = 1 << 20  # attributes that are counted at a time


@dataclass(frozen=True, eq=False)
class Seen:
    """Sums of squared attribute values, with the weights of sequences; counts where values are 1."""

    positions: float
    attributes: Floats  # [attributes]
    pair_attributes: Floats  # [pair attributes]

    @classmethod
    def of(cls, data: SequenceData, n_attributes: int, n_pair_attributes: int) -> Seen:
        """Return the counts of encoded sequences."""
        lengths = np.diff(data.starts)
        weights = None if data.weights is None else np.repeat(data.weights, lengths)
        positions = float(data.starts[-1]) if weights is None else float(weights.sum())
        own = _sums(data.attributes, data.offsets, data.values, weights, n_attributes)
        pairs = np.zeros(n_pair_attributes)
        if data.pair_attributes is not None and data.pair_offsets is not None:
            pairs = _sums(data.pair_attributes, data.pair_offsets, None, weights, n_pair_attributes)
        return cls(positions, own, pairs)

    def take(self, attributes: Ints, pair_attributes: Ints) -> Seen:
        """Return the counts of some attributes."""
        return Seen(self.positions, self.attributes[attributes], self.pair_attributes[pair_attributes])

    def extended(self, n_attributes: int, n_pair_attributes: int) -> Seen:
        """Return the counts of a vocabulary that begins with these attributes; the others were not seen."""
        more = n_attributes - len(self.attributes), n_pair_attributes - len(self.pair_attributes)
        return Seen(self.positions, np.pad(self.attributes, (0, more[0])), np.pad(self.pair_attributes, (0, more[1])))

    def plus(self, other: Seen) -> Seen:
        """Return the counts of both data sets, which have the same attributes."""
        return Seen(
            self.positions + other.positions,
            self.attributes + other.attributes,
            self.pair_attributes + other.pair_attributes,
        )

    def tensors(self) -> dict[str, Array]:
        """Return the arrays of the model file; the number of positions is the first one."""
        return {
            "seen.attributes": np.concatenate([[self.positions], self.attributes]).astype(np.float32),
            "seen.pair_attributes": self.pair_attributes.astype(np.float32),
        }

    @classmethod
    def read(cls, tensors: Mapping[str, Array], n_attributes: int, n_pair_attributes: int) -> Seen | None:
        """Return the counts of a model file, None if it has none; raise ModelFileError if they do not fit the model."""
        if "seen.attributes" not in tensors:
            return None
        own, pairs = (tensors.get(f"seen.{name}", np.zeros(0)) for name in ("attributes", "pair_attributes"))
        for values, n in ((own, 1 + n_attributes), (pairs, n_pair_attributes)):
            if (
                values.dtype != np.float32
                or values.shape != (n,)
                or not np.isfinite(values).all()
                or (values < 0).any()
            ):
                raise ModelFileError("the counts of attributes in training do not fit the model")
        numbers = own.astype(np.float64)
        return cls(float(numbers[0]), numbers[1:], pairs.astype(np.float64))


def _sums(ids: Ids | Ints, offsets: Ints, values: Floats | None, weights: Floats | None, n: int) -> Floats:
    """Return Σ weight·value² of each attribute; an attribute belongs to the position whose span in `offsets` has it."""
    total = np.zeros(n)
    for first in range(0, len(ids), PIECE):
        some = slice(first, min(first + PIECE, len(ids)))
        amounts = None if values is None else np.square(values[some])
        if weights is not None:
            at = np.searchsorted(offsets, np.arange(some.start, some.stop), side="right") - 1
            amounts = weights[at] if amounts is None else amounts * weights[at]
        total += np.bincount(ids[some], amounts, n)
    return total
