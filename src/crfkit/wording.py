"""Words of messages."""

from __future__ import annotations


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun.

    >>> counted(1, "column"), counted(3, "column"), counted(2, "entry", "entries")
    ('1 column', '3 columns', '2 entries')
    """
    return f"{n} {noun if n == 1 else plural or noun + 's'}"
