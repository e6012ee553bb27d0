"""Labels that may follow each other, by name: the schemes that phrases are written in, or pairs that are forbidden."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from crfkit._types import Flags, Label
from crfkit.errors import DataError, ParameterError
from crfkit.names import unknown_name
from crfkit.schemes import ALIASES, TAG_SCHEMES, LabelPairs, fault, obstacle, split_label

if TYPE_CHECKING:
    from crfkit.chain.data import SequenceData

SCHEMES = ("iob1", "iob2", "ioe1", "ioe2", "iobes", "bilou", "observed")


@dataclass(frozen=True, eq=False)
class Constraints:
    """Masks for a :class:`~crfkit.chain.fields.field.ChainField`."""

    allowed: Flags | None = None  # [L, L]
    allowed_start: Flags | None = None  # [L]
    allowed_end: Flags | None = None  # [L]


Pairs = str | Collection[tuple[Label, Label]] | None


def make_constraints(constraints: Pairs, classes: Sequence[Label], data: SequenceData | None = None) -> Constraints:
    """Return the constraints of None (all is allowed), a scheme, or forbidden pairs (label, next label).

    Schemes are as in :data:`crfkit.schemes.TAG_SCHEMES`: with "iob2", I-X follows B-X or I-X only; with "iobes", B-X
    and I-X are followed by I-X or E-X, and nothing else is. "observed": the starts, transitions and ends of `data`, and
    no others.

    >>> make_constraints("iob2", ["B-A", "I-A", "O"]).allowed.tolist()
    [[True, True, True], [True, True, True], [True, False, True]]
    """
    if constraints is None:
        return Constraints()
    if constraints == "observed":
        if data is None or data.labels is None:
            why = "" if data is None or data.targets is None else ", and some labels are not known"
            raise ParameterError(f"constraints of the observed transitions need labelled data{why}")
        return _observed(data, len(classes))
    if isinstance(constraints, str):
        if constraints not in SCHEMES:
            usual = ALIASES.get(constraints.lower())
            raise unknown_name("constraints", constraints, SCHEMES, nearest=usual)
        return _scheme(constraints, [str(label) for label in classes], data)
    if not isinstance(constraints, Iterable):
        raise ParameterError(f"constraints must be a scheme or pairs of labels, not {constraints!r}")
    allowed = np.ones((len(classes), len(classes)), dtype=bool)
    ids = {label: i for i, label in enumerate(classes)}
    for pair in constraints:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ParameterError(f"a forbidden transition is a pair (label, next label), not {pair!r}")
        for label in pair:
            if not isinstance(label, Hashable) or label not in ids:
                raise ParameterError(
                    f"the label {label!r} of a forbidden transition does not occur in the data{nearest(label, classes)}"
                )
        allowed[ids[pair[0]], ids[pair[1]]] = False
    return Constraints(allowed)


def _scheme(name: str, classes: Sequence[str], data: SequenceData | None) -> Constraints:
    """Return the masks of a tagging scheme; labels that write no phrase are free."""
    rules = TAG_SCHEMES[name]
    parts = [split_label(label) or ("O", "") for label in classes]
    written = [x for x, (tag, _) in zip(classes, parts, strict=True) if tag != "O"]
    if not written:
        raise ParameterError(
            f"the constraints {name!r} would constrain nothing: no label is written as {rules.tags[0]}-… "
            f"({_some(classes)}); {obstacle(classes) or 'there is no phrase'}. Leave the constraints out, or use "
            "'observed' or pairs of labels"
        )
    foreign = [x for x, (tag, _) in zip(classes, parts, strict=True) if tag not in {*rules.tags, "O"}]
    if foreign:
        raise ParameterError(
            f"the constraints {name!r} do not know the label {foreign[0]!r}: the tags of {name} are "
            f"{', '.join(rules.tags)} and O. {_other_schemes(parts, _pairs(classes, data))}"
        )
    kinds = np.array([kind for _, kind in parts])
    same = kinds[:, None] == kinds[None, :]

    def has(tags: str) -> Flags:
        return np.array([tag in tags for tag, _ in parts], dtype=bool)

    allowed = ~has(rules.after)[None, :] | (has(rules.preceded_by)[:, None] & same)
    allowed &= ~has(rules.before)[:, None] | (has(rules.followed_by)[None, :] & same)
    return Constraints(allowed, ~has(rules.after), ~has(rules.before) if rules.before else None)


def _other_schemes(parts: Sequence[tuple[str, str]], pairs: LabelPairs) -> str:
    tags = {tag for tag, _ in parts} - {"O"}
    remedy = "rewrite the labels with convert_tags (crfkit convert-tags)"
    if (found := pairs.scheme) is not None:
        return f"These labels look like {found.upper()}: use {found!r}, or {remedy}"
    fitting = [name for name, rules in TAG_SCHEMES.items() if tags <= set(rules.tags)]
    return f"Use {' or '.join(map(repr, fitting))}, or {remedy}" if fitting else remedy.capitalize()


def _pairs(names: Sequence[str], data: SequenceData | None) -> LabelPairs:
    if data is None or data.labels is None:
        return LabelPairs()
    return LabelPairs.of([names[j] for j in row] for row in data.split(data.labels))


def _some(labels: Sequence[str]) -> str:
    return ", ".join(labels[:4]) + (", …" if len(labels) > 4 else "")


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


def nearest(name: object, names: Sequence[Label]) -> str:
    """Return "; did you mean …?" with the name that is spelt most alike, or nothing.

    >>> nearest("B-PRE", ["B-PER", "O"])
    "; did you mean 'B-PER'?"
    """
    from difflib import get_close_matches

    by_text = {str(other): other for other in names}
    close = get_close_matches(str(name), list(by_text), n=1)
    return f"; did you mean {by_text[close[0]]!r}?" if close else ""


# --- training labels that break constraints


class ConstraintError(DataError):
    """A training sequence whose labels the constraints forbid; `position` counts over all sequences."""

    def __init__(self, message: str, position: int, label: str) -> None:
        super().__init__(message)
        self.position, self.label = position, label


def check_allowed(masks: Constraints, constraints: object, classes: Sequence[Label], data: SequenceData) -> None:
    """Raise ConstraintError at the first label of the data that the masks forbid."""
    if data.labels is None or data.n_positions == 0 or (masks.allowed is None and masks.allowed_start is None):
        return
    labels = data.labels
    filled = data.lengths > 0
    first, last = data.starts[:-1][filled], data.starts[1:][filled] - 1
    begins = np.zeros(data.n_positions, dtype=bool)
    begins[first] = True
    bad = np.zeros(data.n_positions, dtype=bool)  # this label, or it and the one before
    if masks.allowed is not None:
        inner = np.flatnonzero(~begins)
        bad[inner] = ~masks.allowed[labels[inner - 1], labels[inner]]
    if masks.allowed_start is not None:
        bad[first] = ~masks.allowed_start[labels[first]]
    bad_end = np.zeros(data.n_positions, dtype=bool)
    if masks.allowed_end is not None:
        bad_end[last] = ~masks.allowed_end[labels[last]]
    if not (bad.any() or bad_end.any()):
        return
    t = int(np.flatnonzero(bad | bad_end)[0])
    names = [str(label) for label in classes]
    if bad[t]:
        pair: tuple[str | None, str | None] = (None if begins[t] else names[labels[t - 1]], names[labels[t]])
        beside = f"after {pair[0]}" if pair[0] else "at its start"
    else:
        pair, beside = (names[labels[t]], None), "at its end"
    n = int(np.searchsorted(data.starts, t, side="right")) - 1
    place = t - int(data.starts[n])
    what = f"sequence {n} has {names[labels[t]]} {beside} (position {place}), which the constraints forbid"
    if isinstance(constraints, str) and (wrong := fault(constraints, *pair) if constraints in TAG_SCHEMES else None):
        pairs = _pairs(names, data)
        what += f": {wrong[1]}; {pairs.advice(constraints)}: {_remedy(constraints, pairs.scheme)}"
        t -= bool(bad[t] and wrong[0] == 0)  # the label before is at fault
    raise ConstraintError(what, t, names[labels[t]])


def check_possible(masks: Constraints, data: SequenceData) -> None:
    """Raise DataError at the first position where the masks leave no labelling of what the data say is possible."""
    if data.targets is None or (masks.allowed is None and masks.allowed_start is None and masks.allowed_end is None):
        return
    L = data.targets.shape[1]
    follows = np.ones((L, L), dtype=bool) if masks.allowed is None else masks.allowed
    for n, (begin, end) in enumerate(pairwise(data.starts.tolist())):
        reached = np.ones(L, dtype=bool) if masks.allowed_start is None else masks.allowed_start
        for t in range(begin, end):
            reached = data.targets[t] & (reached if t == begin else reached @ follows)
            if t + 1 == end and masks.allowed_end is not None:
                reached = reached & masks.allowed_end
            if not reached.any():
                raise DataError(
                    f"sequence {n}, position {t - begin}: the constraints forbid every label that is possible here "
                    "after those that are possible before"
                )


def _remedy(constraints: str, found: str | None) -> str:
    rewrite = f"rewrite the labels with convert_tags (crfkit convert-tags --to {constraints})"
    return f"{f'use the constraints {found!r}' if found else 'correct the labels'}, or {rewrite}"
