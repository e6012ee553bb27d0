"""Encoded sequences: frozen, flat arrays that the compiled core reads in place."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfkit import _core
from crfkit._checks import ascends, index_array, unmasked
from crfkit._types import Array, Flags, Floats, Ids, Ints, Label
from crfkit.errors import DataError

_TYPES: dict[str, type] = {
    "starts": np.int64,
    "offsets": np.int64,
    "attributes": np.int32,
    "values": np.float64,
    "pair_offsets": np.int64,
    "pair_attributes": np.int32,
    "labels": np.int32,
    "weights": np.float64,
    "targets": bool,
    "token_weights": np.float64,
}
_INTEGERS = (np.int32, np.int64)


@dataclass(frozen=True, eq=False)
class SequenceData:
    """N sequences of T positions in all, in compressed-row form.

    Sequence n holds positions ``starts[n] : starts[n+1]``; position t has the attributes
    ``attributes[offsets[t] : offsets[t+1]]`` (ids, ascending) with ``values`` (None: all 1). Pair attributes, where
    there are any, belong to the label pair (t−1, t) and are laid out alike. The arrays here are read-only, and the
    core reads them in place: arrays that somebody could write to are copied.
    """

    starts: Ints  # [N+1]
    offsets: Ints  # [T+1]
    attributes: Ids
    values: Floats | None = None
    pair_offsets: Ints | None = None  # [T+1]
    pair_attributes: Ids | None = None
    labels: Ids | None = None  # [T]
    weights: Floats | None = None  # [N]
    # [T, L]: True where a label is possible, where more than one may be; then there are no labels
    targets: Flags | None = None
    token_weights: Floats | None = None  # [T]

    def __post_init__(self) -> None:
        for name, dtype in _TYPES.items():
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, _owned(given, name, dtype))
        self._check()

    @classmethod
    def taking(cls, *arrays: Any, **more: Any) -> SequenceData:
        """Return data of arrays that nobody else will write to: they are made read-only and not copied."""
        for array in (*arrays, *more.values()):
            _freeze(array)
        return cls(*arrays, **more)

    def _check(self) -> None:
        _check_offsets("starts", self.starts, self.n_positions)
        _check_offsets("offsets", self.offsets, len(self.attributes))
        if (self.pair_offsets is None) != (self.pair_attributes is None):
            raise DataError("pair_offsets and pair_attributes go together: give both or neither")
        if self.pair_offsets is not None and self.pair_attributes is not None:
            _check_length("pair_offsets", self.pair_offsets, self.n_positions + 1)
            _check_offsets("pair_offsets", self.pair_offsets, len(self.pair_attributes))
        if self.values is not None:
            _check_length("values", self.values, len(self.attributes))
            _check_finite("values", self.values)
        if self.labels is not None:
            _check_length("labels", self.labels, self.n_positions)
        if self.weights is not None:
            _check_length("weights", self.weights, len(self))
            _check_finite("sample_weight", self.weights)
            if np.any(self.weights < 0):
                raise DataError(f"sequence {int(np.argmax(self.weights < 0))} has a negative weight")
        self._check_weak()

    def _check_weak(self) -> None:
        """Check what is known of the labels, and the weights of the positions."""
        if self.targets is not None:
            if self.targets.ndim != 2 or len(self.targets) != self.n_positions:
                raise DataError(f"targets has shape {self.targets.shape}; expected ({self.n_positions}, labels)")
            none = np.flatnonzero(~self.targets.any(axis=1))
            if len(none):
                raise DataError(f"{self._place(none[0])}: no label is possible")
        if self.token_weights is not None:
            _check_length("token_weights", self.token_weights, self.n_positions)
            wrong = np.flatnonzero(~(np.isfinite(self.token_weights) & (self.token_weights >= 0)))
            if len(wrong):
                raise DataError(
                    f"{self._place(wrong[0])}: the weight is {self.token_weights[wrong[0]]}; weights must be finite "
                    "and >= 0"
                )

    def _place(self, position: int) -> str:
        n = int(np.searchsorted(self.starts, position, side="right")) - 1
        return f"sequence {n}, position {position - self.starts[n]}"

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def n_positions(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Ints:
        return np.diff(self.starts)

    @cached_property
    def native(self) -> _core.Sequences:
        arrays = {item.name: getattr(self, item.name) for item in fields(self)}
        if self.targets is not None:
            arrays["targets"] = self.targets.view(np.uint8).ravel()
        return _core.Sequences(*arrays.values())

    @property
    def weak(self) -> bool:
        """Return whether labels are known in part only, or positions have weights of their own."""
        return self.targets is not None or self.token_weights is not None

    def __getstate__(self) -> dict[str, object]:
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def __setstate__(self, state: dict[str, object]) -> None:
        for name, array in state.items():
            _freeze(array)
            object.__setattr__(self, name, array)
        self.__post_init__()

    def split(self, flat: NDArray[np.generic]) -> Iterator[NDArray[np.generic]]:
        """Return the rows of a per-position array that belong to each sequence."""
        for begin, end in zip(self.starts[:-1], self.starts[1:], strict=True):
            yield flat[begin:end]

    def take(self, ids: ArrayLike) -> SequenceData:
        """Return the sequences at these places, in this order."""
        order = np.asarray(ids, dtype=np.int64)
        starts, positions = gather(self.starts, order)
        offsets, entries = gather(self.offsets, positions)
        pair_offsets, pair_entries = (None, None)
        if self.pair_offsets is not None:
            pair_offsets, pair_entries = gather(self.pair_offsets, positions)

        def at(array: NDArray[np.generic] | None, index: Ints | None) -> NDArray[np.generic] | None:
            return None if array is None else array[index]

        return SequenceData.taking(
            starts,
            offsets,
            self.attributes[entries],
            at(self.values, entries),
            pair_offsets,
            at(self.pair_attributes, pair_entries),
            at(self.labels, positions),
            at(self.weights, order),
            at(self.targets, positions),
            at(self.token_weights, positions),
        )

    def with_labels(self, labels: Ids) -> SequenceData:
        return replace(self, labels=labels)

    def with_weights(self, weights: ArrayLike | None) -> SequenceData:
        """Return the same sequences with these weights."""
        if weights is None:
            return self
        try:
            array = np.array(unmasked(weights, "sample_weight"), dtype=np.float64)
        except (TypeError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError("sample_weight must be numbers, one for each sequence") from None
        if array.ndim != 1 or len(array) != len(self):
            raise DataError(f"sample_weight has shape {array.shape}, but there are {len(self)} sequences")
        return replace(self, weights=array)


def gather(offsets: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Return (offsets of the chosen rows when they lie together, the places of their entries)."""
    lengths = offsets[rows + 1] - offsets[rows]
    new = np.concatenate([[0], np.cumsum(lengths)])
    return new, np.arange(new[-1]) + np.repeat(offsets[rows] - new[:-1], lengths)


