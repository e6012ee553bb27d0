"""Labels of sequences: which values can be labels, in which order, and how a model file holds them.

A label is a string, bytes, an integer, a float, a boolean (Python's or NumPy's) or a tuple of these and None. All
labels of a model are of one kind, and predictions give back the objects that were learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from crfkit._types import Array, Label
from crfkit.errors import DataError, ModelFileError

KINDS = "strings, bytes, integers, floats, booleans, or tuples of these"
_PLAIN: dict[type, str] = {str: "str", bytes: "bytes", bool: "bool", int: "int", float: "float", tuple: "tuple"}
_NUMPY: tuple[tuple[type, str], ...] = (
    (np.str_, "str"),
    (np.bytes_, "bytes"),
    (np.bool_, "bool"),
    (np.signedinteger, "int"),
    (np.unsignedinteger, "int"),
    (np.floating, "float"),
)


class LabelError(DataError):
    """A label that cannot be used."""

    def __init__(self, message: str, label: Label = None) -> None:
        super().__init__(message)
        self.label = label


def sort_labels(labels: Iterable[Label]) -> list[Label]:
    """Return the different labels, sorted; of equal ones the first.

    Raises DataError if they are of several kinds (1 and True are equal, but two labels), or of a kind that a model file
    cannot hold.

    >>> sort_labels(["b", "a", "b"])
    ['a', 'b']
    """
    labels = list(labels)
    by_type: dict[type, Label] = {}
    if len(set(map(type, labels))) == 1:
        by_type[type(labels[0])] = labels[0]
    else:
        for label in labels:
            by_type.setdefault(type(label), label)
    _check_types(by_type)
    try:
        seen = list(dict.fromkeys(labels))
    except TypeError:
        odd = next(label for label in labels if not _hashable(label))
        raise DataError(f"the label {odd!r} is not hashable; labels can be {KINDS}") from None
    for label in seen:
        _check(label, label)
    if tuple in by_type:
        _check_equal_tuples(labels, seen)
    try:
        return sorted(seen)
    except TypeError:  # tuples whose items cannot be compared
        return sorted(seen, key=repr)


def _check_types(by_type: dict[type, Label]) -> None:
    kinds = {_kind(kind) or kind.__name__: label for kind, label in by_type.items()}
    if len(kinds) > 1:
        examples = " and ".join(f"{label!r} ({kind})" for kind, label in sorted(kinds.items())[:2])
        remedy = "make them all of one type"
        if {"NoneType", "set", "frozenset"} & kinds.keys():
            remedy = "only ChainCRF.fit learns from unknown labels (None) and sets of labels"
        elif "list" in kinds:
            remedy = "give ChainCRF.fit a set where a label is one of several"
        raise DataError(f"labels must be of one type, not {sorted(kinds)}: there are {examples}; {remedy}")


def _kind(kind: type) -> str | None:
    """Return the kind of label that values of a type are; None if they cannot be labels."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind is np.longdouble and kind is not np.float64:
        return None
    return next((name for base, name in _NUMPY if issubclass(kind, base) and kind.__module__ == "numpy"), None)


def _check(label: Label, whole: object) -> None:
    """Raise DataError if a model file cannot hold a label or an item of it."""
    kind = _kind(type(label))
    if kind is None and not (label is None and whole is not None):
        part = "" if label is whole else f", in the label {whole!r},"
        hint = "; use its value" if hasattr(label, "value") and hasattr(label, "name") else ""
        raise DataError(
            f"the label {label!r}{part} is of type {type(label).__name__}, which a model file cannot hold; labels can "
            f"be {KINDS}{hint}"
        )
    if kind == "tuple":
        for item in label:
            _check(item, whole)
    elif kind == "float" and label != label:
        raise DataError("a label is NaN")
    elif kind == "str":
        try:
            label.encode()
        except UnicodeEncodeError:
            raise LabelError(
                f"the label {label!r} is not valid Unicode, which a model file cannot hold", whole
            ) from None


