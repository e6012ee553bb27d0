"""All attributes of a training set of chains, from which some are selected: what losses of one family share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from crfkit import _core
from crfkit._types import Ids, Ints
from crfkit.chain.attribute_index import AttributeIndex
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.block import WeightBlock
from crfkit.chain.fields.field import ChainField
from crfkit.errors import DataError, ParameterError

KINDS = ("state", "pair")  # of attributes


@dataclass(frozen=True, eq=False)
class Pool:
    """The attributes by the positions at which they occur."""

    frame: SequenceData  # the sequences with labels and weights, without attributes
    field: ChainField  # of all attributes
    indices: Mapping[str, AttributeIndex]  # of KINDS
    ids: Mapping[str, Ints]  # the candidates' names, ascending; of KINDS

    @classmethod
    def of(cls, data: SequenceData, field: ChainField, names: Mapping[str, Ints] | None = None) -> Pool:
        """Return the pool of a training set; `names` are the ids of its attributes, None: 0, 1, …"""
        if field.label_classes is not None:
            raise ParameterError("attributes that score classes of labels cannot be selected: leave label_classes out")
        if data.labels is None:
            raise DataError("the data have no labels")
        L, none = field.n_labels, 0 * data.offsets
        states = field.state_offsets, field.state_labels
        state = AttributeIndex.of(data.offsets, data.attributes, data.values, field.n_attributes, L, *states)
        offsets, ids = data.pair_offsets, data.pair_attributes
        if offsets is None or ids is None:
            offsets, ids = none, np.zeros(0, np.int32)
        lists = field.pair_offsets, field.pair_codes
        pair = AttributeIndex.of(offsets, ids, None, field.n_pair_attributes, L * L, *lists)
        frame = SequenceData(data.starts, none, np.zeros(0, np.int32), labels=data.labels, weights=data.weights)
        if names is None:
            names = {"state": np.arange(len(state)), "pair": len(state) + np.arange(len(pair))}
        return cls(frame, field, {"state": state, "pair": pair}, names)

    @property
    def n_ids(self) -> int:
        return sum(len(index) for index in self.indices.values())

    def joined(self, data: SequenceData, n_attributes: int | None) -> Pool:
        """With more attributes, numbered 0, 1, … in these data of the same sequences; their ids follow the others."""
        if not np.array_equal(data.starts, self.frame.starts):
            raise DataError("the new attributes are of other sequences: their lengths differ")
        if data.pair_attributes is not None:
            raise DataError("pair attributes cannot be added later")
        labels, L = self.frame.labels, self.field.n_labels
        assert labels is not None
        n = int(data.attributes.max(initial=-1)) + 1 if n_attributes is None else n_attributes
        lists: tuple[Ints, Ids] | tuple[None, None] = (None, None)
        if self.field.state_offsets is not None:
            lists = _core.observed_pairs(data.offsets, data.attributes, labels, n, L)
        more = AttributeIndex.of(data.offsets, data.attributes, data.values, n, L, *lists)
        state = self.indices["state"].joined(more)
        field = self.field.with_blocks(state=WeightBlock(len(state), L, state.code_offsets, state.codes))
        last = max(int(names.max(initial=-1)) for names in self.ids.values())
        names = np.concatenate([self.ids["state"], last + 1 + np.arange(n)])
        return Pool(self.frame, field, {**self.indices, "state": state}, {**self.ids, "state": names})

    def restricted(self, active: Mapping[str, Ints]) -> tuple[SequenceData, ChainField]:
        """The sequences and the field of the active attributes, in the order of the pool."""
        offsets, ids, values = self.indices["state"].gather(active["state"])
        data = replace(self.frame, offsets=offsets, attributes=ids, values=values)
        if len(self.indices["pair"]):
            pair_offsets, pair_ids, _ = self.indices["pair"].gather(active["pair"])
            data = replace(data, pair_offsets=pair_offsets, pair_attributes=pair_ids)
        state, pair = (self.indices[kind].lists(active[kind]) for kind in KINDS)
        L = self.field.n_labels
        blocks = {
            "state": WeightBlock(len(active["state"]), L, *state),
            "pair": WeightBlock(len(active["pair"]), L * L, *pair),
        }
        return data, self.field.with_blocks(**blocks)
