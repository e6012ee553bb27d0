"""GROBID's labels: I-<title> begins a phrase, <title> continues it, and <other> is outside of phrases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from crfkit._values import Label
from crfkit.errors import DataError

_LABEL = re.compile(r"(I-)?<([^<>]+)>")
OUTSIDE = "other"


def is_grobid(labels: Iterable[Label]) -> bool:
    """Return whether these labels are GROBID's: all in angle brackets, at least one without I- before it.

    >>> is_grobid(["I-<title>", "<title>", "<other>"]), is_grobid(["I-<title>", "O"]), is_grobid([])
    (True, False, False)
    """
    labels = list(labels)
    form = all(isinstance(label, str) and _LABEL.fullmatch(label) for label in labels)
    return form and any(label.startswith("<") for label in labels)


def from_grobid(labels: Sequence[str]) -> list[str]:
    """Return GROBID's labels in IOB2.

    >>> from_grobid(["I-<title>", "<title>", "I-<other>", "I-<author>"])
    ['B-title', 'I-title', 'O', 'B-author']
    """
    converted = []
    for label in labels:
        match = _LABEL.fullmatch(label) if isinstance(label, str) else None
        if match is None:
            raise DataError(f"{label!r} is no label of GROBID, such as I-<title> or <title>")
        begins, kind = match.groups()
        converted.append("O" if kind == OUTSIDE else f"{'B' if begins else 'I'}-{kind}")
    return converted
