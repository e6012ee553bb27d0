"""Which labels may follow each other, by name: the schemes that phrases are written in, or pairs that are forbidden."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crfkit.data.sequences import SequenceData
from crfkit.errors import ParameterError
from crfkit.fields.chain import Flags

SCHEMES = ("iob2", "iobes", "observed")


@dataclass(frozen=True, eq=False)
class Constraints:
    """Masks for a :class:`~crfkit.fields.ChainField`."""

    allowed: Flags | None = None  # [L, L]
    allowed_start: Flags | None = None  # [L]
    allowed_end: Flags | None = None  # [L]


def make_constraints(
    constraints: str | Collection[tuple[Any, Any]] | None, classes: Sequence[Any], data: SequenceData | None = None
) -> Constraints:
    """None (everything is allowed), a scheme, or a collection of (label, next label) pairs that may not occur.

    "iob2": I-X follows B-X or I-X only. "iobes": B-X and I-X are followed by I-X or E-X, and nothing else is.
    "observed": the starts, transitions and ends of `data`, and no others.

    >>> make_constraints("iob2", ["B-A", "I-A", "O"]).allowed.tolist()
    [[True, True, True], [True, True, True], [True, False, True]]
    """
    if constraints is None:
        return Constraints()
    if constraints == "observed":
        if data is None or data.labels is None:
            raise ParameterError("constraints of the observed transitions need labelled data")
        return _observed(data, len(classes))
    if isinstance(constraints, str):
        if constraints not in SCHEMES:
            raise ParameterError(f"unknown constraints {constraints!r}; there are {', '.join(SCHEMES)}")
        return _scheme([str(label) for label in classes], ends=constraints == "iobes")
    if not isinstance(constraints, Iterable):
        raise ParameterError(f"constraints must be a scheme or pairs of labels, not {constraints!r}")
    allowed = np.ones((len(classes), len(classes)), dtype=bool)
    ids = {label: i for i, label in enumerate(classes)}
    for pair in constraints:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ParameterError(f"a forbidden transition is a pair (label, next label), not {pair!r}")
        for label in pair:
            if not isinstance(label, Hashable) or label not in ids:
                raise ParameterError(f"the label {label!r} of a forbidden transition does not occur in the data")
        allowed[ids[pair[0]], ids[pair[1]]] = False
    return Constraints(allowed)


def _scheme(classes: Sequence[str], ends: bool) -> Constraints:
    tags = [label.partition("-")[::2] for label in classes]
    inside = [tag in ("I", "E") if ends else tag == "I" for tag, _ in tags]  # goes on with a phrase
    begun = [tag in ("B", "I") for tag, _ in tags]  # leaves a phrase open
    allowed = np.array(
        [
            [
                (begun[i] and kind == other) if inside[j] else not (ends and begun[i])
                for j, (_, other) in enumerate(tags)
            ]
            for i, (_, kind) in enumerate(tags)
        ]
    )
    return Constraints(allowed, ~np.array(inside), ~np.array(begun) if ends else None)


def _observed(data: SequenceData, n_labels: int) -> Constraints:
    assert data.labels is not None
    allowed = np.zeros((n_labels, n_labels), dtype=bool)
    start, end = np.zeros(n_labels, dtype=bool), np.zeros(n_labels, dtype=bool)
    filled = data.lengths > 0
    first, last = data.starts[:-1][filled], data.starts[1:][filled] - 1
    start[data.labels[first]] = True
    end[data.labels[last]] = True
    inner = np.ones(data.n_positions, dtype=bool)
    inner[first] = False
    t = np.flatnonzero(inner)
    allowed[data.labels[t - 1], data.labels[t]] = True
    return Constraints(allowed, start, end)
