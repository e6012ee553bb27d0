"""Hostile values, and changes of JSON values and arrays."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np

INTEGERS = (
    -1, 0, 1, 2, 3, 7, 64, 255, 256, 65535, 65536, 10**6, 3 * 10**8, 2**31 - 1, 2**31, -(2**31), 2**32 - 1, 2**32,
    10**12, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 10**400,
)  # fmt: skip
FLOATS = (
    0.0,
    -0.0,
    0.5,
    1.5,
    -1.0,
    1e-300,
    5e-324,
    1e16,
    1e154,
    1e300,
    1.7e308,
    float("nan"),
    float("inf"),
    -float("inf"),
)
STRINGS = (
    "",
    "x",
    "é",
    "\x00",
    "\ud800",
    "a b",
    "\n",
    "auto",
    "engine",
    "graph",
    "x" * 5000,
    "%x[0,0]",
    "../x",
    "nan",
    "1",
)
KEYS = (
    "engine",
    "graph",
    "n_states",
    "self",
    "n_threads",
    "seed",
    "custom",
    "",
    "\ud800",
    "__class__",
    "name",
    "options",
)


def hostile(rng: random.Random) -> Any:
    """Return a JSON value that hardly anybody expects."""
    match rng.randrange(8):
        case 0 | 1:
            return rng.choice(INTEGERS)
        case 2:
            return rng.choice(FLOATS)
        case 3:
            return rng.choice(STRINGS)
        case 4:
            return rng.choice((None, True, False))
        case 5:
            return rng.choice(([], {}, [[]], [None], {"": None}, [0] * 1000, ["a", "a"], [1, "a"], {"a": {"b": []}}))
        case 6:
            value: Any = rng.choice((0, "x", None))
            for _ in range(rng.choice((1, 3, 30, 300))):
                value = [value] if rng.random() < 0.5 else {"a": value}
            return value
        case _:
            return [rng.choice(INTEGERS) for _ in range(rng.randrange(5))]


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Return (container, key or index) of every value in a JSON tree."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting:
        at = waiting.pop()
        keys = list(at) if isinstance(at, dict) else range(len(at)) if isinstance(at, list) else ()
        for key in keys:
            found.append((at, key))
            waiting.append(at[key])
    return found


def copied(tree: Any) -> Any:
    """Return a deep copy of a JSON tree, which may be nested deeper than Python's stack."""
    root = [tree]
    waiting: list[Any] = [root]
    while waiting:
        at = waiting.pop()
        for key in list(at) if isinstance(at, dict) else range(len(at)):
            if isinstance(at[key], (dict, list)):
                at[key] = at[key].copy()
                waiting.append(at[key])
    return root[0]


