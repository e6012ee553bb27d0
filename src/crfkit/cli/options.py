"""What options of several commands mean."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crfkit.errors import ParameterError

if TYPE_CHECKING:
    from crfkit.penalties import L2
    from crfkit.protocols import Penalty


def make_penalty(l1: float | None, l2: float | L2 | None) -> Penalty | None:
    """From the strengths given; None: the default."""
    from crfkit import penalties

    if isinstance(l2, (int, float)):
        l2 = penalties.L2(l2)
    if l1 is None:
        return l2
    return penalties.L1(l1) if l2 is None else penalties.ElasticNet(l1, l2.strength)


def check_distinct(paths: dict[str, Path | None]) -> None:
    """Refuses to read and write one file under two names."""
    seen: dict[Path, str] = {}
    for name, path in paths.items():
        if path is None:
            continue
        other = seen.setdefault(path.resolve(), name)
        if other != name:
            raise ParameterError(f"{other} and {name} are the same file, {path}")
