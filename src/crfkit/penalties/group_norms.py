"""Penalties that make whole groups of weights zero at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from array_api_compat import array_namespace

from crfkit._checks import check_strength
from crfkit._compiled import _core
from crfkit.arrays import is_native, namespace
from crfkit.errors import CapabilityError, ParameterError
from crfkit.parameters import Parameters
from crfkit.penalties.group_index import Groups, LossBlocks, pairs_and_one
from crfkit.penalties.group_rows import (
    l1_cone,
    l2_cone,
    lengths,
    linf_cone,
    project_ball,
    project_simplex,
    shrink,
    threshold,
)
from crfkit.penalties.l1 import L1
from crfkit.protocols import BlockNorm, Capability, EpigraphPenalty, Kind, Loss, Penalty, Place, Selection, Vector

KINDS = frozenset({Kind.GROUP, Kind.PROX, Kind.EPIGRAPH})

Norm = TypeVar("Norm", bound="GroupNorm")


@dataclass(frozen=True)
class GroupNorm(Parameters, EpigraphPenalty, ABC):
    """``strength · Σ_G ‖w_G‖`` in one of three norms."""

    strength: float = field()  # no default, though the base has one
    groups: Any = None  # a Groups, or what it is made from; None: the blocks of the loss that it is bound to

    @classmethod
    def examples(cls, size: int) -> Sequence[Penalty]:
        return tuple(cls(strength, pairs_and_one(size)) for strength in (0.4, 2.0))

    block_norm: ClassVar[BlockNorm]  # the dual of the norm of a group

    def __post_init__(self) -> None:
        check_strength(type(self).__name__, self.strength)
        if self.groups is not None and not isinstance(self.groups, Groups):
            object.__setattr__(self, "groups", Groups(self.groups))

    @property
    def name(self) -> str:
        name = f"{type(self).__name__}({self.strength:g}"
        return f"{name}) of blocks" if self._of_blocks else f"{name}, {len(self.groups)} groups)"

    @property
    def _of_blocks(self) -> bool:
        """Whether the groups are the blocks of a loss and grow with it."""
        return self.groups is None or isinstance(self.groups, LossBlocks)

    @property
    def _groups(self) -> Groups:
        if self.groups is None:
            raise ParameterError(f"{self.name} does not know its groups yet: give groups, or use bind(loss)")
        groups: Groups = self.groups
        return groups

    @property
    def kinds(self) -> frozenset[Kind]:
        return KINDS | {Kind.BY_BLOCK} if self._of_blocks else KINDS

    @property
    def selection(self) -> Selection | None:
        return Selection(self.block_norm, self.strength) if self._of_blocks else None

    def bind(self, loss: Loss) -> GroupNorm:
        """Return the same with the blocks of a loss as groups, unless it was given others."""
        if not self._of_blocks:
            return self
        if Capability.CANDIDATES not in loss.capabilities:
            raise CapabilityError(
                f"{self.name} needs blocks that can be switched on, which the {loss.name} does not have: give groups"
            )
        return type(self)(self.strength, LossBlocks(loss.block_index))  # type: ignore[attr-defined]

    def at(self: Norm, strength: float) -> Norm:
        """Return the same groups with another strength."""
        return type(self)(strength, self.groups)

    def restricted(self: Norm, places: Place) -> Norm:
        return type(self)(self.strength, type(self._groups)(self._groups.ids[places]))

    @abstractmethod
    def _norms(self, w: Vector) -> Vector:
        """[groups]"""

    @abstractmethod
    def dual_norm(self, gradient: Vector) -> float: ...

    def value(self, w: Vector) -> float:
        return self.strength * float(namespace(w).sum(self._norms(w)))

    def critical_strength(self, gradient: Vector) -> float:
        """The least strength at which w = 0 is optimal for the weights of groups, from the gradient there."""
        return self.dual_norm(gradient)

    def epigraph_size(self, n_weights: int) -> int:
        """How many α there are for so many weights."""
        return len(self._groups)

    def epigraph_start(self, w: Vector) -> tuple[Vector, Vector]:
        """(α [groups], the norms of the groups of w; the cost of each α)."""
        alpha = self._norms(w)
        return alpha, 0.0 * alpha + self.strength


@dataclass(frozen=True)
class GroupL2(GroupNorm):
    """``strength · Σ_G ‖w_G‖₂`` (Yuan & Lin 2006): a group is zero as a whole, or dense.

    `groups` is an integer for every weight, −1 for weights that are not penalised, or a list of slices or of lists of
    indices. None: the blocks of the loss that it is minimised with (edges, attributes), which may be switched on later;
    weights of no block are not penalised.

    >>> import numpy as np
    >>> GroupL2(1.0, [slice(0, 2), slice(2, 4)]).prox(np.array([3.0, 4.0, 0.1, 0.2]), step=1.0).round(9).tolist()
    [2.4, 3.2, 0.0, 0.0]
    """

    block_norm: ClassVar[BlockNorm] = BlockNorm.L2

    def _norms(self, w: Vector) -> Vector:
        return self._groups.reduce(lengths, w)

    def min_norm_subgradient(self, w: Vector, gradient: Vector) -> Vector:
        """``g + s·w/‖w‖`` where a group is not zero; where it is, what of ‖g‖ exceeds the strength."""

        def least(x: Vector, g: Vector) -> Vector:
            length = lengths(x)
            xp = array_namespace(x)
            direction = x / xp.where(length > 0, length, xp.ones_like(length))
            return xp.where(length > 0, g + self.strength * direction, shrink(g, self.strength))

        return self._groups.map(least, w, gradient)

    def prox(self, w: Vector, step: float) -> Vector:
        """Return ``x·max(1 − step·strength/‖x‖, 0)`` for every group."""
        return self._groups.map(lambda x: shrink(x, step * self.strength), w)

    def project_epigraph(self, w: Vector, alpha: Vector) -> tuple[Vector, Vector]:
        """The nearest (w, α) with ‖w_G‖₂ ≤ α_G."""
        near: tuple[Vector, Vector] = self._groups.map_with(l2_cone, w, alpha)
        return near

    def dual_norm(self, gradient: Vector) -> float:
        """max_G ‖g_G‖₂"""
        return _largest(self._groups.reduce(lengths, gradient))


@dataclass(frozen=True)
class GroupLinf(GroupNorm):
    """``strength · Σ_G max_{j∈G} |w_j|``: within a group that is not zero, several weights have the largest size.

    `groups` as in :class:`GroupL2`.

    >>> import numpy as np
    >>> GroupLinf(1.0, [0, 0, 1, 1]).prox(np.array([3.0, -4.0, 0.1, 0.2]), step=2.0).tolist()
    [2.5, -2.5, 0.0, 0.0]
    """

    block_norm: ClassVar[BlockNorm] = BlockNorm.L1

    def _norms(self, w: Vector) -> Vector:
        if is_native(w):
            self._groups.check(w)
            return _core.norms_linf(w, self._groups.native)
        return self._groups.reduce(_sizes, w)

    def min_norm_subgradient(self, w: Vector, gradient: Vector) -> Vector:
        """The sub-differential of a group is the L1 ball of radius s at zero; elsewhere s times the convex hull of
        sgn(w_j)·e_j over the largest weights j: the sub-gradient is −g less its projection onto it."""
        if is_native(w, gradient):
            self._groups.check(w)
            return _core.least_subgradient_linf(w, gradient, self.strength, self._groups.native)

        def least(x: Vector, g: Vector) -> Vector:
            xp = array_namespace(x)
            size = xp.abs(x)
            top = xp.max(size, axis=1, keepdims=True)
            inside = g - project_ball(g, self.strength)
            largest = size == top
            h = -1.0 * xp.sign(x) * g
            on_face = xp.sign(x) * (project_simplex(h, largest, self.strength) - h)
            return xp.where(top > 0, xp.where(largest, on_face, g), inside)

        return self._groups.map(least, w, gradient)

    def prox(self, w: Vector, step: float) -> Vector:
        """``x − (projection of x onto the L1 ball of radius step·strength)``: sizes are cut off at one threshold."""
        radius = step * self.strength

        def cut(x: Vector) -> Vector:
            xp = array_namespace(x)
            size = xp.abs(x)
            return xp.sign(x) * xp.minimum(size, threshold(size, radius))

        return self._groups.map(cut, w)

    def project_epigraph(self, w: Vector, alpha: Vector) -> tuple[Vector, Vector]:
        """The nearest (w, α) with |w_k| ≤ α_G for all k of every group G; in the core, for vectors of NumPy."""
        if is_native(w, alpha):
            self._groups.check(w)
            return _core.project_epigraph_linf(w, alpha, self._groups.native)
        near: tuple[Vector, Vector] = self._groups.map_with(linf_cone, w, alpha)
        return near

    def dual_norm(self, gradient: Vector) -> float:
        """max_G ‖g_G‖₁"""
        return _largest(self._groups.reduce(_sums, gradient))


@dataclass(frozen=True)
class GroupL1(GroupNorm):
    """``strength · Σ_G ‖w_G‖₁``: L1 on the weights of groups, the third of the family; no group acts as a whole.

    `groups` as in :class:`GroupL2`.

    >>> import numpy as np
    >>> GroupL1(1.0, [0, 0, -1]).prox(np.array([3.0, -0.5, 0.1]), step=1.0).tolist()
    [2.0, -0.0, 0.1]
    """

    block_norm: ClassVar[BlockNorm] = BlockNorm.MAX

    def _norms(self, w: Vector) -> Vector:
        return self._groups.reduce(_sums, w)

    def min_norm_subgradient(self, w: Vector, gradient: Vector) -> Vector:
        """``g + s·sgn(w)`` where w ≠ 0; where w = 0, what of g exceeds the strength."""
        return self._groups.map(L1(self.strength).min_norm_subgradient, w, gradient)

    def prox(self, w: Vector, step: float) -> Vector:
        """Soft thresholding of the weights of groups."""
        return self._groups.map(lambda x: L1(self.strength).prox(x, step), w)

    def project_epigraph(self, w: Vector, alpha: Vector) -> tuple[Vector, Vector]:
        """The nearest (w, α) with ‖w_G‖₁ ≤ α_G."""
        near: tuple[Vector, Vector] = self._groups.map_with(l1_cone, w, alpha)
        return near

    def dual_norm(self, gradient: Vector) -> float:
        """max_G ‖g_G‖_∞"""
        return _largest(self._groups.reduce(_sizes, gradient))


def _sizes(x: Vector) -> Vector:
    xp = array_namespace(x)
    return xp.max(xp.abs(x), axis=1)


def _sums(x: Vector) -> Vector:
    xp = array_namespace(x)
    return xp.sum(xp.abs(x), axis=1)


def _largest(norms: Vector) -> float:
    return float(array_namespace(norms).max(norms)) if norms.shape[0] else 0.0
