"""A field with some of the weights of another, and data with the attributes that have any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crfkit._types import Flags, Floats, Ids, Ints
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField


@dataclass(frozen=True, eq=False)
class FieldPart:
    """A field of some of the attributes or weights of another, and which they are. Both keep their order."""

    field: ChainField
    attributes: Ints  # their numbers in the other field, ascending
    pair_attributes: Ints
    places: Ints  # of the weights, in the other field's vector
    whole: ChainField  # the other field

    @classmethod
    def of_attributes(cls, field: ChainField, keep: Flags, keep_pairs: Flags) -> FieldPart:
        """Return the field of some attributes and pair attributes, with all their weights."""
        L = field.n_labels
        state = _lists(keep, L, field.state_offsets, field.state_labels)
        pair = _lists(keep_pairs, L * L, field.pair_offsets, field.pair_codes)
        classes = _lists(keep, field.n_classes, field.class_offsets, field.class_codes)
        smaller = replace(
            field,
            n_attributes=int(keep.sum()),
            n_pair_attributes=int(keep_pairs.sum()),
            state_offsets=state.offsets,
            state_labels=state.codes,
            pair_offsets=pair.offsets,
            pair_codes=pair.codes,
            class_offsets=classes.offsets,
            class_codes=classes.codes,
        )
        kept = {"state": state.places, "pair": pair.places, "class": classes.places}
        places = np.concatenate(
            [
                block.start + (kept[name] if name in kept else np.arange(block.stop - block.start))
                for name, block in field.layout.items()
            ]
        )
        return cls(smaller, np.flatnonzero(keep), np.flatnonzero(keep_pairs), places, field)

    @classmethod
    def of_weights(cls, field: ChainField, keep: Flags) -> FieldPart:
        """Return the field of some weights, and of the attributes that have one of them."""
        kept = {name: keep[block] for name, block in field.layout.items()}
        state, classes, pair = field.state_ids(), field.class_ids(), field.pair_ids()
        used, used_pairs = np.zeros(field.n_attributes, dtype=bool), np.zeros(field.n_pair_attributes, dtype=bool)
        used[state[0][kept["state"]]] = True
        used[classes[0][kept["class"]]] = True
        used_pairs[pair[0][kept["pair"]]] = True
        states = _chosen(state[0], state[1], kept["state"], used)
        pairs = _chosen(pair[0], pair[1].astype(np.int64) * field.n_labels + pair[2], kept["pair"], used_pairs)
        class_lists: tuple[Any, Any] = (None, None)
        if field.label_classes is not None:
            class_lists = _chosen(classes[0], classes[1], kept["class"], used)
        i, j = field.transition_ids()
        transitions = (i.astype(np.int64) * field.n_labels + j)[kept["transition"]].astype(np.int32)
        a, b, c = (part.astype(np.int64) for part in field.triple_ids())
        triples = ((a * field.n_labels + b) * field.n_labels + c)[kept["triple"]].astype(np.int32)
        smaller = replace(
            field,
            n_attributes=int(used.sum()),
            n_pair_attributes=int(used_pairs.sum()),
            state_offsets=states[0],
            state_labels=states[1],
            transition_codes=transitions,
            n_transition=len(transitions),
            pair_offsets=pairs[0],
            pair_codes=pairs[1],
            triple_codes=triples if field.order == 2 else None,
            n_triple=len(triples),
            class_offsets=class_lists[0],
            class_codes=class_lists[1],
        )
        return cls(smaller, np.flatnonzero(used), np.flatnonzero(used_pairs), np.flatnonzero(keep), field)

    @property
    def names(self) -> Mapping[str, Ints]:
        """Return the numbers of the attributes in the other field, those of pair attributes after all others."""
        return {"state": self.attributes, "pair": self.whole.n_attributes + self.pair_attributes}

    def data(self, data: SequenceData) -> SequenceData:
        """Return sequences of the other field with these attributes only, renumbered."""
        offsets, attributes, kept = _renumbered(data.offsets, data.attributes, self.attributes)
        changes: dict[str, Any] = {"offsets": offsets, "attributes": attributes}
        if data.values is not None:
            changes["values"] = data.values[kept]
        if data.pair_offsets is not None and data.pair_attributes is not None:
            pairs = _renumbered(data.pair_offsets, data.pair_attributes, self.pair_attributes)
            changes |= {"pair_offsets": pairs[0], "pair_attributes": pairs[1]}
        for array in changes.values():
            array.flags.writeable = False  # not to be copied
        return replace(data, **changes)

    def in_full(self, w: Floats) -> Floats:
        """Return the weights of the other field."""
        full = np.zeros(self.whole.size)
        full[self.places] = w
        return full


@dataclass(frozen=True, eq=False)
class _Lists:
    """The lists of codes of some attributes, None: all; and the places of their weights in the block of all of them."""

    offsets: Ints | None
    codes: Ids | None
    places: Ints


def _lists(keep: Flags, width: int, offsets: Ints | None, codes: Ids | None) -> _Lists:
    if offsets is None or codes is None:
        return _Lists(None, None, np.flatnonzero(np.repeat(keep, width)))
    counts = np.diff(offsets)
    places = np.flatnonzero(np.repeat(keep, counts))
    return _Lists(np.concatenate([[0], np.cumsum(counts[keep])]).astype(np.int64), codes[places], places)


def _chosen(ids: Ids, codes: Any, kept: Flags, used: Flags) -> tuple[Ints, Ids]:
    """Return the lists of the weights that are kept, of the attributes that are used."""
    counts = np.bincount(ids[kept], minlength=len(used))[used]
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), codes[kept].astype(np.int32)


def _renumbered(offsets: Ints, ids: Ids, chosen: Ints) -> tuple[Ints, Ids, Flags]:
    """Return (offsets, the new numbers of the attributes that are chosen, which entries these are)."""
    number = np.full(max(int(ids.max(initial=-1)), int(chosen.max(initial=-1))) + 1, -1, dtype=np.int32)
    number[chosen] = np.arange(len(chosen), dtype=np.int32)
    new = number[ids]
    kept = new >= 0
    ends = np.concatenate([[0], np.cumsum(kept)])
    return ends[offsets], new[kept], np.asarray(kept)
