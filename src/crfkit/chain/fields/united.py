"""The parameter set of several data sets with the same labels and attributes: all that any of them has."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from crfkit.chain.fields.block import WeightBlock
from crfkit.chain.fields.field import ChainField
from crfkit.errors import DataError


def united(fields: Iterable[ChainField]) -> ChainField:
    """Return the field with the weights of all of them."""
    return reduce(_both, fields)


def _both(a: ChainField, b: ChainField) -> ChainField:
    if (a.n_labels, a.n_attributes, a.n_pair_attributes, a.order) != (
        b.n_labels,
        b.n_attributes,
        b.n_pair_attributes,
        b.order,
    ):
        raise DataError("the fields have different labels or attributes")
    return a.with_blocks(**{name: _union(block, b.blocks[name]) for name, block in a.blocks.items()})


def _union(a: WeightBlock, b: WeightBlock) -> WeightBlock:
    """Return the weights of both; one data set may have no transitions at all."""
    return a.union(b) if a.n == b.n else max(a, b, key=lambda block: block.n)
