"""The contracts of the three axes: loss, penalty, solver. One page; every member keeps it.

``J(w) = loss(w) + penalty(w)``. Losses are sums over sequences, not means. ``L2(s) = s/2·‖w‖²``.
Vectors are one-dimensional arrays of one library (NumPy, or any that follows the array API); solvers use
only their operators and the functions of :mod:`crfkit.arrays`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from crfkit.result import Result

Vector = Any


class Evaluation(Protocol):
    """A loss at one point; what is asked for is computed once, when it is first asked for."""

    @property
    def value(self) -> float: ...
    @property
    def grad(self) -> Vector:
        """A vector of this evaluation's own: the caller may change it."""
        ...


@runtime_checkable
class Loss(Protocol):
    """A smooth function of the weights."""

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int:
        """Number of weights."""
        ...

    @property
    def layout(self) -> Mapping[str, slice]:
        """Named blocks of the weight vector."""
        ...

    @property
    def capabilities(self) -> frozenset[str]:
        """What solvers may ask of it beyond value and gradient: "smooth" always, and later "hessp" …"""
        ...

    def at(self, w: Vector, warm: Evaluation | None = None) -> Evaluation:
        """The loss at w; `warm` is the last evaluation, for losses that can start from it."""
        ...


@runtime_checkable
class Penalty(Protocol):
    """A function of the weights that is added to the loss."""

    @property
    def name(self) -> str: ...
    def value(self, w: Vector) -> float: ...
    def split(self) -> tuple[SmoothPenalty | None, Penalty | None]:
        """(smooth part, rest): solvers add the smooth part to the loss and treat the rest themselves."""
        ...


@runtime_checkable
class SmoothPenalty(Penalty, Protocol):
    def add_gradient(self, w: Vector, gradient: Vector) -> None:
        """gradient += ∇penalty(w), in place."""
        ...


class Solver(Protocol):
    """`init` and `step`; the loop owns the rest (see :mod:`crfkit.solvers.loop`)."""

    @property
    def name(self) -> str: ...
    @property
    def needs(self) -> frozenset[str]:
        """Capabilities that the loss must have."""
        ...

    @property
    def handles_rest(self) -> bool:
        """Whether it can minimise the part of a penalty that is not smooth."""
        ...

    def minimize(self, loss: Loss, penalty: Penalty, w0: Vector, callbacks: Sequence[Any] = ()) -> Result: ...
