"""The parameter set of several data sets with the same labels and attributes: all that any of them has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from crfkit._types import Ids, Ints
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
    L = a.n_labels
    changes: dict[str, Any] = {}
    changes |= _lists("state_offsets", "state_labels", a, b, L)
    changes |= _lists("pair_offsets", "pair_codes", a, b, L * L)
    changes |= _lists("class_offsets", "class_codes", a, b, a.n_classes)
    for name in ("transition", "triple"):
        one, other = getattr(a, f"{name}_codes"), getattr(b, f"{name}_codes")
        if one is not None and other is not None:
            codes = np.union1d(one, other).astype(np.int32)
            changes |= {f"{name}_codes": codes, f"n_{name}": len(codes)}
    return replace(a, **changes)


def _lists(offsets: str, codes: str, a: ChainField, b: ChainField, base: int) -> dict[str, Any]:
    """Return the union of two lists of codes per attribute."""
    first, second = getattr(a, offsets), getattr(b, offsets)
    if first is None or second is None:
        return {}
    found = np.union1d(_flat(first, getattr(a, codes), base), _flat(second, getattr(b, codes), base))
    ids, inner = np.divmod(found, base)
    counts = np.bincount(ids, minlength=len(first) - 1)
    return {offsets: np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), codes: inner.astype(np.int32)}


def _flat(offsets: Ints, codes: Ids, base: int) -> Ints:
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets)) * base + codes
