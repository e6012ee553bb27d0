"""The contract of a nonmonotone line search: which value trials are compared with, and how it follows the iterates.

    f(x + t·d) ≤ C_k + ν_k·t·∇f(x)·d

A rule keeps a few numbers from step to step. They are saved with the state of a solver as an array whose shape tells
the rules apart, so that a run can go on with another rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

Kept = Sequence[float]


class Options(Protocol):
    """The constants of a search that a rule may use."""

    @property
    def memory(self) -> int: ...
    @property
    def eta(self) -> float: ...
    @property
    def nu(self) -> float: ...


class ReferenceRule(Protocol):
    """A rule for C_k and ν_k."""

    def start(self, value: float) -> Kept:
        """Return what to keep at the first point."""
        ...

    def after(self, kept: Kept, value: float, options: Options) -> Kept:
        """Return what to keep after a step to a point with this value."""
        ...

    def level(self, kept: Kept) -> float:
        """Return C_k."""
        ...

    def decrease(self, kept: Kept, options: Options) -> float:
        """Return ν_k."""
        ...

    def saved(self, kept: Kept) -> Any:
        """Return an array of finite numbers."""
        ...

    def restored(self, saved: Any, options: Options) -> Kept | None:
        """Return what was kept, or None where another rule saved it."""
        ...
