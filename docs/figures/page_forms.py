"""How measured figures are written: ratios, seconds, megabytes, tables."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any


def short(number: float) -> str:
    """Return two digits or more: 4.5, 24, 307."""
    return f"{number:.0f}" if number >= 9.95 else f"{number:.1f}"


def times(ratio: float) -> str:
    return f"{short(ratio)} times"


def seconds(number: float) -> str:
    """Return two digits or more with their unit: 41 ms, 0.62 s, 5.2 s, 307 s."""
    if number < 0.0995:
        return f"{short(1e3 * number)} ms"
    return f"{number:.2f} s" if number < 0.995 else f"{short(number)} s"


def megabytes(number: float) -> str:
    return f"{number:,.0f} MB"


def between(numbers: Iterable[float], form: Callable[[float], str] = short) -> str:
    """Return `least to most`, or one of them if they are written alike."""
    found = sorted(numbers)
    least, most = form(found[0]), form(found[-1])
    return least if least == most else f"{least} to {most}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def middle(rows: Iterable[Any], key: str | None = None) -> float:
    return statistics.median(row[key] if key else row for row in rows)
