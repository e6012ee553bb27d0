"""The contract of a penalty: a smooth part and a non-smooth rest. See :mod:`crfkit.protocols` for how to read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from crfkit.capabilities import Kind, Selection
from crfkit.errors import ParameterError
from crfkit.protocols.loss import Loss, Vector

Place = Any  # of weights in a vector: a slice, or indices in ascending order


class Penalty:
    """A function of the weights that is added to the loss."""

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...
        @property
        def strength(self) -> float | None:
            """The number that `at` changes; None where there is none (no penalty, constraints)."""

    else:
        strength = None

    @classmethod
    def examples(cls, size: int) -> Sequence[Penalty]:
        """Return some, of vectors of `size` weights, for the laws that every penalty is tested with."""
        return (cls(),)

    def value(self, w: Vector) -> float:
        raise NotImplementedError

    def split(self) -> tuple[SmoothPenalty | None, NonsmoothPenalty | None]:
        """Return (smooth part, non-smooth rest); solvers add the first to the loss and treat the rest themselves."""
        raise NotImplementedError

    def bind(self, loss: Loss) -> Penalty:
        """Return the same penalty of the weights of this loss; asked for before a run and whenever the loss grows."""
        return self

    def at(self, strength: float) -> Penalty:
        """Return the same kind of penalty with another strength."""
        raise ParameterError(f"{self.name} has no strength that could be changed")

    def critical_strength(self, gradient: Vector) -> float | None:
        """Return the least strength at which w = 0 is optimal, from the gradient there; None if no strength is."""
        return None


class SmoothPenalty(Penalty):
    """A smooth part of a penalty."""

    if TYPE_CHECKING:

        @property
        def kinds(self) -> frozenset[Kind]:
            """For solvers that handle some penalties only."""

    def split(self) -> tuple[SmoothPenalty | None, NonsmoothPenalty | None]:
        return self, None

    def add_gradient(self, w: Vector, gradient: Vector) -> None:
        """gradient += ∇penalty(w), in place."""
        raise NotImplementedError

    def add(self, w: Vector, gradient: Vector) -> tuple[float, float | None]:
        """gradient += ∇penalty(w), in place; return penalty(w) and, if it costs nothing extra, ‖gradient‖²."""
        value = self.value(w)
        self.add_gradient(w, gradient)
        return value, None

    def add_hessp(self, w: Vector, v: Vector, product: Vector) -> None:
        """product += ∇²penalty(w)·v, in place."""
        raise NotImplementedError

    def add_hess_diag(self, w: Vector, diagonal: Vector) -> None:
        """diagonal += the diagonal of ∇²penalty(w), in place."""
        raise NotImplementedError

    def lipschitz(self) -> float | None:
        """Return a bound of how fast its gradient changes; None: not known."""
        return None


class NonsmoothPenalty(Penalty):
    """A part that is not smooth (at zero)."""

    if TYPE_CHECKING:

        @property
        def kinds(self) -> frozenset[Kind]:
            """Capabilities that solvers may use."""

    def split(self) -> tuple[SmoothPenalty | None, NonsmoothPenalty | None]:
        return None, self

    @property
    def selection(self) -> Selection | None:
        """The rule by which candidates of a growing loss stay out; None: it keeps none out."""
        return None

    def min_norm_subgradient(self, w: Vector, gradient: Vector) -> Vector:
        """Return the shortest sub-gradient of f + penalty at w, where gradient = ∇f(w): zero exactly at an optimum."""
        raise NotImplementedError

    def prox(self, w: Vector, step: float) -> Vector:
        """Return argmin_x ‖x − w‖²/2 + step·penalty(x)."""
        raise NotImplementedError

    @property
    def pieces(self) -> Sequence[tuple[Place, NonsmoothPenalty]]:
        """Pairs (place, penalty of the weights there) whose sum it is, where strengths differ; places are disjoint."""
        return ((slice(None), self),)

    def restricted(self, places: Place) -> NonsmoothPenalty:
        """Return the same penalty as a function of the weights at these places alone, with all others at zero."""
        raise ParameterError(f"{self.name} cannot be restricted to some of the weights")


class EpigraphPenalty(NonsmoothPenalty):
    """A rest that is min_α cost·α over a set of (w, α) that can be projected onto: kind "epigraph".

    Of Σ_G strength·‖w_G‖ the set is {‖w_G‖ ≤ α_G}; a constraint has no α.
    """

    def epigraph_size(self, n_weights: int) -> int:
        """Return how many α there are for so many weights."""
        raise NotImplementedError

    def epigraph_start(self, w: Vector) -> tuple[Vector, Vector]:
        """Return (the least α of w, the cost of each α)."""
        raise NotImplementedError

    def project_epigraph(self, w: Vector, alpha: Vector) -> tuple[Vector, Vector]:
        """Return the nearest (w, α) of the set, as new vectors."""
        raise NotImplementedError
