"""What the user should know after structure was learnt, and before it is learnt by an approximate engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from crfkit.result import Result, Status
from crfkit.structure.training.refit import Solution
from crfkit.structure.training.search import Search
from crfkit.structure.training.solve import NORMS

if TYPE_CHECKING:
    from crfkit.structure.training.data import StructureData
    from crfkit.structure.training.record import Learned
    from crfkit.structure.training.train import StructureTraining


def concerns(training: StructureTraining, learned: Learned, data: StructureData) -> Iterator[tuple[str, bool]]:
    """Yield (what to warn about, whether it is that a solver did not converge)."""
    if not len(learned.solution.loss.edges):
        yield f"no edge was selected: {_why_none(training, learned, data)}; the graph is empty", False
    if learned.refit is not None and learned.refit.concern:
        yield learned.refit.concern, False
    result = learned.solution.result
    if result is not None and not _done(result, learned.critical):
        advice = "; loss='pseudo-likelihood' needs no inference" if training.loss == "likelihood" else ""
        yield f"{result.status}{advice}", True


def _why_none(training: StructureTraining, learned: Learned, data: StructureData) -> str:
    """Return why there are no edges, and what would change that."""
    why = f"the penalty λ is {learned.strength:g}, and from {learned.critical:g} on all edges are zero"
    why += best_edge(learned, training.search, data.encoder.variables)
    if data.form == "auto" and max(data.encoder.n_states) > 2 and not data.unordered:
        why += (
            ". If the labels are steps of a scale, form='ordinal' (--form ordinal) has one weight per edge, at a lower "
            "price"
        )
    return why if data.has_pairs else "there are no pairs to choose from"


def _done(result: Result, slope: float) -> bool:
    """Return whether a solver converged, or ended where the objective is flat beside the slope of the first edge."""
    flat = result.status is Status.LINE_SEARCH_FAILED and result.optimality <= 1e-3 * max(1.0, slope)
    return flat or result.status.converged


def best_edge(learned: Learned, search: Search, names: list[str]) -> str:
    """Return in words which edge would fit the table best, what it gains in the extended BIC and what it costs."""
    empty = learned.solution
    loss = empty.loss
    if not loss.n_candidates or learned.interrupted or len(empty.support):
        return ""
    ids, scores = loss.candidates(loss.at(empty.w), NORMS[search.group_norm])
    if not len(ids) or not scores[0] > 0:
        return ""
    larger, place = loss.activate(ids[:1])
    w = np.zeros(larger.size)
    w[place] = empty.w
    fitted = search.refits.smooth(Solution(larger, w))
    gain = 2.0 * (loss.at(empty.w).value - larger.at(fitted.w).value)
    price = gain + search.ebic(fitted) - search.ebic(Solution(loss, empty.w))
    i, j = divmod(int(ids[0]), len(names))
    return (
        f". The best edge is {names[i]} – {names[j]}: it gains {gain:.3g} in the extended BIC, and its price is "
        f"{price:.3g}" + ("; a smaller ebic_gamma lowers the price" if gain < price else "")
    )


def concern_of_engine(inference: Any) -> str | None:
    """Return a warning about learning edges by an approximate likelihood."""
    name = inference if isinstance(inference, str) else getattr(inference, "name", "")
    if name not in ("trw", "mean-field", "bp", "gibbs"):
        return None
    what = {"trw": "a bound", "mean-field": "a bound", "bp": "an approximation", "gibbs": "an estimate"}[name]
    return (
        f"loss='likelihood' by {name} is {what} that gets worse with every edge: the edges that it selects, and their "
        "weights, are often worse than those of loss='pseudo-likelihood'. Use that, or "
        "inference='junction' where it is exact"
    )
