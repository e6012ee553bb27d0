"""Numbers on the command lines of other tools, with sentences for texts that are none."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError


def integer(text: str) -> int:
    """Return an integer.

    >>> integer("three")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: expected an integer, not 'three'
    """
    try:
        return int(text)
    except ValueError:
        raise ArgumentTypeError(f"expected an integer, not {text!r}") from None


def number(text: str) -> float:
    """Return a number."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"expected a number, not {text!r}") from None


def count(text: str) -> int:
    """Return an integer that is not negative."""
    value = integer(text)
    if value < 0:
        raise ArgumentTypeError(f"expected an integer >= 0, not {value}")
    return value


def positive(text: str) -> int:
    """Return an integer above zero."""
    value = integer(text)
    if value < 1:
        raise ArgumentTypeError(f"expected an integer >= 1, not {value}")
    return value


def strength(text: str) -> float:
    """Return a finite number that is not negative."""
    value = number(text)
    if not 0 <= value < math.inf:
        raise ArgumentTypeError(f"expected a number >= 0, not {text}")
    return value
