"""Linear chains: which weights there are and where they stand in the weight vector.

    score(x, y) = Σ_t Σ_{a at t} value_a·w[a, y_t] + Σ_{t>0} w[y_{t−1}, y_t] + Σ_{t>0} Σ_{b at t} w[b, y_{t−1}, y_t]

Blocks in this order: state (attribute × label), transition (label × label), pair (pair attribute × label × label).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crfkit import _core
from crfkit.data.sequences import Ids, Ints, SequenceData
from crfkit.errors import DataError


@dataclass(frozen=True, eq=False)
class ChainField:
    """The parameter set of a chain.

    None in place of offsets or codes means all: every attribute has a weight for every label (CRF++). With arrays,
    only the listed combinations have one (CRFsuite): ``state_labels[state_offsets[a] : state_offsets[a+1]]`` are the
    labels of attribute a; a label pair (i, j) is coded ``i·L + j``.
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

    def __post_init__(self) -> None:
        L = self.n_labels
        if L < 1:
            raise DataError("a chain needs at least one label")
        _check_lists("state", self.state_offsets, self.state_labels, self.n_attributes, L)
        _check_lists("pair", self.pair_offsets, self.pair_codes, self.n_pair_attributes, L * L)
        if self.transition_codes is None:
            if self.n_transition not in (0, L * L):
                raise DataError(f"a chain of {L} labels has {L * L} transitions or none, not {self.n_transition}")
        elif len(self.transition_codes) != self.n_transition or not _ascending(self.transition_codes, L * L):
            raise DataError("transition codes must ascend and be label pairs")

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
    ) -> ChainField:
        """The parameter set for a training set: all combinations, or those that occur in it."""
        if data.labels is None:
            raise DataError("the data have no labels")
        state: tuple[Ints, Ids] | tuple[None, None] = (None, None)
        pair: tuple[Ints, Ids] | tuple[None, None] = (None, None)
        if not all_states:
            state = _core.observed_pairs(data.offsets, data.attributes, data.labels, n_attributes, n_labels)
        codes = None
        if transitions and not all_transitions:
            inside = np.ones(data.n_positions, dtype=bool)
            inside[data.starts[:-1][data.lengths > 0]] = False
            t = np.flatnonzero(inside)
            codes = np.unique(data.labels[t - 1].astype(np.int64) * n_labels + data.labels[t]).astype(np.int32)
        if data.pair_offsets is not None and data.pair_attributes is not None and not all_transitions:
            pair = _core.observed_pairs(
                data.pair_offsets, data.pair_attributes, data.labels, n_pair_attributes, n_labels, pairs=True
            )
        n_transition = (len(codes) if codes is not None else n_labels**2) if transitions else 0
        return cls(
            n_labels,
            n_attributes,
            n_pair_attributes,
            state[0],
            state[1],
            codes,
            n_transition,
            pair[0],
            pair[1],
        )

    @property
    def n_state(self) -> int:
        return len(self.state_labels) if self.state_labels is not None else self.n_attributes * self.n_labels

    @property
    def n_pair(self) -> int:
        return len(self.pair_codes) if self.pair_codes is not None else self.n_pair_attributes * self.n_labels**2

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.n_state + self.n_transition + self.n_pair

    @property
    def layout(self) -> Mapping[str, slice]:
        first, second = self.n_state, self.n_state + self.n_transition
        return {"state": slice(0, first), "transition": slice(first, second), "pair": slice(second, self.size)}

    def state_names(self) -> tuple[Ids, Ids]:
        """(attribute, label) of every state weight."""
        if self.state_offsets is None or self.state_labels is None:
            a, label = np.divmod(np.arange(self.n_state), self.n_labels)
            return a.astype(np.int32), label.astype(np.int32)
        counts = np.diff(self.state_offsets)
        return np.repeat(np.arange(self.n_attributes, dtype=np.int32), counts), self.state_labels

    def transition_names(self) -> tuple[Ids, Ids]:
        """(from, to) of every transition weight."""
        codes = self.transition_codes if self.transition_codes is not None else np.arange(self.n_transition)
        i, j = np.divmod(codes, self.n_labels)
        return i.astype(np.int32), j.astype(np.int32)

    def pair_names(self) -> tuple[Ids, Ids, Ids]:
        """(pair attribute, from, to) of every pair weight."""
        if self.pair_offsets is None or self.pair_codes is None:
            a, codes = np.divmod(np.arange(self.n_pair), self.n_labels**2)
        else:
            a = np.repeat(np.arange(self.n_pair_attributes), np.diff(self.pair_offsets))
            codes = self.pair_codes
        i, j = np.divmod(codes, self.n_labels)
        return a.astype(np.int32), i.astype(np.int32), j.astype(np.int32)

    @cached_property
    def native(self) -> _core.Field:
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
        )


def _ascending(codes: Ids, end: int) -> bool:
    return len(codes) == 0 or bool(codes[0] >= 0 and codes[-1] < end and np.all(np.diff(codes) > 0))


def _check_lists(name: str, offsets: Ints | None, codes: Ids | None, n: int, end: int) -> None:
    if (offsets is None) != (codes is None):
        raise DataError(f"{name} offsets and {name} labels go together")
    if offsets is None or codes is None:
        return
    if len(offsets) != n + 1 or offsets[0] != 0 or offsets[-1] != len(codes) or np.any(np.diff(offsets) < 0):
        raise DataError(f"{name} offsets must ascend from 0 to {len(codes)} in {n} steps")
    if len(codes) == 0:
        return
    if codes.min() < 0 or codes.max() >= end:
        raise DataError(f"a {name} weight is for a label outside 0 … {end - 1}")
    ascending = np.diff(codes) > 0
    boundaries = offsets[1:-1]
    ascending[boundaries[(boundaries > 0) & (boundaries < len(codes))] - 1] = True
    if not ascending.all():
        raise DataError(f"the labels of an attribute's {name} weights must ascend")
