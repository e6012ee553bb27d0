"""The outcome of learning: typed values, their form in the model file, and warnings about them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from crfkit._values import Entries, Record
from crfkit.graph.encoding.tables import TableEncoder
from crfkit.graph.inference.defaults import default_decoder
from crfkit.graph.model import GraphModel
from crfkit.result import Result, Status
from crfkit.structure.encoding.input_scaling import InputScales, InputScaling
from crfkit.structure.options import StructureOptions
from crfkit.structure.refit import Refit
from crfkit.structure.select import Selected, Selection
from crfkit.structure.solve import Solution
from crfkit.structure.table import StructureData
from crfkit.training.path import PathPoint

DECODED_VARIABLES = 200  # for as many variables, choosing the decoder takes a few hundredths of a second


@dataclass(frozen=True, eq=False)
class Learned:
    """The chosen edges, and their final weights."""

    selected: Selected
    solution: Solution  # the edges that were selected, with the weights of the model
    refit: Refit | None  # how these weights were made; None if that was interrupted
    method: str  # which chose the edges
    scaling: InputScaling | None = None  # of the inputs that the weights are for
    interrupted: bool = False  # by Ctrl-C, in the search or in the refit


@dataclass(frozen=True, eq=False)
class StructureRecord:
    """The record of how a model's edges were chosen; StructureLearner shows it. Edges are i·p + j."""

    method: str
    loss: str
    rule: str | None  # None if the strength was given as a number
    strength: float
    critical_strength: float
    path: tuple[PathPoint[object], ...]
    chosen: int | None
    refit: Record | None
    stability: Mapping[int, float]
    entries: tuple[tuple[int, float], ...] = ()
    input_scales: InputScales | None = None
    bins: Mapping[str, list[float]] = field(default_factory=dict)

    def plain(self) -> Entries:
        """Return the record as stored in the model file."""
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
        stored: Entries = model.training["structure"]
        scales = stored.get("input_scales")
        return cls(
            method=stored["method"],
            loss=stored["loss"],
            rule=stored["rule"],
            strength=stored["strength"],
            critical_strength=stored["critical_strength"],
            path=tuple(_point(*row) for row in stored["path"]),
            chosen=stored.get("chosen"),
            refit=stored.get("refit"),
            stability=dict(stored["stability"]),
            entries=tuple((edge, strength) for edge, strength in stored.get("entries", ())),
            input_scales=None if scales is None else InputScales.read(scales),
            bins=stored.get("bins") or {},
        )

    @classmethod
    def of(cls, learned: Learned, data: StructureData, options: StructureOptions, rule: object) -> StructureRecord:
        """Return the record of what was learned; `rule` is the edge strength that was requested."""
        selected = learned.selected
        return cls(
            method=learned.method,
            loss=options.loss,
            rule=rule if isinstance(rule, str) else None,
            strength=selected.strength,
            critical_strength=selected.critical,
            path=tuple(point.numbers() for point in selected.steps),
            chosen=selected.chosen,
            refit=None if learned.refit is None else learned.refit.record(),
            stability=selected.stability,
            entries=tuple(selected.entries),
            input_scales=None if learned.scaling is None else learned.scaling.input_scales,
            bins=data.cuts,
        )


def _row(point: PathPoint[object]) -> list[object]:
    value = point.value if math.isfinite(point.value) else None
    return [point.strength, point.n_edges, point.score, point.error, value, point.nonzeros]


def _point(
    strength: float,
    n_edges: int,
    score: float | None = None,
    error: float | None = None,
    value: float | None = None,
    nonzeros: int = 0,
) -> PathPoint[object]:
    """Return a point from a row of a model file; older files end after the error."""
    known = math.nan if value is None else value
    return PathPoint(strength, known, nonzeros, score=score, error=error, n_edges=n_edges)


@dataclass(frozen=True, eq=False)
class StructureFit:
    """A model, how its edges were chosen, and the search that chose them."""

    model: GraphModel
    record: StructureRecord
    learned: Learned

    @property
    def interrupted(self) -> bool:
        return self.learned.interrupted


def structure_choices(model: GraphModel) -> dict[str, str]:
    """Return what "auto" means in predictions of a learned graph; the method is part of the record."""
    encoder = model.encoder
    if not isinstance(encoder, TableEncoder) or encoder.structure.n_nodes > DECODED_VARIABLES:
        return {}
    chosen = {"inference": model.engine(encoder.structure).name} if model.inference == "auto" else {}
    if model.decode == "auto" and encoder.features is None and np.isfinite(model.w).all():
        chosen["decode"] = default_decoder(model.potentials(encoder.encode(None)))
    return chosen


# --- warnings


def concerns(options: StructureOptions, learned: Learned, data: StructureData) -> Iterator[tuple[str, bool]]:
    """Yield (warning, whether it says that a solver did not converge)."""
    if not len(learned.solution.loss.edges):
        yield f"no edge was selected: {_why_empty(options, learned, data)}; the graph is empty", False
    if learned.refit is not None and (concern := learned.refit.concern(options.tunables.mismatch_limit)):
        yield concern, False
    result = learned.solution.result
    if result is not None and not _converged(result, learned.selected.critical):
        advice = "; loss='pseudo-likelihood' needs no inference" if options.loss == "likelihood" else ""
        yield f"{result.status}{advice}", True


def _why_empty(options: StructureOptions, learned: Learned, data: StructureData) -> str:
    """Return why there are no edges, and what would change that."""
    selected = learned.selected
    why = f"the penalty λ is {selected.strength:g}, and from {selected.critical:g} on all edges are zero"
    why += _best_edge(learned, options, data.encoder.variables)
    if data.form == "auto" and max(data.encoder.n_states) > 2 and not data.unordered:
        why += (
            ". If the labels are steps of a scale, form='ordinal' (--form ordinal) has one weight per edge, at a lower "
            "price"
        )
    return why if data.has_pairs else "there are no pairs to choose from"


def _converged(result: Result, slope: float) -> bool:
    """Return whether a solver converged, or ended where the objective is flat beside the slope of the first edge."""
    flat = result.status is Status.LINE_SEARCH_FAILED and result.optimality <= 1e-3 * max(1.0, slope)
    return flat or result.status.converged


def _best_edge(learned: Learned, options: StructureOptions, names: list[str]) -> str:
    """Return in words which edge would fit the table best, what it gains in the extended BIC and what it costs."""
    empty, selection = learned.solution, Selection(options)
    loss = empty.loss
    if not loss.n_candidates or learned.interrupted or len(empty.support):
        return ""
    ids, scores = loss.candidates(loss.at(empty.w), selection.solver.dual_norm)
    if not len(ids) or not scores[0] > 0:
        return ""
    fitted, ebic = selection.solver.refit(empty.grown(ids[:1])), selection.supports.ebic
    gain = 2.0 * (loss.at(empty.w).value - fitted.loss.at(fitted.w).value)
    price = gain + ebic(fitted) - ebic(empty)
    i, j = divmod(int(ids[0]), len(names))
    return (
        f". The best edge is {names[i]} – {names[j]}: it gains {gain:.3g} in the extended BIC, and its price is "
        f"{price:.3g}" + ("; a smaller ebic_gamma lowers the price" if gain < price else "")
    )
