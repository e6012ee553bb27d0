"""Limits that keep a small file from asking for much memory or time, and how users raise them.

They guard against files, not against users: training on large data of your own needs no permission. A file that asks
for more than a limit raises :class:`crfkit.errors.LimitError`, before the memory or the time is taken. Whoever trusts
the file raises the limit, in the environment (``CRFKIT_LIMITS="memory=16GB pixels=4e8"``) or in Python:

>>> from crfkit.files import limits
>>> with limits.raised(memory="16 GB"):
...     limits.current().memory
16000000000
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path

from crfkit.errors import LimitError, ParameterError

VARIABLE = "CRFKIT_LIMITS"


@dataclass(frozen=True)
class Limits:
    """The largest numbers that crfkit accepts from files."""

    memory: int = 1_000_000_000  # bytes that a file of a model may ask for, beyond 64 times its own size
    pixels: int = 80_000_000  # of one image
    blocks: int = 1_000_000  # of one image, of which features are computed
    line: int = 16_000_000  # bytes of one line of a text file
    columns: int = 100_000  # of one table
    macros: int = 10_000  # of one template, such as %x[0,0]
    steps: int = 1_000_000  # sweeps, samples, trees and iterations that a model may ask for when it predicts


PER_PAIR = 50  # bytes of memory that a chain takes for each pair of labels
PER_BYTE = 64  # bytes of memory that each byte of a model file may ask for

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_NUMBER = re.compile(r"([0-9.]+(?:e[0-9]+)?)\s*([kmgt]?)b?", re.IGNORECASE)


def current() -> Limits:
    """Return the limits in force: from `raised`, otherwise from the environment, otherwise the defaults."""
    return _raised[-1] if _raised else _from_environment()


@contextmanager
def raised(**limits: int | str) -> Iterator[None]:
    """Use other limits inside this block, in all threads of the process."""
    mine = _changed(current(), limits, "crfkit.files.limits.raised")
    _raised.append(mine)
    try:
        yield
    finally:  # blocks of other threads may have begun later and still continue
        del _raised[next(k for k, other in enumerate(_raised) if other is mine)]


def check(name: str, needed: int, what: str, path: str | Path | None = None) -> None:
    """Raise LimitError if `what` needs more than the limit of this name allows; `path` is the file that it names."""
    limit = getattr(current(), name)
    if needed > limit:
        error = LimitError(f"{what}, and the limit is {limit:,}; {_advice(name, needed)}")
        error.path = path
        raise error


def check_memory(needed: int, what: str, file_size: int = 0) -> None:
    """Raise LimitError if `what`, which a file of this size asks for, needs more bytes than the limit allows."""
    limit = current().memory + PER_BYTE * file_size
    if needed > limit:
        raise LimitError(
            f"{what} would take {size_text(needed)} of memory, and the limit for this file is {size_text(limit)}; "
            f"{_advice('memory', needed)}"
        )


def check_labels(n_labels: int, order: int, file_size: int) -> None:
    """Raise LimitError if a file of this size may not have a chain with so many labels.

    A chain takes memory for every pair of labels, at order 2 for every triple, whether it has weights for them or not.
    """
    check_memory(PER_PAIR * n_labels ** (order + 1), f"a chain of {n_labels:,} labels and order {order}", file_size)


def size_text(n_bytes: float) -> str:
    """Return a number of bytes as readable text, such as "1.5 GB".

    >>> size_text(7_200_000_000)
    '7.2 GB'
    """
    n_bytes = float(min(n_bytes, 10**24))
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "bytes" else f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"


_raised: list[Limits] = []


def _advice(name: str, needed: int) -> str:
    return f"if you trust the file, set {VARIABLE}={name}={_rounded_up(needed)}"


def _rounded_up(n: int) -> int:
    """Return n or a little more, with two digits that are not zero."""
    unit = int("1".ljust(len(str(n)) - 1, "0"))
    return -(-n // unit) * unit


def _from_environment() -> Limits:
    text = os.environ.get(VARIABLE, "")
    if not text.strip():
        return Limits()
    given: dict[str, int | str] = {}
    for entry in re.split(r"[\s,;]+(?=[^\s=]+\s*=)", text.strip()):
        name, _, value = entry.partition("=")
        given[name.strip()] = value
    return _changed(Limits(), given, f"the environment variable {VARIABLE}")


def _changed(limits: Limits, given: dict[str, int | str], where: str) -> Limits:
    names = [item.name for item in fields(Limits)]
    for name in given:
        if name not in names:
            raise ParameterError(f"{where}: there is no limit {name!r}; the limits are {', '.join(names)}")
    return replace(limits, **{name: _number(value, f"{where}: {name}") for name, value in given.items()})


def _number(value: int | str, what: str) -> int:
    found = _NUMBER.fullmatch(str(value).strip())
    try:
        if found:
            return int(float(found[1]) * _UNITS[found[2].lower()])
    except (ValueError, OverflowError):
        pass
    raise ParameterError(f"{what} must be a number such as 4e8 or 16GB, not {value!r}")
