"""Constraints instead of penalties: the weights lie in a ball of the L1 norm, or of the sum of the groups' lengths."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from array_api_compat import array_namespace

from crfkit.errors import ParameterError
from crfkit.parameters import Parameters
from crfkit.penalties.group_index import Groups, pairs_and_one
from crfkit.penalties.group_norms import GroupL2
from crfkit.penalties.group_rows import lengths, threshold
from crfkit.protocols import EpigraphPenalty, Kind, Penalty, Vector

TOLERANCE = 1e-9  # of the radius: rounding does not take a point out of the ball or off its surface


class _Ball(Parameters, EpigraphPenalty, ABC):
    """0 inside, ∞ outside. With n(w) = the sizes whose sum is bounded and μ the multiplier of the bound."""

    radius: float
    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.PROX, Kind.EPIGRAPH})

    @abstractmethod
    def _sizes(self, w: Vector) -> Vector: ...

    @abstractmethod
    def prox(self, w: Vector, step: float) -> Vector: ...

    def _sum(self, w: Vector) -> float:
        return float(array_namespace(w).sum(self._sizes(w)))

    def _check_radius(self) -> None:
        if not (math.isfinite(self.radius) and self.radius > 0):
            what = type(self).__name__
            raise ParameterError(f"the radius of {what} must be a finite number > 0, not {self.radius!r}")

    def value(self, w: Vector) -> float:
        return 0.0 if self._sum(w) <= self.radius * (1.0 + TOLERANCE) else math.inf

    def epigraph_size(self, n_weights: int) -> int:
        """None: a constraint has no α."""
        return 0

    def epigraph_start(self, w: Vector) -> tuple[Vector, Vector]:
        return w[:0], w[:0]

    def project_epigraph(self, w: Vector, alpha: Vector) -> tuple[Vector, Vector]:
        """(the nearest w of the ball, nothing)."""
        return self.prox(w, 1.0), alpha

    def _on_surface(self, w: Vector) -> bool:
        return self._sum(w) >= self.radius * (1.0 - TOLERANCE)


def _multiplier(slope: float, used: int, unused: Vector) -> float:
    """μ ≥ 0 with Σ_used (slopes + μ) = Σ_unused max(sizes − μ, 0): max_j (Σ of the j largest − slope)/(used + j)."""
    xp = array_namespace(unused)
    best = -slope / used
    if unused.shape[0]:
        sums = xp.cumulative_sum(xp.sort(unused, descending=True))
        count = xp.arange(1, unused.shape[0] + 1, dtype=unused.dtype) + used
        best = max(best, float(xp.max((sums - slope) / count)))
    return max(best, 0.0)


@dataclass(frozen=True)
class L1Ball(_Ball):
    """The constraint ``‖w‖₁ ≤ radius``: the same models as L1, by the size of the weights instead of its price.

    >>> import numpy as np
    >>> L1Ball(2.0).prox(np.array([3.0, -2.0, 0.5]), step=1.0).tolist()
    [1.5, -0.5, 0.0]
    """

    radius: float = 1.0

    def __post_init__(self) -> None:
        self._check_radius()

    @property
    def name(self) -> str:
        return f"L1Ball({self.radius:g})"

    def _sizes(self, w: Vector) -> Vector:
        return array_namespace(w).abs(w)

    def prox(self, w: Vector, step: float) -> Vector:
        """The projection, whatever the step: soft thresholding by the least number that brings w into the ball."""
        xp = array_namespace(w)
        size = xp.abs(w)
        if float(xp.sum(size)) <= self.radius:
            return 1.0 * w
        return xp.sign(w) * xp.maximum(size - threshold(size[None, :], self.radius)[0, :], xp.zeros_like(w))

    def multiplier(self, w: Vector, gradient: Vector) -> float:
        """The strength of the L1 penalty that would hold w where it is; 0 inside the ball."""
        xp = array_namespace(w)
        if not self._on_surface(w):
            return 0.0
        slope = float(xp.sum(gradient * xp.sign(w)))
        return _multiplier(slope, int(xp.sum(xp.astype(w != 0, xp.int64))), xp.abs(gradient)[w == 0])

    def min_norm_subgradient(self, w: Vector, gradient: Vector) -> Vector:
        """That of L1(μ), μ the multiplier."""
        xp = array_namespace(w)
        mu = self.multiplier(w, gradient)
        excess = xp.sign(gradient) * xp.maximum(xp.abs(gradient) - mu, xp.zeros_like(gradient))
        return xp.where(w != 0, gradient + mu * xp.sign(w), excess if mu > 0 else gradient)


@dataclass(frozen=True)
class GroupL2Ball(_Ball):
    """The constraint ``Σ_G ‖w_G‖₂ ≤ radius``; `groups` as in :class:`crfkit.penalties.GroupL2`.

    >>> import numpy as np
    >>> GroupL2Ball(2.5, [0, 0, 1]).prox(np.array([3.0, 4.0, 1.0]), step=1.0).round(12).tolist()
    [1.5, 2.0, 0.0]
    """

    radius: float
    groups: Any  # a Groups, or what it is made from

    @classmethod
    def examples(cls, size: int) -> Sequence[Penalty]:
        return (cls(0.7, pairs_and_one(size)),)

    def __post_init__(self) -> None:
        self._check_radius()
        if not isinstance(self.groups, Groups):
            object.__setattr__(self, "groups", Groups(self.groups))

    @property
    def name(self) -> str:
        return f"GroupL2Ball({self.radius:g}, {len(self.groups)} groups)"

    def _sizes(self, w: Vector) -> Vector:
        return self.groups.reduce(lengths, w)

    def prox(self, w: Vector, step: float) -> Vector:
        """The projection: the lengths onto the L1 ball, the directions unchanged."""
        xp = array_namespace(w)
        size = self._sizes(w)
        if float(xp.sum(size)) <= self.radius:
            return 1.0 * w
        less = L1Ball(self.radius).prox(size, step)
        ratio = less / xp.where(size > 0, size, xp.ones_like(size))
        near: Vector = self.groups.map_with(lambda x, a: (x * a, a), w, ratio)[0]
        return near

    def multiplier(self, w: Vector, gradient: Vector) -> float:
        """The strength of the GroupL2 penalty that would hold w where it is; 0 inside the ball."""
        xp = array_namespace(w)
        if not self._on_surface(w):
            return 0.0
        size = self._sizes(w)
        slopes = self.groups.reduce(lambda x: xp.sum(x, axis=1), w * gradient)
        used = size > 0
        slope = float(xp.sum(slopes[used] / size[used]))
        return _multiplier(slope, int(xp.sum(xp.astype(used, xp.int64))), self._sizes(gradient)[~used])

    def min_norm_subgradient(self, w: Vector, gradient: Vector) -> Vector:
        """That of GroupL2(μ), μ the multiplier."""
        mu = self.multiplier(w, gradient)
        return GroupL2(mu, self.groups).min_norm_subgradient(w, gradient) if mu > 0 else 1.0 * gradient
