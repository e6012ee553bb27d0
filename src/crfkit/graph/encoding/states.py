"""Labels of nodes, strings or numbers, to state numbers and back.

An unknown label is None, NaN or masked; −1 too, unless −1 is itself a label.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Array, Ids, Label
from crfkit.errors import DataError, ModelFileError
from crfkit.wording import quoted

Labels = Array
UNKNOWN = -1  # the state number


def read_labels(given: object, what: str) -> tuple[Labels, NDArray[np.bool_]]:
    """Return labels and which of them are known, in the shape given; unknown labels hold any value."""
    try:
        array = np.ma.asanyarray(given) if isinstance(given, np.ma.MaskedArray) else np.asarray(given)
    except ValueError:
        raise DataError(f"{what} must be an array of labels; its rows have different lengths") from None
    if isinstance(given, (list, tuple)) and array.dtype.kind in "Ubiuf":
        objects = np.asarray(given, dtype=object)
        items = [v for v in objects.ravel().tolist() if not _missing(v)]
        _check_one_kind(items, what)
        array = objects if len(items) < objects.size else array  # NumPy makes a string of NaN among strings
    known = ~np.ma.getmaskarray(array)
    values = np.ma.getdata(array)
    if values.dtype.kind == "f":
        return values, known & ~np.isnan(values)
    if values.dtype.kind == "O":
        known &= ~np.array([_missing(v) for v in values.ravel()], dtype=bool).reshape(values.shape)
        return _typed(values, known, what), known
    if values.size and values.dtype.kind not in "biuU":
        raise DataError(f"{what} holds {values.dtype}; labels are strings or numbers")
    return values, known


def check_unicode(texts: Iterable[object], found: str) -> None:
    """Raise DataError if one of the texts is not valid Unicode; `found` begins the message."""
    for text in texts:
        if isinstance(text, str):
            try:
                text.encode()
            except UnicodeEncodeError:
                raise DataError(f"{found} {text!r}, which is not valid Unicode: it has a lone surrogate") from None


def learn_classes(values: Labels, known: NDArray[np.bool_], what: str, minus_one: bool = False) -> Labels:
    """Return the labels that occur, sorted. −1 means unknown unless `minus_one`, or 1 is the only other label."""
    classes = np.unique(values[known])
    if not minus_one and classes.dtype.kind in "if" and -1 in classes and classes.tolist() != [-1, 1]:
        classes = classes[classes != -1]
    check_unicode(classes, f"{what} has the label")
    if len(classes) < 2:
        found = f"only the label {classes.tolist()[0]!r}" if len(classes) else "no known label"
        raise DataError(f"{what} has {found}; at least two different labels are needed")
    return classes


def to_states(values: Labels, known: NDArray[np.bool_], classes: Labels, what: str) -> Ids:
    """Return state numbers in the shape of the labels; −1 where a label is unknown."""
    states = np.full(values.shape, UNKNOWN, dtype=np.int32)
    if classes.dtype.kind != "U" and values.dtype.kind != "U" and -1 not in classes:
        known = known & (values != -1)
    if not known.any():
        return states
    chosen = values[known]
    ok = np.zeros(len(chosen), dtype=bool)
    if (classes.dtype.kind == "U") == (chosen.dtype.kind == "U"):
        order = np.argsort(classes, kind="stable")  # ordered categories have an order of their own
        places = order[np.minimum(np.searchsorted(classes, chosen, sorter=order), len(classes) - 1)]
        ok = classes[places] == chosen
    if not ok.all():
        i = int(np.flatnonzero(~ok)[0])
        where = tuple(int(axis[i]) for axis in np.nonzero(known))
        place = where[0] if len(where) == 1 else where
        shown = ", ".join(map(repr, classes.tolist()[:10])) + (", …" if len(classes) > 10 else "")
        raise DataError(f"{what} has the label {chosen[i].item()!r} at {place}; the labels are {shown}")
    states[known] = places
    return states


def check_classes(labels: Sequence[Label] | Labels) -> Labels:
    """Return the classes of a model file; raise ModelFileError if they are not two or more different labels."""
    if not isinstance(labels, list) or not all(isinstance(label, (str, int, float)) for label in labels):
        raise ModelFileError("a label is neither a string nor a number")
    if len(labels) < 2 or len({type(label) for label in labels}) != 1:
        raise ModelFileError("the labels are not two or more different values of one type")
    classes = np.array(labels)
    if len(np.unique(classes)) != len(classes):
        raise ModelFileError("the labels are not different")
    return classes


def _missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and value != value) or type(value).__name__ in _NA


_NA = ("NAType", "NaTType", "MaskedConstant")  # pandas', NumPy's


def _typed(values: Labels, known: NDArray[np.bool_], what: str) -> Labels:
    """Return Python objects as an array of strings or of numbers."""
    items: Sequence[Label] = values[known].tolist()
    if all(isinstance(v, str) for v in items):
        out: Labels = np.full(values.shape, "", dtype=np.array(items or [""]).dtype)
    elif all(isinstance(v, (numbers.Real, np.bool_)) for v in items):
        out = np.zeros(values.shape, dtype=np.array(items).dtype)
    else:
        raise DataError(f"{what} holds {_odd(items)}; labels are strings or numbers, of one kind")
    _check_one_kind(items, what)
    out[known] = items
    return out


def _check_one_kind(items: Sequence[object], what: str) -> None:
    """Raise DataError if NumPy would make one label of two, as it does of 1 and True, or of 1 and "1"."""
    kinds = {
        "a string" if issubclass(kind, str) else "a boolean" if issubclass(kind, (bool, np.bool_)) else "a number": kind
        for kind in set(map(type, items))
    }
    if len(kinds) > 1:
        first, second = sorted(kinds)[:2]
        examples = [next(v for v in items if type(v) is kinds[name]) for name in (first, second)]
        raise DataError(
            f"{what} holds {quoted(examples[0])} ({first}) and {quoted(examples[1])} ({second}); labels "
            "are strings or numbers, of one kind"
        )


def _odd(items: Sequence[object]) -> str:
    kinds = {type(v).__name__: v for v in items}
    return " and ".join(quoted(v) for v in list(kinds.values())[:2])
