from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from crfkit.arrays import namespace
from crfkit.errors import ParameterError
from crfkit.parameters import Parameters
from crfkit.penalties.none import NoPenalty
from crfkit.protocols import EpigraphPenalty, Kind, Loss, Penalty, RestPenalty, SmoothPenalty, Vector

Part = tuple[str, slice, Any]  # name of the block, its weights, its penalty


@dataclass(frozen=True)
class Blockwise(Parameters, Penalty):
    """A penalty of its own for each named block of the weights, e.g. another strength for edges than for nodes.

    Parameters
    ----------
    penalties : penalties by names of `layout`; blocks that are not named are not penalised.
    layout : the blocks, as `loss.layout`; None: those of the loss that it is minimised with (`bind`).

    >>> from crfkit.penalties import L1, L2
    >>> Blockwise({"node": L1(0.1), "edge": L1(1.0)}).name
    'node L1(0.1), edge L1(1)'
    >>> Blockwise({"node": L1(0.1), "edge": L2(1.0)}, {"node": slice(0, 4), "edge": slice(4, 6)}).name
    'node L1(0.1), edge L2(1)'
    """

    penalties: Any  # kept as ((name, penalty), …)
    layout: Any = None  # kept as ((name, start, stop), …)

    def __post_init__(self) -> None:
        penalties, layout = dict(self.penalties), self.layout
        if isinstance(layout, Mapping):
            layout = tuple((name, place.start or 0, place.stop) for name, place in layout.items())
        known = None if layout is None else [name for name, _, _ in layout]
        for name, penalty in penalties.items():
            if known is not None and name not in known:
                raise ParameterError(f"there is no block {name!r}; the blocks are {', '.join(known)}")
            if isinstance(penalty, type) or not isinstance(penalty, Penalty):
                raise ParameterError(f"the penalty of {name!r} must be one such as L1(1.0), not {penalty!r}")
        object.__setattr__(self, "penalties", tuple(penalties.items()))
        object.__setattr__(self, "layout", layout)

    @property
    def name(self) -> str:
        return ", ".join(f"{name} {penalty.name}" for name, penalty in self.penalties) or NoPenalty().name

    def bind(self, loss: Loss) -> Blockwise:
        """The same with the blocks of a loss, unless it has its own."""
        return self if self.layout is not None else Blockwise(dict(self.penalties), loss.layout)

    def _parts(self) -> Iterator[Part]:
        if self.layout is None:
            raise ParameterError(f"{self.name} does not know its blocks yet: use bind(loss)")
        places = {name: slice(start, stop) for name, start, stop in self.layout}
        return ((name, places[name], penalty) for name, penalty in self.penalties)

    def value(self, w: Vector) -> float:
        return float(sum(penalty.value(w[place]) for _, place, penalty in self._parts()))

    def split(self) -> tuple[SmoothPenalty | None, RestPenalty | None]:
        halves: tuple[list[Part], list[Part]] = ([], [])
        for name, place, penalty in self._parts():
            for half, part in zip(halves, penalty.split(), strict=True):
                if part is not None:
                    half.append((name, place, part))
        smooth, rest = (tuple(half) for half in halves)
        return (_SmoothBlocks(smooth) if smooth else None), (_RestBlocks(rest) if rest else None)

    @property
    def strength(self) -> float:
        """The largest of the parts that have one; `at` keeps their proportions."""
        return max((penalty.strength or 0.0 for _, penalty in self.penalties), default=0.0)

    def at(self, strength: float) -> Blockwise:
        """The same proportions with another largest strength."""
        if self.strength == 0:
            raise ParameterError(f"{self.name} has no strength that could be scaled")
        factor = strength / self.strength
        scaled = {name: p if p.strength is None else p.at(factor * p.strength) for name, p in self.penalties}
        return Blockwise(scaled, self.layout)

    def critical_strength(self, gradient: Vector) -> float:
        """The least strength at which zero is optimal for all blocks whose penalty has such a strength."""
        least = 0.0
        for _, place, penalty in self._parts():
            if penalty.strength:
                found = penalty.critical_strength(gradient[place])
                least = max(least, (found or 0.0) * self.strength / penalty.strength)
        return least


@dataclass(frozen=True)
class _Blocks(Penalty):
    parts: tuple[Part, ...]

    @property
    def name(self) -> str:
        return ", ".join(f"{name} {part.name}" for name, _, part in self.parts)

    def value(self, w: Vector) -> float:
        return float(sum(part.value(w[place]) for _, place, part in self.parts))


class _SmoothBlocks(_Blocks, SmoothPenalty):
    kinds = frozenset({Kind.PARTS})

    def add_gradient(self, w: Vector, gradient: Vector) -> None:
        for _, place, part in self.parts:
            part.add_gradient(w[place], gradient[place])

    def add_hessp(self, w: Vector, v: Vector, product: Vector) -> None:
        for _, place, part in self.parts:
            part.add_hessp(w[place], v[place], product[place])

    def add_hess_diag(self, w: Vector, diagonal: Vector) -> None:
        for _, place, part in self.parts:
            part.add_hess_diag(w[place], diagonal[place])


class _RestBlocks(_Blocks, EpigraphPenalty):
    @property
    def kinds(self) -> frozenset[Kind]:
        """What all parts can do; not "l1", which has one strength for all weights."""
        return frozenset.intersection(*(part.kinds for _, _, part in self.parts)) - {Kind.L1}

    @property
    def strength(self) -> float:
        """The largest."""
        return max(1.0 if part.strength is None else part.strength for _, _, part in self.parts)

    def min_norm_subgradient(self, w: Vector, gradient: Vector) -> Vector:
        least = 1.0 * gradient
        for _, place, part in self.parts:
            least[place] = part.min_norm_subgradient(w[place], gradient[place])
        return least

    def prox(self, w: Vector, step: float) -> Vector:
        near = 1.0 * w
        for _, place, part in self.parts:
            near[place] = part.prox(w[place], step)
        return near

    def epigraph_start(self, w: Vector) -> tuple[Vector, Vector]:
        """(α, its cost) of all parts, one after another."""
        xp = namespace(w)
        starts = [part.epigraph_start(w[place]) for _, place, part in self.parts]
        return xp.concat([alpha for alpha, _ in starts]), xp.concat([cost for _, cost in starts])

    def project_epigraph(self, w: Vector, alpha: Vector) -> tuple[Vector, Vector]:
        """Part by part: each knows how many α it has."""
        near, radii = 1.0 * w, 1.0 * alpha
        begin = 0
        for _, place, part in self.parts:
            end = begin + part.epigraph_size(place.stop - place.start)
            near[place], radii[begin:end] = part.project_epigraph(w[place], alpha[begin:end])
            begin = end
        return near, radii

    def epigraph_size(self, n_weights: int) -> int:
        return sum(part.epigraph_size(place.stop - place.start) for _, place, part in self.parts)