def _check_equal_tuples(labels: Sequence[Label], seen: Sequence[Label]) -> None:
    """Raise DataError where tuples are equal though their items are of different types, as (1,) and (True,) are."""
    typed = {_typed(label): label for label in labels}
    if len(typed) > len(seen):
        first = {label: _typed(label) for label in seen}
        other = next(label for label in labels if _typed(label) != first[label])
        same = next(label for label in seen if label == other)
        raise DataError(
            f"the labels {same!r} and {other!r} are equal in Python, though their items are of different types; make "
            "the items of one type"
        )


def _typed(label: Label) -> Label:
    """Return something that is equal for equal labels of the same kinds only."""
    return tuple(map(_typed, label)) if isinstance(label, tuple) else (_kind(type(label)), label)


def _hashable(label: Label) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True


def label_array(labels: Sequence[Label]) -> Array:
    """Return labels as an array whose `tolist` gives back the very same labels.

    >>> label_array(["a", "b"]).dtype.kind, label_array([("a", 1), ("b", 2)]).dtype.kind
    ('U', 'O')
    """
    if len({type(label) for label in labels} - {str, int, float, bool}) == 0:
        array = np.array(labels)
        again = array.tolist()
        if array.ndim == 1 and again == list(labels) and list(map(type, again)) == list(map(type, labels)):
            return array
    objects: Array = np.empty(len(labels), dtype=object)
    objects[:] = labels
    return objects


# --- model files


def to_json(label: Label) -> object:
    """Return a label as JSON: plain strings, numbers and booleans unchanged, others with their type.

    >>> to_json("a"), to_json((b"a", 1))
    ('a', {'type': 'tuple', 'value': [{'type': 'bytes', 'value': 'a'}, 1]})
    """
    if label is None or type(label) in (str, int, float, bool):
        return label
    if type(label) is tuple:
        return {"type": "tuple", "value": [to_json(item) for item in label]}
    if type(label) is bytes:
        return {"type": "bytes", "value": label.decode("latin-1")}
    value = label.item()
    kind = {"str": "numpy.str_", "bytes": "numpy.bytes_", "bool": "numpy.bool"}.get(_kind(type(label)) or "")
    value = value.decode("latin-1") if isinstance(value, bytes) else value
    return {"type": kind or f"numpy.{label.dtype.name}", "value": value}


def from_json(value: Any) -> Any:
    """Return the label that `to_json` wrote."""
    if isinstance(value, (str, int, float)):
        return value
    try:
        kind, inner = value["type"], value["value"]
        if kind == "tuple" and isinstance(inner, list):
            return tuple(None if item is None else from_json(item) for item in inner)
        if kind in ("bytes", "numpy.bytes_"):
            raw = inner.encode("latin-1")
            return raw if kind == "bytes" else np.bytes_(raw)
        if kind == "numpy.str_" and isinstance(inner, str):
            return np.str_(inner)
        if kind == "numpy.bool" and isinstance(inner, bool):
            return np.bool_(inner)
        if kind.startswith(("numpy.int", "numpy.uint", "numpy.float")) and isinstance(inner, (int, float)):
            number = np.dtype(kind.removeprefix("numpy.")).type(inner)
            if number.item() == inner:
                return number
    except (TypeError, KeyError, AttributeError, ValueError, OverflowError):
        pass
    raise ModelFileError(f"the label {value!r} is neither a string nor a number nor a tuple of these")


def labels_from_json(values: Sequence[Label]) -> list[Label]:
    """Return the labels of a model file, checked: two or more, different, of one kind."""
    labels = [from_json(value) for value in values]
    try:
        different = len(sort_labels(labels))
    except DataError as error:
        raise ModelFileError(f"the labels are not of one type: {error}") from None
    if different < 2 or different != len(labels):
        raise ModelFileError("the labels are not two or more different values of one type")
    return labels
