"""A field and data with those attributes only that occur in the data: what one shard of a training set needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crfkit._types import Ids, Ints
from crfkit.data.sequences import SequenceData
from crfkit.fields.chain import ChainField


@dataclass(frozen=True)
class Present:
    """The data and the field with attributes renumbered, and where each of its weights stands in the whole field."""

    data: SequenceData
    field: ChainField
    places: Ints


def present(data: SequenceData, field: ChainField) -> Present:
    """Return what is left of a field when attributes that do not occur in the data are dropped.

    An attribute keeps all its weights, also those of labels that it does not have here, since the model expects them.
    """
    L, layout = field.n_labels, field.layout
    kept, ids = _renumbered(data.attributes, field.n_attributes)
    changes: dict[str, Any] = {"n_attributes": len(kept)}
    parts: dict[str, Ints] = {}
    parts["state"], changes["state_offsets"], changes["state_labels"] = _lists(
        field.state_offsets, field.state_labels, kept, L
    )
    parts["class"], changes["class_offsets"], changes["class_codes"] = _lists(
        field.class_offsets, field.class_codes, kept, field.n_classes
    )
    renumbered: dict[str, Any] = {"attributes": ids}
    pair_kept = np.zeros(0, dtype=np.int64)
    if data.pair_attributes is not None:
        pair_kept, renumbered["pair_attributes"] = _renumbered(data.pair_attributes, field.n_pair_attributes)
    parts["pair"], changes["pair_offsets"], changes["pair_codes"] = _lists(
        field.pair_offsets, field.pair_codes, pair_kept, L * L
    )
    changes["n_pair_attributes"] = len(pair_kept)
    places = np.concatenate(
        [
            block.start + parts[name] if name in parts else np.arange(block.start, block.stop)
            for name, block in layout.items()
        ]
    )
    return Present(replace(data, **renumbered), replace(field, **changes), places)


def _renumbered(ids: Ids, n: int) -> tuple[Ints, Ids]:
    """Return the ids that occur, ascending, and all ids by their place among those."""
    occurs = np.zeros(n, dtype=bool)
    occurs[ids] = True
    number = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(occurs), number[ids]


def _lists(offsets: Ints | None, codes: Ids | None, kept: Ints, width: int) -> tuple[Ints, Ints | None, Ids | None]:
    """Return the places of the weights of the attributes that are kept, and their lists where there are lists."""
    if offsets is None or codes is None:
        places = (width * kept[:, None] + np.arange(width)).ravel()
        return places, None, None
    counts = np.diff(offsets)[kept]
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    places = np.arange(ends[-1]) + np.repeat(offsets[kept] - ends[:-1], counts)
    return places, ends, codes[places]
