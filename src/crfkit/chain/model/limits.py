"""Decoding under restrictions: known labels, labels that are allowed at positions, constraints on neighbours."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from crfkit._checks import is_listed
from crfkit._types import Flags, Ids, Label
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.constraints import Pairs as Pairs
from crfkit.chain.fields.constraints import make_constraints, nearest
from crfkit.chain.fields.field import ChainField
from crfkit.chain.inference import ChainInference
from crfkit.chain.model.spans import Runs
from crfkit.errors import DataError, ParameterError
from crfkit.schemes import are_phrases
from crfkit.wording import counted

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel

Known = Iterable[Sequence[Label] | None] | None
Allowed = Iterable[Sequence[Collection[Label] | None] | None] | None


@dataclass(frozen=True, eq=False)
class Limits:
    """Restrictions of inference: the constrained chain, and what single positions allow ([positions, labels])."""

    inference: ChainInference
    allowed: Flags | None = None


def make_limits(
    model: ChainModel, data: SequenceData, known: Known = None, allowed: Allowed = None, constraints: Pairs = None
) -> Limits:
    """Return the limits of a call. Errors name the sequence and the position."""
    inference = model.inference
    if constraints is not None:
        field = _constrained(model.field, constraints, model.class_list)
        inference = ChainInference(field, model.w, model.n_threads)
    if known is None and allowed is None:
        return Limits(inference)
    mask = np.ones((data.n_positions, len(model.class_list)), dtype=bool)
    ids = {label: j for j, label in enumerate(model.class_list)}
    if allowed is not None:
        for t, where, labels in _positions("allowed", allowed, data):
            if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
                raise DataError(
                    f"{where}: allowed takes a collection of labels or None, not {labels!r}; write [{labels!r}]"
                )
            chosen = [_id(label, ids, where) for label in labels]
            if not chosen:
                raise DataError(f"{where}: no label is allowed; give at least one, or None to allow all")
            mask[t] = False
            mask[t, chosen] = True
    if known is not None:
        for t, where, label in _positions("known", known, data):
            j = _id(label, ids, where)
            if not mask[t, j]:
                raise DataError(f"{where}: the known label {label!r} is not among the allowed ones")
            mask[t] = False
            mask[t, j] = True
    return Limits(inference, mask)


def _positions(name: str, given: Iterable[Any], data: SequenceData) -> Iterable[tuple[int, str, Any]]:
    """Yield (position in all the data, its name, what is given for it) where something is given."""
    if not is_listed(given):
        raise DataError(f"{name} must have an entry for each sequence, not {given!r}")
    rows = list(given)
    if len(rows) != len(data):
        raise DataError(
            f"{name} must have an entry for each sequence (labels of its positions, or None); there "
            f"{'is' if len(data) == 1 else 'are'} {counted(len(data), 'sequence')}, but {name} has "
            f"{counted(len(rows), 'entry', 'entries')}"
        )
    for n, (row, (begin, end)) in enumerate(zip(rows, pairwise(data.starts.tolist()), strict=True)):
        if row is None:
            continue
        if not is_listed(row) or not hasattr(row, "__len__") or len(row) != end - begin:
            listed = is_listed(row) and hasattr(row, "__len__")
            size = counted(len(row), "entry", "entries") if listed else repr(row)
            raise DataError(
                f"sequence {n} has {counted(end - begin, 'item')}, but {name} has {size} for it; give one for each "
                "position (None where nothing is given), or None for the whole sequence"
            )
        for t, entry in enumerate(row):
            if entry is not None:
                yield begin + t, f"sequence {n}, position {t}", entry


def _id(label: Label, ids: dict[Label, int], where: str) -> int:
    if not isinstance(label, Hashable) or label not in ids:
        raise DataError(f"{where}: the model has no label {label!r}{nearest(label, list(ids))}")
    return ids[label]


def _constrained(field: ChainField, constraints: Pairs, classes: Sequence[Label]) -> ChainField:
    """Return the field with further constraints."""
    masks = make_constraints(constraints, classes)

    def both(own: Flags | None, more: Flags | None) -> Flags | None:
        return own if more is None else more if own is None else own & more

    return replace(
        field,
        allowed=both(field.allowed, masks.allowed),
        allowed_start=both(field.allowed_start, masks.allowed_start),
        allowed_end=both(field.allowed_end, masks.allowed_end),
    )


MOST_RUNS = 256  # what the core counts


def one_run_each(classes: Sequence[Label], contiguous: bool | Collection[Label]) -> tuple[Ids, Flags]:
    """Return (group of each label, −1 without a limit; whether a run continues from one label to the next).

    If the labels mark phrases, a group is a type and a run is a phrase: B-X after I-X begins a second one. Otherwise
    each label is a group of its own. "O" has no limit unless it is named.

    >>> one_run_each(["city", "street", "O"], True)[0].tolist()
    [0, 1, -1]
    >>> one_run_each(["B-A", "I-A", "B-B", "O"], ["A"])[0].tolist()
    [0, 0, -1, -1]
    """
    marked = are_phrases(classes)
    runs = Runs(classes) if marked else None
    names: list[Label] = [kind if tag != "O" else "O" for tag, kind in runs.parts] if runs else list(classes)
    if isinstance(contiguous, (str, bytes)) or not isinstance(contiguous, (bool, Iterable)):
        raise ParameterError(f"contiguous must be True, False or a collection of labels, not {contiguous!r}")
    if isinstance(contiguous, bool):
        wanted = {name for name in names if name != "O"}
    else:
        alias = dict(zip(classes, names, strict=True)) if marked else {}
        wanted = set()
        for given in contiguous:
            name = alias.get(given, given) if isinstance(given, Hashable) else given
            if not isinstance(name, Hashable) or name not in names:
                raise ParameterError(
                    f"contiguous names {given!r}, which is no label{' or type' if marked else ''} of the model"
                    f"{nearest(given, sorted(set(map(str, names))))}"
                )
            wanted.add(name)
    order = {name: k for k, name in enumerate(dict.fromkeys(name for name in names if name in wanted))}
    if len(order) > MOST_RUNS:
        raise ParameterError(f"contiguous takes at most {MOST_RUNS} labels, not {len(order)}; name those that matter")
    groups = np.array([order.get(name, -1) for name in names], dtype=np.int32)
    return groups, runs.goes_on if runs is not None else np.eye(len(classes), dtype=bool)
