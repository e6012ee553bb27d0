"""Penalties that differ between parts of the weights: by the names of a loss, or by what a loss may switch on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crfkit._checks import check_strength
from crfkit.errors import CapabilityError, ParameterError
from crfkit.parameters import Parameters
from crfkit.penalties.elastic_net import ElasticNet
from crfkit.penalties.group_norms import GroupL2, GroupNorm
from crfkit.penalties.l1 import L1
from crfkit.penalties.l2 import L2
from crfkit.penalties.none import NoPenalty
from crfkit.penalties.parts import Part, Parts, Portion, tidy
from crfkit.protocols import Capability, GrowingLoss, Loss, NonsmoothPenalty, Penalty, SmoothPenalty, Vector


@dataclass(frozen=True)
class Blockwise(Parameters, Penalty):
    """A penalty of its own for each named block of the weights, e.g. another strength for edges than for nodes.

    Parameters
    ----------
    penalties : penalties by names of `layout`; blocks that are not named are not penalised.
    layout : the blocks, as `loss.layout`: slices, or ascending indices of weights; None: those of the loss that it is
        minimised with (`bind`).

    >>> from crfkit.penalties import L1, L2, GroupL2
    >>> Blockwise({"node": L1(0.1), "edge": L1(1.0)}).name
    'node L1(0.1), edge L1(1)'
    >>> Blockwise({"node": L1(0.1), "edge": L2(1.0)}, {"node": slice(0, 4), "edge": slice(4, 6)}).name
    'node L1(0.1), edge L2(1)'
    >>> Blockwise({"even": L2(1.0)}, {"even": [0, 2]}).value(np.array([1.0, 5.0, 3.0]))
    5.0
    >>> Blockwise({"node": L2(0.1), "edge": GroupL2(1.0)}).name  # a group for each edge that can be switched on
    'node L2(0.1), edge GroupL2(1) of blocks'
    """

    penalties: Any  # kept as ((name, penalty), …)
    layout: Any = None  # kept as ((name, start, stop), …), or (name, indices) of weights that are no slice

    @classmethod
    def examples(cls, size: int) -> Sequence[Penalty]:
        layout = {"first": slice(0, size // 2), "second": slice(size // 2, size)}
        return cls({"first": L1(0.4), "second": L2(0.5)}, layout), cls({"second": ElasticNet(0.4, 1.5)}, layout)

    def __post_init__(self) -> None:
        penalties, layout = dict(self.penalties), self.layout
        if isinstance(layout, Mapping):
            layout = tuple((name, *_kept(place)) for name, place in layout.items())
        known = None if layout is None else [name for name, *_ in layout]
        for name, penalty in penalties.items():
            if known is not None and name not in known:
                raise ParameterError(f"there is no block {name!r}; the blocks are {', '.join(known)}")
            if not isinstance(penalty, Penalty):
                raise ParameterError(f"the penalty of {name!r} must be a penalty such as L1(1.0), not {penalty!r}")
        object.__setattr__(self, "penalties", tuple(penalties.items()))
        object.__setattr__(self, "layout", layout)

    @property
    def name(self) -> str:
        return ", ".join(f"{name} {penalty.name}" for name, penalty in self.penalties) or NoPenalty().name

    def bind(self, loss: Loss) -> Parts:
        """Return the same of the weights of a loss, with its blocks unless there is a layout."""
        if self.layout is not None:
            return self._parts(loss)
        growing = loss.growing if isinstance(loss, GrowingLoss) else ()
        return Parts(self, Blockwise(dict(self.penalties), loss.layout)._parts(loss).parts, loss, growing)

    def _parts(self, loss: Loss | None = None) -> Parts:
        if self.layout is None:
            raise ParameterError(f"{self.name} does not know its blocks yet: use bind(loss)")
        places = {name: slice(*kept) if len(kept) == 2 else np.array(kept[0]) for name, *kept in self.layout}
        parts = (
            Part(name, places[name], penalty if loss is None else penalty.bind(Portion(loss, places[name])))
            for name, penalty in self.penalties
        )
        return Parts(self, tuple(parts), loss)

    def value(self, w: Vector) -> float:
        return self._parts().value(w)

    def split(self) -> tuple[SmoothPenalty | None, NonsmoothPenalty | None]:
        return self._parts().split()

    @property
    def strength(self) -> float:
        """The largest of the parts that have one; `at` keeps their proportions."""
        return max((penalty.strength or 0.0 for _, penalty in self.penalties), default=0.0)

    def at(self, strength: float) -> Blockwise:
        """Return the same proportions with another largest strength."""
        if self.strength == 0:
            raise ParameterError(f"{self.name} has no strength that could be scaled")
        factor = strength / self.strength
        scaled = {name: p if p.strength is None else p.at(factor * p.strength) for name, p in self.penalties}
        return Blockwise(scaled, self.layout)

    def critical_strength(self, gradient: Vector) -> float | None:
        """Return the least strength at which zero is optimal for all blocks whose penalty has such a strength."""
        return self._parts().critical_strength(gradient)


def _kept(place: Any) -> tuple[Any, ...]:
    """Return (start, stop) of a slice or of indices that lie one after another, otherwise a tuple with the indices."""
    if not isinstance(place, slice):
        place = tidy(np.asarray(place, dtype=np.int64))
    return (place.start or 0, place.stop) if isinstance(place, slice) else (tuple(place.tolist()),)


@dataclass(frozen=True)
class ByBlock(Parameters, Penalty):
    """One penalty for the blocks that a loss may switch on (edges, attributes), another for the weights always on.

    Parameters
    ----------
    kind : L1, GroupL2 or GroupLinf; the groups are the blocks.
    strength : of that.
    rest : the penalty of weights that belong to no block (biases, transitions); None: none.

    It is for losses with the capability "candidates", and for every solver that takes the kind: those that let a loss
    grow (grafting-light) as well as those that minimise over the blocks that are on (agpm, fista).

    >>> from crfkit.penalties import L2, GroupLinf
    >>> ByBlock(GroupLinf, 2.0, rest=L2(0.1)).name
    'GroupLinf(2) of blocks, L2(0.1) of the rest'
    """

    kind: Callable[..., Penalty]
    strength: float = 1.0
    rest: Penalty | None = None

    @classmethod
    def examples(cls, size: int) -> Sequence[Penalty]:
        return cls(L1, 0.4), cls(GroupL2, 2.0, L2(0.5))

    def __post_init__(self) -> None:
        if not (isinstance(self.kind, type) and issubclass(self.kind, (L1, GroupNorm))):
            raise ParameterError(f"the kind must be one of L1, GroupL1, GroupL2, GroupLinf, not {self.kind!r}")
        check_strength("blocks", self.strength)
        if self.rest is not None and not isinstance(self.rest, Penalty):
            raise ParameterError(f"rest must be a penalty such as L2(1.0), not {self.rest!r}")

    @property
    def name(self) -> str:
        blocks = f"{self.kind.__name__}({self.strength:g}) of blocks"
        return blocks if self.rest is None else f"{blocks}, {self.rest.name} of the rest"

    def bind(self, loss: Loss) -> Parts:
        """Return the same of the weights of this loss."""
        if Capability.CANDIDATES not in loss.capabilities:
            raise CapabilityError(
                f"{self.name} needs blocks that can be switched on, which the {loss.name} does not have"
            )
        index = np.asarray(loss.block_index)  # type: ignore[attr-defined]
        blocks, others = tidy(np.flatnonzero(index >= 0)), tidy(np.flatnonzero(index < 0))
        parts = [Part("blocks", blocks, self.kind(self.strength).bind(Portion(loss, blocks)))]
        if self.rest is not None:
            parts.append(Part("rest", others, self.rest.bind(Portion(loss, others)), scales=False))
        return Parts(self, tuple(parts), loss, ("blocks",))

    def at(self, strength: float) -> ByBlock:
        """Return the same with another strength of the blocks."""
        return ByBlock(self.kind, strength, self.rest)

    def value(self, w: Vector) -> float:
        raise self._unbound()

    def split(self) -> tuple[SmoothPenalty | None, NonsmoothPenalty | None]:
        raise self._unbound()

    def _unbound(self) -> ParameterError:
        return ParameterError(f"{self.name} does not know its blocks yet: use bind(loss)")
