"""What to say where no edge was selected, and of engines that select worse ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit.training.structure_refit import Solution
from crfkit.training.structure_search import NORMS, Search


def best_edge(learned: Any, search: Search, names: list[str]) -> str:
    """Return in words which edge would fit the table best, what it gains in the extended BIC and what it costs."""
    empty: Solution = learned.solution
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
