"""Sums of penalties, each of some of the weights: what Blockwise and ByBlock are on the weights of a loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from crfkit.arrays import namespace, put
from crfkit.protocols import (
    Capability,
    EpigraphPenalty,
    GrowingLoss,
    Kind,
    Loss,
    NonsmoothPenalty,
    Penalty,
    Place,
    Selection,
    SmoothPenalty,
    Vector,
)

SINGLE = frozenset({Kind.L1, Kind.ORTHANTS})  # non-smooth in single weights


@dataclass(frozen=True)
class Part:
    """A penalty of some of the weights."""

    label: str
    place: Place  # a slice, or indices in ascending order
    penalty: Any  # of the weights there
    scales: bool = True  # whether the strength of the whole is that of this part, in proportion

    @property
    def name(self) -> str:
        return f"{self.label} {self.penalty.name}"

    @property
    def indices(self) -> Place:
        return np.arange(self.place.start, self.place.stop) if isinstance(self.place, slice) else self.place

    @property
    def size(self) -> int:
        return self.place.stop - self.place.start if isinstance(self.place, slice) else len(self.place)


def tidy(indices: Vector) -> Place:
    """Return a slice where the indices lie one after another: it makes views, which take no time."""
    if len(indices) and indices[-1] - indices[0] == len(indices) - 1:
        return slice(int(indices[0]), int(indices[-1]) + 1)
    return indices


class Portion(GrowingLoss):
    """The view of a loss that the penalty of a part is bound to: the blocks that its weights belong to."""

    def __init__(self, loss: Any, place: Place) -> None:
        self.loss = loss
        self.place = place

    @property
    def name(self) -> str:
        return str(self.loss.name)

    @property
    def capabilities(self) -> frozenset[Capability]:
        found: frozenset[Capability] = self.loss.capabilities
        return found

    @property
    def layout(self) -> Mapping[str, slice]:
        return {}

    @property
    def block_index(self) -> Vector:
        return np.asarray(self.loss.block_index)[self.place]


@dataclass(frozen=True, eq=False)
class Parts(Penalty):
    """A penalty of several parts on the weights of one loss."""

    origin: Penalty  # the penalty that was bound
    parts: tuple[Part, ...]
    loss: Loss | None = None  # that it is bound to
    growing: tuple[str, ...] = ()  # labels of the parts that hold all blocks of a loss that can grow

    @property
    def name(self) -> str:
        return self.origin.name

    @property
    def strength(self) -> float | None:
        return self.origin.strength

    def bind(self, loss: Loss) -> Penalty:
        return self.origin.bind(loss)

    def at(self, strength: float) -> Penalty:
        other = self.origin.at(strength)
        return other if self.loss is None else other.bind(self.loss)

    def value(self, w: Vector) -> float:
        return float(sum(part.penalty.value(w[part.place]) for part in self.parts))

    def critical_strength(self, gradient: Vector) -> float | None:
        """Return the least strength at which zero is optimal for all parts whose penalty has such a strength."""
        whole: Any = self.strength
        least: float | None = None
        for part in self.parts:
            mine = part.penalty.strength
            if not part.scales or (mine != whole and not mine):
                continue
            found = part.penalty.critical_strength(gradient[part.place])
            if found is not None:
                least = max(least or 0.0, found * (1.0 if mine == whole else whole / mine))
        return least

    def split(self) -> tuple[SmoothPenalty | None, NonsmoothPenalty | None]:
        halves = [(part, *part.penalty.split()) for part in self.parts]
        smooth = tuple(replace(part, penalty=half) for part, half, _ in halves if half is not None)
        rest = tuple(replace(part, penalty=half) for part, _, half in halves if half is not None)
        return (SmoothParts(smooth) if smooth else None), (
            NonsmoothParts(rest, self._selection(rest)) if rest else None
        )

    def _selection(self, rest: tuple[Part, ...]) -> Selection | None:
        """The rule for candidates: that of the parts that they enter, if it is one and the same."""
        rules = {part.label: part.penalty.selection for part in rest if part.label in self.growing}
        same = len(rules) == len(self.growing) and len(set(rules.values())) == 1
        return next(iter(rules.values())) if same else None


@dataclass(frozen=True, eq=False)
class _Sum(Penalty):
    parts: tuple[Part, ...]

    @property
    def name(self) -> str:
        return ", ".join(part.name for part in self.parts)

    def value(self, w: Vector) -> float:
        return float(sum(part.penalty.value(w[part.place]) for part in self.parts))


class SmoothParts(_Sum, SmoothPenalty):
    """The smooth parts."""

    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.PARTS})

    def add_gradient(self, w: Vector, gradient: Vector) -> None:
        for part in self.parts:
            some = gradient[part.place]
            part.penalty.add_gradient(w[part.place], some)
            _put(gradient, part.place, some)

    def add_hessp(self, w: Vector, v: Vector, product: Vector) -> None:
        for part in self.parts:
            some = product[part.place]
            part.penalty.add_hessp(w[part.place], v[part.place], some)
            _put(product, part.place, some)

    def add_hess_diag(self, w: Vector, diagonal: Vector) -> None:
        for part in self.parts:
            some = diagonal[part.place]
            part.penalty.add_hess_diag(w[part.place], some)
            _put(diagonal, part.place, some)


def _put(vector: Vector, place: Place, numbers: Vector) -> None:
    if not isinstance(place, slice):  # numbers at a slice are a view
        put(vector, place, numbers)


@dataclass(frozen=True, eq=False)
class NonsmoothParts(_Sum, EpigraphPenalty):
    """The non-smooth parts."""

    selection: Selection | None = None

    @property
    def kinds(self) -> frozenset[Kind]:
        """The capabilities that all parts have, except "l1", which has one strength for all weights."""
        each = [part.penalty.kinds for part in self.parts]
        found = frozenset.intersection(*each) - {Kind.L1, Kind.BY_BLOCK}
        if all(kinds & SINGLE for kinds in each):
            found |= {Kind.ORTHANTS}
        return found if self.selection is None else found | {Kind.BY_BLOCK}

    @property
    def strength(self) -> float:
        """The largest."""
        return max(1.0 if part.penalty.strength is None else part.penalty.strength for part in self.parts)

    @property
    def pieces(self) -> Sequence[tuple[Place, NonsmoothPenalty]]:
        return tuple((part.place, part.penalty) for part in self.parts)

    def restricted(self, places: Place) -> NonsmoothPenalty:
        kept = []
        for part in self.parts:
            here = np.flatnonzero(np.isin(places, part.indices))
            if len(here):
                inner = part.penalty.restricted(np.searchsorted(part.indices, places[here]))
                kept.append(replace(part, place=tidy(here), penalty=inner))
        if len(kept) == 1 and kept[0].size == len(places):
            whole: NonsmoothPenalty = kept[0].penalty
            return whole
        return NonsmoothParts(tuple(kept), self.selection)

    def min_norm_subgradient(self, w: Vector, gradient: Vector) -> Vector:
        least = 1.0 * gradient
        for part in self.parts:
            least[part.place] = part.penalty.min_norm_subgradient(w[part.place], gradient[part.place])
        return least

    def prox(self, w: Vector, step: float) -> Vector:
        near = 1.0 * w
        for part in self.parts:
            near[part.place] = part.penalty.prox(w[part.place], step)
        return near

    def epigraph_size(self, n_weights: int) -> int:
        return sum(part.penalty.epigraph_size(part.size) for part in self.parts)

    def epigraph_start(self, w: Vector) -> tuple[Vector, Vector]:
        """Return (α, its cost) of all parts, one after another."""
        xp = namespace(w)
        starts = [part.penalty.epigraph_start(w[part.place]) for part in self.parts]
        return xp.concat([alpha for alpha, _ in starts]), xp.concat([cost for _, cost in starts])

    def project_epigraph(self, w: Vector, alpha: Vector) -> tuple[Vector, Vector]:
        """Part by part: each knows how many α it has."""
        near, radii = 1.0 * w, 1.0 * alpha
        begin = 0
        for part in self.parts:
            end = begin + part.penalty.epigraph_size(part.size)
            some = part.penalty.project_epigraph(w[part.place], alpha[begin:end])
            near[part.place], radii[begin:end] = some
            begin = end
        return near, radii
