"""Command lines that differ from another in some options."""

from __future__ import annotations

from collections.abc import Sequence


def replacing(command: Sequence[object], *options: object) -> list[object]:
    """Return a command with pairs of an option and its value; those that it has get the new value.

    >>> replacing(["train", "a.txt", "-m", "a.crf"], "-m", "b.crf", "-i", 3)
    ['train', 'a.txt', '-m', 'b.crf', '-i', 3]
    """
    changed = list(command)
    for name, value in zip(options[::2], options[1::2], strict=True):
        if name in changed:
            changed[changed.index(name) + 1] = value
        else:
            changed += [name, value]
    return changed