def change_json(tree: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return a copy of a JSON object in which one value is replaced, removed, added, repeated or exchanged."""
    tree = copied(tree)
    found = places(tree)
    if not found:
        return {rng.choice(KEYS): hostile(rng)}
    # a level at a time: a long list would otherwise take all the changes
    at, key = rng.choice(found) if rng.random() < 0.5 else rng.choice([place for place in found if place[0] is tree])
    match rng.randrange(10):
        case 0:
            del at[key]
        case 1:
            if isinstance(at, list):
                at.insert(key, copied(at[key]) if rng.random() < 0.5 else hostile(rng))
            else:
                at[rng.choice(KEYS)] = hostile(rng)
        case 2:
            inner = [value for value in (at, at[key]) if isinstance(value, dict)]
            (rng.choice(inner) if inner else tree)[rng.choice(KEYS)] = hostile(rng)
        case 3:
            other, place = rng.choice(found)
            at[key], other[place] = copied(other[place]), copied(at[key])
        case 4 | 5 if isinstance(at[key], (int, float)) and not isinstance(at[key], bool):
            at[key] = near(at[key], rng)
        case 4 | 5 if isinstance(at[key], str):
            at[key] = change_text(at[key], rng)
        case 4 | 5 if isinstance(at[key], list):
            at[key] = change_list(at[key], rng)
        case _:
            at[key] = hostile(rng)
    return tree


def near(value: float, rng: random.Random) -> float:
    try:
        return rng.choice(
            (value + 1, value - 1, -value, 2 * value, value * 10**6, value * 10**12, value / 2, float(value))
        )
    except OverflowError:
        return -1


def change_list(values: list[Any], rng: random.Random) -> list[Any]:
    values = list(values)
    match rng.randrange(5):
        case 0:
            return values[: rng.randrange(len(values) + 1)]
        case 1:
            return values + values
        case 2:
            return values[::-1]
        case 3:
            return [*values, hostile(rng)]
        case _:
            return values * rng.choice((0, 3, 1000))


def change_text(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    match rng.randrange(5):
        case 0:
            return text[:at]
        case 1:
            return text[:at] + rng.choice(STRINGS) + text[at:]
        case 2:
            return text + text
        case 3:
            return text[:at] + text[at + 1 :]
        case _:
            return text[:at] + chr(rng.choice((0, 9, 10, 13, 32, 37, 0x85, 0x2028, 0xD800, 0x10FFFF))) + text[at:]


DTYPES = (np.float64, np.float32, np.int64, np.int32, np.uint32, np.uint64, np.uint8)


def change_array(array: np.ndarray[Any, Any], rng: random.Random) -> np.ndarray[Any, Any]:
    """Return an array with other values, of another type or of another shape."""
    array = np.array(array)
    with np.errstate(all="ignore"):
        match rng.randrange(12):
            case 0:
                return array.astype(rng.choice(DTYPES))
            case 1:
                flat = array.reshape(-1)
                return np.frombuffer(flat.tobytes()[: flat.nbytes // 8 * 8], dtype=rng.choice(DTYPES))
            case 2:
                return _reshaped(array, rng)
            case 3:
                return array.reshape(-1)[: rng.randrange(array.size + 1)]
            case 4:
                return np.concatenate([array.reshape(-1), array.reshape(-1)[: rng.randrange(array.size + 1)]])
            case 5:
                order = list(range(array.size))
                rng.shuffle(order)
                return array.reshape(-1)[order].reshape(array.shape)
            case 6:
                return np.full_like(array, _extreme(array.dtype, rng))
            case 7 if array.dtype.kind == "i" and array.size >= 4:  # ascending, if differences may wrap around
                most = np.iinfo(array.dtype).max
                array.reshape(-1)[-4:] = (0, most, -most - 1, -1)
                return array
            case _:
                flat = array.reshape(-1)
                for _ in range(rng.choice((1, 1, 1, 2, 5)) if array.size else 0):
                    k = rng.choice((0, -1, rng.randrange(array.size)))
                    other = rng.randrange(array.size)
                    near_by = (flat[k] + flat.dtype.type(1), flat[k] - flat.dtype.type(1), flat[other])
                    flat[k] = rng.choice((*near_by, _extreme(array.dtype, rng), _extreme(array.dtype, rng)))
                return array


def _reshaped(array: np.ndarray[Any, Any], rng: random.Random) -> Any:
    """Return it with other dimensions; those that NumPy does not have are in `Shaped`."""
    shape = rng.choice(
        ((1,) * 65, (1,) * 33, (array.size, 1), (1, array.size), (0,), (0, 2**40), (2**40, 0, 2**40), ())
    )
    return Shaped(array, shape if np.prod(shape, dtype=object) == array.size or 0 in shape else (1,) * 65)


class Shaped(np.ndarray[Any, Any]):
    """An array whose header states a shape that NumPy need not have."""

    stated: tuple[int, ...]

    def __new__(cls, array: np.ndarray[Any, Any], shape: tuple[int, ...]) -> Shaped:
        made = np.resize(array.reshape(-1), math.prod(shape)).view(cls)
        made.stated = shape
        return made


def _extreme(dtype: np.dtype[Any], rng: random.Random) -> Any:
    if dtype.kind == "f":
        with np.errstate(all="ignore"):
            return dtype.type(rng.choice(FLOATS))
    info = np.iinfo(dtype)
    return dtype.type(
        rng.choice([n for n in (*INTEGERS, info.max, info.min, info.max - 1) if info.min <= n <= info.max])
    )
