"""The record of how a model was made, checked once where its file is opened.

Programs read the record for what they show and for the options of a further training, so a file must not be able to put
another type there. Entries that this version does not know may hold anything that JSON can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from crfkit._values import Entries, Record
from crfkit.errors import ModelFileError

MAX_INTEGER = 2**53  # beyond it, JSON readers differ in what an integer is
MOST_TEXT = 10_000
Check = Callable[[Any], bool]  # whether a value is what crfkit writes


def _text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MOST_TEXT


def _number(value: object) -> bool:
    return type(value) is float or (type(value) is int and abs(value) <= MAX_INTEGER)


def _strength(value: Any) -> bool:
    return _number(value) and 0 <= value < math.inf


def _count(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_INTEGER


def _flag(value: object) -> bool:
    return isinstance(value, bool)


def _texts(value: object) -> bool:
    return isinstance(value, dict) and all(_text(key) and _text(entry) for key, entry in value.items())


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _row(*checks: Check) -> Check:
    """Return a check of lists whose first entries pass these checks; further entries may be None or numbers."""
    further = _or_none(_number)

    def check(value: object) -> bool:
        return (
            isinstance(value, list)
            and len(value) >= len(checks)
            and all(test(entry) for test, entry in zip(checks, value, strict=False))
            and all(map(further, value[len(checks) :]))
        )

    return check


def _entries(required: Mapping[str, Check], **optional: Check) -> Check:
    def check(value: object) -> bool:
        if not isinstance(value, dict) or not required.keys() <= value.keys():
            return False
        known = {**required, **optional}
        return all(known[key](entry) for key, entry in value.items() if key in known)

    return check


_maybe_number = _or_none(_number)
_numbers = _list_of(_number)
SCHEMA: dict[str, Check] = {
    "objective": _or_none(_text),
    "value": _maybe_number,
    "status": _text,
    "iterations": _count,
    "min_frequency": _count,
    "solver": _text,
    "auto": _texts,
    "precision": _text,
    "penalty": _or_none(_entries({"l1": _strength, "l2": _strength})),
    "convex": _flag,
    "standardised": _flag,
    "inference": _text,
    "encoding": _text,
    "label_column": lambda value: type(value) is int and abs(value) <= MAX_INTEGER,
    "origin": _text,
    "frame": _entries({}, sequence=_text, token=_list_of(_text), label=_or_none(_text)),
    "penalty_choice": _or_none(
        lambda value: (
            _entries({"folds": _count})(value)
            and (
                not value["folds"]
                or _entries({"images": _count, "held_out_error": _number, "training_error": _number})(value)
            )
        )
    ),
    "tuned": _entries({"score": _number, "measure": _text, "trials": _count}),
    "structure": _entries(
        {"method": _text, "loss": _text, "strength": _number, "critical_strength": _number},
        rule=_or_none(_text),
        path=_list_of(_row(_number, _count, _maybe_number, _maybe_number)),
        chosen=_or_none(_count),
        refit=_or_none(_entries({"by": _text}, mismatch=_maybe_number)),
        stability=_list_of(_row(_count, _number)),
        entries=_list_of(_row(_count, _number)),
        input_scales=_or_none(
            _entries(
                {"shared": _numbers, "own": _numbers},
                shared_means=_or_none(_numbers),
                own_means=_or_none(_numbers),
            )
        ),
        bins=lambda value: isinstance(value, dict) and all(map(_numbers, value.values())),
    ),
}


def checked_record(metadata: Record) -> Entries:
    """Return the record of a model file, empty if it has none; raise ModelFileError if an entry has the wrong type.

    >>> checked_record({"training": {"solver": "lbfgs", "iterations": 3}})
    {'solver': 'lbfgs', 'iterations': 3}
    >>> checked_record({"training": {"min_frequency": "x"}})
    Traceback (most recent call last):
    crfkit.errors.ModelFileError: the metadata entry 'training' has 'min_frequency': 'x', which crfkit does not write
    """
    record = metadata.get("training")
    if record is None:
        return {}
    if not isinstance(record, dict):
        raise ModelFileError(f"the metadata entry 'training' is {record!r:.200}; expected an object")
    for name, check in SCHEMA.items():
        if name in record and not check(record[name]):
            raise ModelFileError(
                f"the metadata entry 'training' has {name!r}: {record[name]!r:.200}, which crfkit does not write"
            )
    return record
