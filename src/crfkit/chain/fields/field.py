"""Linear chains: which weights there are and where they stand in the weight vector.

    score(x, y) = Σ_t Σ_{a at t} value_a·(w[a, y_t] + w[a, class of y_t])
                + Σ_{t>0} (w[y_{t−1}, y_t] + Σ_{b at t} w[b, y_{t−1}, y_t]) + Σ_{t>1} w[y_{t−2}, y_{t−1}, y_t]

Blocks in this order: state (attribute × label), transition (label × label), pair (pair attribute × label × label),
triple (label × label × label, in chains of order 2), class (attribute × class of labels).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from crfkit import _core
from crfkit._checks import index_array
from crfkit._types import Flags, Ids, Ints, Record
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.block import WeightBlock, layout
from crfkit.chain.fields.observed import observed_pairs, observed_runs, observed_states
from crfkit.errors import DataError

# of a chain of order 1 and 2: L² and L³ must be below 2³¹
MOST_LABELS = {1: 46_340, 2: 1_290}

_ARRAYS = (
    "state_offsets",
    "state_labels",
    "transition_codes",
    "pair_offsets",
    "pair_codes",
    "triple_codes",
    "label_classes",
    "class_offsets",
    "class_codes",
)

_LISTS = {"state": _ARRAYS[:2], "pair": _ARRAYS[3:5], "class": _ARRAYS[7:]}  # the arrays of blocks of several lists


@dataclass(frozen=True, eq=False)
class ChainField:
    """The parameter set of a chain.

    None instead of offsets or codes means all: every attribute has a weight for every label (CRF++). With arrays,
    only the listed combinations have one (CRFsuite): ``state_labels[state_offsets[a] : state_offsets[a+1]]`` are the
    labels of attribute a; a label pair (i, j) is coded ``i·L + j``, a triple (i, j, k) ``(i·L + j)·L + k``.

    With ``label_classes`` (the class of each label, 0 … C−1), attributes also score classes. ``allowed[i, j]`` says
    whether label j may follow label i at all, ``allowed_start`` and ``allowed_end`` which labels may begin and end a
    sequence; what is not allowed has probability 0. The arrays here are read-only copies of those given.
    """

    n_labels: int
    n_attributes: int
    n_pair_attributes: int = 0
    state_offsets: Ints | None = None
    state_labels: Ids | None = None
    transition_codes: Ids | None = None
    n_transition: int = 0
    pair_offsets: Ints | None = None
    pair_codes: Ids | None = None
    order: int = 1
    triple_codes: Ids | None = None
    n_triple: int = 0
    allowed: Flags | None = None  # [L, L]
    allowed_start: Flags | None = None  # [L]
    allowed_end: Flags | None = None  # [L]
    label_classes: Ids | None = None  # [L]
    class_offsets: Ints | None = None
    class_codes: Ids | None = None

    def __post_init__(self) -> None:
        L = self.n_labels
        for name in ("n_labels", "n_attributes", "n_pair_attributes", "n_transition", "n_triple"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not 0 <= number < 2**62:
                raise DataError(f"{name} must be an integer from 0 to 2⁶² − 1, not {number!r}")
        check_label_count(L, self.order)
        for name, shape in (("allowed", (L, L)), ("allowed_start", (L,)), ("allowed_end", (L,))):
            mask = getattr(self, name)
            if mask is not None:
                mask = np.ascontiguousarray(mask, dtype=bool)
                if mask.shape != shape:
                    raise DataError(f"{name} has shape {mask.shape}; expected {shape}")
                object.__setattr__(self, name, mask)
        for name in _ARRAYS:
            if (given := getattr(self, name)) is not None:
                array = index_array(given, name, np.int64 if name.endswith("offsets") else np.int32)
                if array.ndim != 1:
                    raise DataError(f"{name} has shape {array.shape}; expected one dimension")
                object.__setattr__(self, name, array)
        for name in _ARRAYS:  # the core has checked them and made copies, and nobody can change those
            object.__setattr__(self, name, self.native.array(name))

    @classmethod
    def from_data(
        cls,
        data: SequenceData,
        n_labels: int,
        n_attributes: int,
        n_pair_attributes: int = 0,
        *,
        all_states: bool,
        all_transitions: bool,
        transitions: bool = True,
        order: int = 1,
        allowed: Flags | None = None,
        allowed_start: Flags | None = None,
        allowed_end: Flags | None = None,
        label_classes: Ids | None = None,
    ) -> ChainField:
        """Return the parameter set for a training set: all combinations, or those that occur in it.

        Where labels are known in part only, see :mod:`crfkit.chain.fields.observed`.
        """
        if data.labels is None and data.targets is None:
            raise DataError("the data have no labels")
        check_label_count(n_labels, order)
        state: tuple[Ints, Ids] | tuple[None, None] = (None, None)
        pair: tuple[Ints, Ids] | tuple[None, None] = (None, None)
        if not all_states:
            state = observed_states(data, n_attributes, n_labels)
        lags: dict[int, Ids] = {}
        if transitions and not all_transitions:
            lags = {lag: observed_runs(data, n_labels, lag) for lag in range(1, order + 1)}
        if data.pair_offsets is not None and not all_transitions:
            pair = observed_pairs(data, n_pair_attributes, n_labels)
        classes: tuple[Ints, Ids] | tuple[None, None] = (None, None)
        if label_classes is not None and not all_states:
            label_classes = np.ascontiguousarray(label_classes, dtype=np.int32)
            classes = observed_states(data, n_attributes, int(label_classes.max()) + 1, label_classes)

        def count(lag: int) -> int:
            return len(lags[lag]) if lag in lags else n_labels ** (lag + 1) if transitions and lag <= order else 0

        return cls(
            n_labels,
            n_attributes,
            n_pair_attributes,
            state[0],
            state[1],
            lags.get(1),
            count(1),
            pair[0],
            pair[1],
            order,
            lags.get(2),
            count(2),
            allowed,
            allowed_start,
            allowed_end,
            label_classes,
            classes[0],
            classes[1],
        )

    @cached_property
    def blocks(self) -> Mapping[str, WeightBlock]:
        """Return the blocks of weights in their order, the lists of each as arrays or complete."""
        L = self.n_labels
        return {
            "state": WeightBlock(self.n_attributes, L, self.state_offsets, self.state_labels),
            "transition": _one_list(L * L, self.n_transition, self.transition_codes),
            "pair": WeightBlock(self.n_pair_attributes, L * L, self.pair_offsets, self.pair_codes),
            "triple": _one_list(L**3, self.n_triple, self.triple_codes),
            "class": WeightBlock(self.n_attributes, self.n_classes, self.class_offsets, self.class_codes),
        }

    def with_blocks(self, **blocks: WeightBlock) -> ChainField:
        """Return the field with other blocks of weights, by the names of `blocks`."""
        changes: dict[str, Any] = {}
        for name, block in blocks.items():
            if name in ("transition", "triple"):
                changes |= {f"{name}_codes": block.codes, f"n_{name}": block.size}
                continue
            lists, codes = _LISTS[name]
            changes |= {lists: block.offsets, codes: block.codes}
            changes["n_pair_attributes" if name == "pair" else "n_attributes"] = block.n
        return replace(self, **changes)

    @property
    def n_state(self) -> int:
        return self.blocks["state"].size

    @property
    def n_pair(self) -> int:
        return self.blocks["pair"].size

    @property
    def n_classes(self) -> int:
        return 0 if self.label_classes is None else max(int(self.label_classes.max(initial=-1)) + 1, 0)

    @property
    def n_class(self) -> int:
        """Return the number of class weights."""
        return self.blocks["class"].size

    @property
    def size(self) -> int:
        """Return the number of weights."""
        return sum(block.size for block in self.blocks.values())

    @property
    def layout(self) -> Mapping[str, slice]:
        return layout(self.blocks)

    @property
    def constrained(self) -> bool:
        """Return whether some labellings are forbidden."""
        return any(mask is not None for mask in (self.allowed, self.allowed_start, self.allowed_end))

    def state_ids(self) -> tuple[Ids, Ids]:
        """Return the ids (attribute, label) of every state weight."""
        return self.blocks["state"].ids

    def transition_ids(self) -> tuple[Ids, Ids]:
        """Return the label ids (from, to) of every transition weight."""
        return _digits(self.blocks["transition"].ids[1], self.n_labels)

    def pair_ids(self) -> tuple[Ids, Ids, Ids]:
        """Return the ids (pair attribute, from, to) of every pair weight."""
        attributes, codes = self.blocks["pair"].ids
        return attributes, *_digits(codes, self.n_labels)

    def triple_ids(self) -> tuple[Ids, Ids, Ids]:
        """Return the label ids (two before, before, here) of every triple weight."""
        pairs, last = _digits(self.blocks["triple"].ids[1], self.n_labels)
        return *_digits(pairs, self.n_labels), last

    def class_ids(self) -> tuple[Ids, Ids]:
        """Return the ids (attribute, class) of every class weight."""
        return self.blocks["class"].ids

    @cached_property
    def native(self) -> _core.Field:
        allowed, start, end = (
            None if mask is None else mask.astype(np.uint8).ravel()
            for mask in (self.allowed, self.allowed_start, self.allowed_end)
        )
        try:
            return _core.Field(
                self.n_labels,
                self.n_attributes,
                self.n_pair_attributes,
                self.state_offsets,
                self.state_labels,
                self.transition_codes,
                self.n_transition,
                self.pair_offsets,
                self.pair_codes,
                self.order,
                self.triple_codes,
                self.n_triple,
                allowed,
                start,
                end,
                self.label_classes,
                self.n_classes,
                self.class_offsets,
                self.class_codes,
            )
        except ValueError as error:
            raise DataError(f"the arrays of a chain's weights do not fit each other: {error}") from None

    def __getstate__(self) -> dict[str, object]:
        return {item.name: getattr(self, item.name) for item in fields(self)}  # without what was made from them

    def __setstate__(self, state: Record) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        self.__post_init__()


def _one_list(width: int, size: int, codes: Ids | None) -> WeightBlock:
    """Return a block of one list, or of none if there are no weights and no codes."""
    if codes is None:
        return WeightBlock(int(size > 0), width)
    return WeightBlock(1, width, np.array([0, len(codes)]), codes)


def _digits(codes: Ids, base: int) -> tuple[Ids, Ids]:
    first, second = np.divmod(codes, base)
    return first.astype(np.int32), second.astype(np.int32)


def check_label_count(n_labels: int, order: int, path: str | None = None) -> None:
    """Raise DataError unless a chain of this order can have so many labels."""
    if n_labels < 1:
        raise DataError("a chain needs at least one label")
    if order not in MOST_LABELS:
        raise DataError(f"a chain is of order 1 or 2, not {order!r}")
    if n_labels > MOST_LABELS[order]:
        raise DataError(
            f"{n_labels:,} different labels; a chain of order {order} can have at most {MOST_LABELS[order]:,}, because "
            f"label {'pairs' if order == 1 else 'triples'} are 32-bit numbers",
            path,
        )
