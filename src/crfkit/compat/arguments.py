"""Command lines of other tools: numbers, and sentences for what is wrong."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError
from difflib import get_close_matches
from typing import NoReturn

from crfkit.errors import ParameterError


class CommandParser(ArgumentParser):
    """A parser that raises ParameterError, with the nearest name of an unknown option."""

    def error(self, message: str) -> NoReturn:
        prefix, found, rest = message.partition("unrecognized arguments: ")
        if found and not prefix:
            message = self._unknown(rest.split(" ")[0])
        raise ParameterError(f"{message} ({self.prog} --help)")

    def _unknown(self, given: str) -> str:
        if not given.startswith("-"):
            return f"there is one argument too many, {given}"
        known = [option for action in self._actions for option in action.option_strings]
        near = get_close_matches(given.split("=")[0], known, 1)
        return f"unknown option {given}{f'; did you mean {near[0]}?' if near else ''}"


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
