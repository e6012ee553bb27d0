"""Targets: Python inputs of estimators. The file of a case holds a number, from which the inputs are made."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from crfkit import ChainCRF, GraphCRF, GridCRF, Refiner, StructureLearner, Template
from fuzz.chains import ITEMS, LABELS, MATRICES, ROWS
from fuzz.fields import GRID_LABELS, GRIDS, IMAGES, INPUTS, MAPS, MASKS, TABLE
from fuzz.fields import ROWS as TABLE_ROWS
from fuzz.target import Target
from fuzz.values import FLOATS, INTEGERS, STRINGS, change_array

QUICK = {"n_threads": 1, "max_iterations": 2}


class Odd:
    """An object that nobody expects."""

    def __repr__(self) -> str:
        return "\ud800"


def odd(rng: random.Random) -> Any:
    """Return a value of any kind."""
    return rng.choice((
        None, True, b"bytes", Odd(), set(), frozenset({"a"}), {}, [], (), np.nan, np.array(3), np.array([[1.0]]),
        np.ma.masked, np.ma.array([1.0, 2.0], mask=[True, False]), np.datetime64("2020-01-01"), 1j, "x" * 1000,
        rng.choice(STRINGS), rng.choice(INTEGERS), rng.choice(FLOATS), {"a": rng.choice(FLOATS)}, {1: 2}, [None],
    ))  # fmt: skip


def bent(value: Any, rng: random.Random, depth: int = 0) -> Any:
    """Return a value in which something, at any depth, is odd, missing, repeated or of another type."""
    if isinstance(value, np.ndarray):
        return bent_array(value, rng)
    if isinstance(value, (list, tuple)) and len(value) and rng.random() < 0.85:
        parts = list(value)
        at = rng.randrange(len(parts))
        match rng.randrange(8 if depth else 12):
            case 0:
                del parts[at]
            case 1:
                parts.insert(at, parts[at])
            case 2:
                parts[at] = odd(rng)
            case 3:
                return np.array(parts, dtype=object)
            case _:
                parts[at] = bent(parts[at], rng, depth + 1)
        return type(value)(parts)
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        if rng.random() < 0.2:
            return {**value, odd_key(rng): odd(rng)}
        return {**value, key: bent(value[key], rng, depth + 1)}
    return odd(rng)


def odd_key(rng: random.Random) -> Any:
    return rng.choice(("\ud800", "", 3, None, ("a",), "x" * 1000))


def bent_array(array: np.ndarray[Any, Any], rng: random.Random) -> Any:
    match rng.randrange(8):
        case 0:
            return np.ma.array(array, mask=np.arange(array.size).reshape(array.shape) % 3 == 0)
        case 1:
            return array.astype(rng.choice((np.int8, np.float16, np.complex128, object, str, bool, "f4", ">f8")))
        case 2 if array.ndim == 2:
            return bent_sparse(array, rng)
        case 3:
            return array[::-1] if rng.random() < 0.5 else array.T
        case 4:
            return array.tolist()
        case _:
            return np.asarray(change_array(array, rng))


def bent_sparse(array: np.ndarray[Any, Any], rng: random.Random) -> Any:
    """Return a sparse matrix; mostly one whose arrays do not fit together."""
    kind = rng.choice((sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.coo_array))
    made = kind(array.astype(float))
    if not hasattr(made, "indptr"):
        return made
    if rng.random() < 0.9:
        name = rng.choice(("indices", "indptr", "data"))
        changed = np.asarray(change_array(getattr(made, name), rng)).reshape(-1)
        setattr(made, name, changed)
    return made


def _chain(X: Any, y: Any, rng: random.Random, template: Template | None = None) -> None:
    if rng.random() < 0.5:
        X, y = (bent(X, rng), y) if rng.random() < 0.6 else (X, bent(y, rng))
        ChainCRF(template=template, **QUICK).fit(X, y).predict(X)
    else:
        model = _fitted_chain(template is not None, X is MATRICES)
        given = bent(X, rng)
        rng.choice((model.predict, model.predict_marginals, model.predict_spans, model.entropies))(given)
        if rng.random() < 0.2:
            model.decode(X, known=bent(LABELS, rng))


@cache
def _fitted_chain(template: bool, matrices: bool) -> Any:
    crf = ChainCRF(template=TEMPLATE if template else None, **QUICK)
    return crf.fit(ROWS if template else MATRICES if matrices else ITEMS, LABELS).model_


@cache
def _fitted(kind: type, *names: str) -> Any:
    return kind(**QUICK).fit(*(globals()[name] for name in names))


TEMPLATE = Template("U0:%x[0,0]\nB")


def _pairwise(kind: type, X: str, Y: str, rng: random.Random) -> None:
    given = [globals()[X], globals()[Y]]
    if rng.random() < 0.5:
        k = rng.randrange(2)
        given[k] = bent(given[k], rng)
        kind(**QUICK).fit(*given).predict(given[0])
    else:
        fitted = _fitted(kind, X, Y)
        rng.choice((fitted.predict, fitted.predict_marginals))(bent(given[0], rng))


def _structure(rng: random.Random) -> None:
    StructureLearner(edge_strength=5.0, n_threads=1).fit(bent(TABLE_ROWS, rng))


def _refine(rng: random.Random) -> None:
    given: list[Any] = [MAPS, IMAGES, MASKS]
    k = rng.randrange(3)
    given[k] = bent(given[k], rng)
    if rng.random() < 0.5:
        Refiner(block_size=4, **QUICK).fit(*given)
    else:
        _fitted(Refiner, "MAPS", "IMAGES", "MASKS").predict(*given[:2])


CASES: dict[str, Callable[[random.Random], None]] = {
    "inputs-items": lambda rng: _chain(ITEMS, LABELS, rng),
    "inputs-rows": lambda rng: _chain(ROWS, LABELS, rng, TEMPLATE),
    "inputs-matrices": lambda rng: _chain(MATRICES, LABELS, rng),
    "inputs-graph": lambda rng: _pairwise(GraphCRF, "INPUTS", "TABLE", rng),
    "inputs-grid": lambda rng: _pairwise(GridCRF, "GRIDS", "GRID_LABELS", rng),
    "inputs-structure": _structure,
    "inputs-refiner": _refine,
}
USED = (GRIDS, GRID_LABELS, IMAGES, INPUTS, MAPS, MASKS, TABLE)  # by name, above


def _number(valid: bytes, rng: random.Random) -> bytes:
    return b"%d" % rng.getrandbits(64)


def _use(name: str) -> Callable[[Path, random.Random], None]:
    def use(path: Path, rng: random.Random) -> None:
        number = path.read_bytes()
        if number != b"0":  # the inputs as they are need no test here
            CASES[name](random.Random(int(number)))

    return use


TARGETS = [Target(name, lambda: b"0", _number, _use(name)) for name in CASES]
