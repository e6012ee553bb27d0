"""A penalty of the blocks of a loss that can grow."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from crfkit.errors import CapabilityError, ParameterError
from crfkit.parameters import Parameters
from crfkit.penalties.group import GroupL2, GroupLinf
from crfkit.penalties.l1 import L1
from crfkit.penalties.none import NoPenalty
from crfkit.protocols import BlockNorm, Capability, Kind, Penalty, RestPenalty, Selection, SmoothPenalty, Vector

DUAL_NORMS: dict[Any, BlockNorm] = {
    L1: BlockNorm.MAX,
    GroupL2: BlockNorm.L2,
    GroupLinf: BlockNorm.L1,
}  # of a block's gradient, against strength


@dataclass(frozen=True)
class ByBlock(Parameters, Penalty):
    """One penalty for the blocks that a loss may switch on (edges, attributes), another for the weights always on.

    Parameters
    ----------
    kind : L1, GroupL2 or GroupLinf; the groups are the blocks.
    strength : of that.
    rest : the penalty of weights that belong to no block (biases, transitions); None: none.

    It is bound to a loss with the capability "candidates" by `bind`, which solvers call whenever the loss grows.

    >>> from crfkit.penalties import L2, GroupLinf
    >>> ByBlock(GroupLinf, 2.0, rest=L2(0.1)).name
    'GroupLinf(2) of blocks, L2(0.1) of the rest'
    """

    kind: Any
    strength: float = 1.0
    rest: Any = None

    def __post_init__(self) -> None:
        if self.kind not in DUAL_NORMS:
            raise ParameterError(f"the kind must be one of L1, GroupL2, GroupLinf, not {self.kind!r}")
        if not (math.isfinite(self.strength) and self.strength >= 0):
            raise ParameterError(f"the strength of blocks must be a finite number >= 0, not {self.strength!r}")
        if self.rest is not None and (isinstance(self.rest, type) or not isinstance(self.rest, Penalty)):
            raise ParameterError(f"the penalty of the rest must be one such as L2(1.0), not {self.rest!r}")

    @property
    def name(self) -> str:
        blocks = f"{self.kind.__name__}({self.strength:g}) of blocks"
        return blocks if self.rest is None else f"{blocks}, {self.rest.name} of the rest"

    def bind(self, loss: Any) -> BoundByBlock:
        """The same on the weights of this loss."""
        if Capability.CANDIDATES not in loss.capabilities:
            raise CapabilityError(
                f"{self.name} is of blocks that can be switched on, which the {loss.name} does not have"
            )
        return BoundByBlock(self, np.asarray(loss.block_index))

    def at(self, strength: float) -> ByBlock:
        """The same with another strength of the blocks."""
        return ByBlock(self.kind, strength, self.rest)

    def value(self, w: Vector) -> float:
        raise ParameterError(f"{self.name} does not know its blocks yet: use bind(loss)")

    def split(self) -> tuple[SmoothPenalty | None, RestPenalty | None]:
        raise ParameterError(f"{self.name} does not know its blocks yet: use bind(loss)")


class BoundByBlock(Penalty):
    """A :class:`ByBlock` on the weights of one loss."""

    def __init__(self, penalty: ByBlock, index: Any) -> None:
        self.penalty = penalty
        self.index = index  # [n]: the block of each weight, −1 for the rest
        places = np.flatnonzero(index >= 0), np.flatnonzero(index < 0)
        other = penalty.rest if penalty.rest is not None else NoPenalty()
        blocks = L1(penalty.strength) if penalty.kind is L1 else penalty.kind(penalty.strength, index[places[0]])
        self._parts: tuple[tuple[Any, Any], ...] = ((places[0], blocks), (places[1], other))

    @property
    def name(self) -> str:
        return self.penalty.name

    @property
    def strength(self) -> float:
        return self.penalty.strength

    def bind(self, loss: Any) -> BoundByBlock:
        return self.penalty.bind(loss)

    def at(self, strength: float) -> BoundByBlock:
        return BoundByBlock(self.penalty.at(strength), self.index)

    def value(self, w: Vector) -> float:
        return float(sum(part.value(w[place]) for place, part in self._parts))

    def critical_strength(self, gradient: Vector) -> float:
        """The least strength at which zero is optimal for all blocks, from the gradient there."""
        place, part = self._parts[0]
        return float(part.critical_strength(gradient[place])) if len(place) else 0.0

    def split(self) -> tuple[SmoothPenalty | None, RestPenalty | None]:
        (blocks, first), (others, second) = self._parts
        smooth, corners = second.split()
        rest = _Rest(((blocks, first), *(((others, corners),) if corners is not None else ())), self.strength)
        return (None if smooth is None else _Smooth(others, smooth)), rest


@dataclass(frozen=True)
class _Smooth(SmoothPenalty):
    """The smooth part of the penalty of the rest."""

    place: Any
    part: Any

    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.PARTS})

    @property
    def name(self) -> str:
        return f"{self.part.name} of the rest"

    def value(self, w: Vector) -> float:
        return float(self.part.value(w[self.place]))

    def add_gradient(self, w: Vector, gradient: Vector) -> None:
        some = gradient[self.place]
        self.part.add_gradient(w[self.place], some)
        gradient[self.place] = some

    def add_hessp(self, w: Vector, v: Vector, product: Vector) -> None:
        some = product[self.place]
        self.part.add_hessp(w[self.place], v[self.place], some)
        product[self.place] = some

    def add_hess_diag(self, w: Vector, diagonal: Vector) -> None:
        some = diagonal[self.place]
        self.part.add_hess_diag(w[self.place], some)
        diagonal[self.place] = some


@dataclass(frozen=True)
class _Rest(RestPenalty):
    """What has corners: that of the blocks and, where there is one, that of the rest."""

    parts: tuple[tuple[Any, Any], ...]
    strength: float = field()  # of the blocks

    @property
    def kinds(self) -> frozenset[Kind]:
        single = all(isinstance(part, L1) for _, part in self.parts)
        return frozenset({Kind.PROX, Kind.BY_BLOCK, *((Kind.ORTHANTS,) if single else ())})

    @property
    def name(self) -> str:
        return ", ".join(part.name for _, part in self.parts)

    @property
    def selection(self) -> Selection:
        return Selection(DUAL_NORMS[type(self.parts[0][1])], self.strength)

    def restricted(self, places: Any) -> RestPenalty:
        part: RestPenalty = self.parts[0][1]
        return part

    def value(self, w: Vector) -> float:
        return float(sum(part.value(w[place]) for place, part in self.parts))

    def min_norm_subgradient(self, w: Vector, gradient: Vector) -> Vector:
        least = 1.0 * gradient
        for place, part in self.parts:
            least[place] = part.min_norm_subgradient(w[place], gradient[place])
        return least

    def prox(self, w: Vector, step: float) -> Vector:
        near = 1.0 * w
        for place, part in self.parts:
            near[place] = part.prox(w[place], step)
        return near
