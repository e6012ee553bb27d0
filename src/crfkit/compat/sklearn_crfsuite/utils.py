"""Helpers of the metrics."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from crfkit._values import Label


def flatten(y: Iterable[Iterable[Label]]) -> list[Label]:
    """Return the items of all lists in one list.

    >>> flatten([[1, 2], [3, 4]])
    [1, 2, 3, 4]
    """
    return list(chain.from_iterable(y))