def encode_labels(y: Iterable[Iterable[object]], lengths: Ints, ids: dict[object, int]) -> Ids:
    """Return the label ids of all positions; `y` must fit the sequences' lengths and hold only labels of `ids`."""
    flat = check_labels(y, lengths)
    try:
        return label_numbers(flat, ids)
    except (KeyError, TypeError):  # TypeError: a list or another thing that cannot be a label
        wrong = next(k for k, label in enumerate(flat) if not isinstance(label, Hashable) or label not in ids)
        n = int(np.searchsorted(np.cumsum(lengths), wrong, side="right"))
        place = f"sequence {n}, position {wrong - int(np.sum(lengths[:n]))}"
        raise DataError(f"{place}: the label {flat[wrong]!r} is not among {sorted(map(str, ids))}") from None


def label_numbers(flat: list[Label], ids: dict[object, int]) -> Ids:
    """Return the ids of labels; raise KeyError for one that is not there."""
    return np.fromiter(map(ids.__getitem__, flat), dtype=np.int32, count=len(flat))


def check_labels(y: Iterable[Iterable[object]], lengths: Ints) -> list[object]:
    """Return the labels of all positions in one list."""
    flat: list[object] = []
    n = 0
    for n, labels in enumerate(y, start=1):
        before = len(flat)
        labels = unmasked(labels, f"the labels of sequence {n - 1}")
        try:
            flat.extend(labels.tolist() if isinstance(labels, np.ndarray) else labels)
        except TypeError:
            raise DataError(f"the labels of sequence {n - 1} must be a list, not {labels!r:.80}") from None
        if n <= len(lengths) and len(flat) - before != lengths[n - 1]:
            raise DataError(f"sequence {n - 1} has {lengths[n - 1]} items but {len(flat) - before} labels")
    if n != len(lengths):
        raise DataError(f"there are {len(lengths)} sequences but {n} label sequences")
    return flat


def _owned(given: object, name: str, dtype: type) -> Array:
    """Return a contiguous array that nobody can write to: the one given if that is so, otherwise a copy."""
    if type(given) is np.ndarray and given.dtype == dtype and given.flags.c_contiguous:
        if not _writeable(given):
            return given
        array = given.copy()
    else:
        plain = unmasked(given, name)
        array = index_array(plain, name, dtype) if dtype in _INTEGERS else np.ascontiguousarray(plain, dtype=dtype)
        if array.base is not None and _writeable(array):
            array = array.copy()
    _freeze(array)
    return array


def _writeable(array: object) -> bool:
    """Return whether the array, or one that it is a view of, can be written to."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return False


def _freeze(array: object) -> None:
    """Make an array and all that it is a view of read-only."""
    while isinstance(array, np.ndarray):
        array.flags.writeable = False
        array = array.base


def _check_length(name: str, array: NDArray[np.generic], expected: int) -> None:
    if array.ndim != 1 or len(array) != expected:
        raise DataError(f"{name} has shape {array.shape}; expected ({expected},)")


def _check_offsets(name: str, offsets: Ints, end: int) -> None:
    if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != end or not ascends(offsets):
        raise DataError(f"{name} must ascend from 0 to {end}")


def _check_finite(name: str, array: Floats) -> None:
    if not np.isfinite(array).all():
        where = int(np.argmin(np.isfinite(array)))
        raise DataError(f"{name}[{where}] is {array[where]}; values must be finite")
