"""A field with some of the weights of another, and data with the attributes that have any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from crfkit._types import Array, Flags, Floats, Ids, Ints
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
        of_lists = {"state": keep, "pair": keep_pairs, "class": keep}
        taken = {name: field.blocks[name].take(lists) for name, lists in of_lists.items()}
        smaller = field.with_blocks(**{name: block for name, (block, _) in taken.items()})
        places = [
            block.start + (taken[name][1] if name in taken else np.arange(block.stop - block.start))
            for name, block in field.layout.items()
        ]
        return cls(smaller, np.flatnonzero(keep), np.flatnonzero(keep_pairs), np.concatenate(places), field)

    @classmethod
    def of_weights(cls, field: ChainField, keep: Flags) -> FieldPart:
        """Return the field of some weights, and of the attributes that have one of them."""
        kept = {name: keep[block] for name, block in field.layout.items()}
        used, used_pairs = np.zeros(field.n_attributes, dtype=bool), np.zeros(field.n_pair_attributes, dtype=bool)
        for name, lists in (("state", used), ("class", used), ("pair", used_pairs)):
            lists[field.blocks[name].ids[0][kept[name]]] = True
        of_lists = {"state": used, "pair": used_pairs, "class": used}
        smaller = field.with_blocks(
            **{
                name: block.keep(kept[name], of_lists.get(name))
                for name, block in field.blocks.items()
                if name != "class" or field.label_classes is not None
            }
        )
        if field.order == 1:
            smaller = replace(smaller, triple_codes=None)
        return cls(smaller, np.flatnonzero(used), np.flatnonzero(used_pairs), np.flatnonzero(keep), field)

    @property
    def names(self) -> Mapping[str, Ints]:
        """Return the numbers of the attributes in the other field, those of pair attributes after all others."""
        return {"state": self.attributes, "pair": self.whole.n_attributes + self.pair_attributes}

    def data(self, data: SequenceData) -> SequenceData:
        """Return sequences of the other field with these attributes only, renumbered."""
        offsets, attributes, kept = _renumbered(data.offsets, data.attributes, self.attributes)
        changes: dict[str, Array] = {"offsets": offsets, "attributes": attributes}
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


def _renumbered(offsets: Ints, ids: Ids, chosen: Ints) -> tuple[Ints, Ids, Flags]:
    """Return (offsets, the new numbers of the attributes that are chosen, which entries these are)."""
    number = np.full(max(int(ids.max(initial=-1)), int(chosen.max(initial=-1))) + 1, -1, dtype=np.int32)
    number[chosen] = np.arange(len(chosen), dtype=np.int32)
    new = number[ids]
    kept = new >= 0
    ends = np.concatenate([[0], np.cumsum(kept)])
    return ends[offsets], new[kept], np.asarray(kept)
