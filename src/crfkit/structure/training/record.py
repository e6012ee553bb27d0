"""What was learnt about a graph, as typed values; they become plain numbers and lists only in the model file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crfkit.graph.model import GraphModel
from crfkit.structure.training.final import Refit
from crfkit.structure.training.inputs import InputScales, InputScaling
from crfkit.structure.training.refit import Solution
from crfkit.structure.training.search import EdgePoint
from crfkit.training.path import PathPoint


@dataclass(frozen=True, eq=False)
class Learned:
    """The outcome of the search for edges: their weights, and how they were chosen."""

    solution: Solution
    strength: float
    steps: list[EdgePoint]
    chosen: int | None  # of the steps
    stability: dict[int, float]
    critical: float  # the smallest strength without edges
    entries: list[tuple[int, float]] = field(default_factory=list)  # (edge, strength), in order of entry into the path
    interrupted: bool = False  # by Ctrl-C; the edges are those of the strengths so far
    refit: Refit | None = None  # how the weights of the chosen edges were made
    method: str = ""  # by which the edges were chosen
    scaling: InputScaling | None = None  # of the inputs that the weights are for


@dataclass(frozen=True, eq=False)
class StructureRecord:
    """How the edges of a model were chosen; what StructureLearner shows beside the weights. Edges are i·p + j."""

    method: str
    loss: str
    rule: str | None  # None if the strength was given as a number
    strength: float
    critical_strength: float
    path: tuple[PathPoint[Any], ...]
    chosen: int | None
    refit: Mapping[str, Any] | None
    stability: Mapping[int, float]
    entries: tuple[tuple[int, float], ...] = ()
    input_scales: InputScales | None = None
    bins: Mapping[str, list[float]] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Return the record as it is stored in the model file."""
        return {
            "method": self.method,
            "loss": self.loss,
            "rule": self.rule,
            "strength": float(self.strength),
            "critical_strength": float(self.critical_strength),
            "path": [_row(point) for point in self.path],
            "chosen": self.chosen,
            "refit": None if self.refit is None else dict(self.refit),
            **({} if self.input_scales is None else {"input_scales": self.input_scales.plain()}),
            "stability": [[edge, share] for edge, share in self.stability.items()],
            "entries": [[edge, strength] for edge, strength in self.entries],
            **({"bins": dict(self.bins)} if self.bins else {}),
        }

    @classmethod
    def read(cls, model: GraphModel) -> StructureRecord:
        """Return the record of a model; raise KeyError, TypeError or ValueError if it is damaged."""
        stored: Any = model.training["structure"]
        scales = stored.get("input_scales")
        return cls(
            stored["method"],
            stored["loss"],
            stored["rule"],
            stored["strength"],
            stored["critical_strength"],
            tuple(_point(*row) for row in stored["path"]),
            stored.get("chosen"),
            stored.get("refit"),
            dict(stored["stability"]),
            tuple((edge, strength) for edge, strength in stored.get("entries", ())),
            None if scales is None else InputScales.read(scales),
            stored.get("bins") or {},
        )


def _row(point: PathPoint[Any]) -> list[Any]:
    value = point.value if math.isfinite(point.value) else None
    return [point.strength, point.n_edges, point.score, point.error, value, point.nonzeros]


def _point(
    strength: float,
    n_edges: int,
    score: float | None = None,
    error: float | None = None,
    value: float | None = None,
    nonzeros: int = 0,
) -> PathPoint[Any]:
    """Return a point from a row of a model file; older files end after the error."""
    return PathPoint(strength, math.nan if value is None else value, nonzeros, score, error, n_edges)


@dataclass(frozen=True, eq=False)
class StructureFit:
    """A model, how its edges were chosen, and the search that chose them."""

    model: GraphModel
    record: StructureRecord
    learned: Learned

    @property
    def interrupted(self) -> bool:
        return self.learned.interrupted
