"""The table of speed.py: every target, the figure that was measured and whether it is met."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from common import Report, markdown

WAPITI_EVALUATION = 1.2  # seconds of Wapiti 1.5 for a value and gradient of 7.4 million weights on two threads


@dataclass(frozen=True)
class Target:
    """A figure that should be at least or at most so much."""

    what: str
    figure: float | None  # None: not reached
    bound: float
    least: bool  # whether the bound is the least that the figure should be
    unit: str
    detail: str = ""

    @property
    def met(self) -> bool:
        return self.figure is not None and (self.figure >= self.bound if self.least else self.figure <= self.bound)

    def cells(self) -> tuple[str, ...]:
        wanted = f"{'≥' if self.least else '≤'} {self.bound:,.6g} {self.unit}".rstrip()
        figure = "not reached" if self.figure is None else f"{self.figure:,.6g} {self.unit}".rstrip()
        if self.figure is not None and self.unit in ("×", "s", "GB"):
            figure = f"{self.figure:,.3g} {self.unit}"
        return self.what, figure, wanted, "met" if self.met else "missed", self.detail


def at_least(what: str, figure: float | None, bound: float, unit: str = "×", detail: str = "") -> Target:
    return Target(what, figure, bound, True, unit, detail)


def at_most(what: str, figure: float | None, bound: float, unit: str = "s", detail: str = "") -> Target:
    return Target(what, figure, bound, False, unit, detail)


def middle(rows: list[Any], key: str | None = None) -> float | None:
    """Return the median; None if a round has no figure."""
    figures = [row[key] if key else row for row in rows]
    return None if None in figures else statistics.median(figures)


def seconds_of(rows: list[Any], key: str | None = None) -> str:
    figure = middle(rows, key)
    return "–" if figure is None else f"{figure:.3g} s"


def fit(r: Report) -> Iterator[Target]:
    ours, theirs = r["crfkit"], r["crfsuite"]
    yield at_most("objective of `fit` at the default stop", middle(ours, "objective"), 12_887.3, "")
    peer, single = seconds_of(theirs, "seconds"), seconds_of(r["crfkit_one_thread"], "seconds")
    detail = f"{seconds_of(ours, 'seconds')} on {r['threads']} threads; CRFsuite {peer} on one; "
    detail += f"ours on one {single}, {r['times_faster_one_thread']:.3g} ×"
    yield at_least(
        "`fit` from lists to the default stop, against CRFsuite's append + train",
        r["times_faster"],
        45,
        detail=detail,
    )
    each = r["times_faster_to_0.1_percent_each"]
    yield at_least(
        "to within 0.1 % of the optimum, against CRFsuite's run",
        r["times_faster_to_0.1_percent"],
        90,
        detail=f"{seconds_of(ours, 'to_0.1_percent')}; CRFsuite is there after {seconds_of(theirs, 'to_0.1_percent')}"
        + ("" if each is None else f", which is {each:.3g} × as long"),
    )


def evaluation(r: Report) -> Iterator[Target]:
    detail = f"{seconds_of(r['crfkit'])}; CRFsuite {seconds_of(r['crfsuite'])}"
    if "crfkit_double" in r:
        detail += f"; in double precision {seconds_of(r['crfkit_double'])}, {r['times_faster_double']:.3g} ×"
    yield at_least("one value and gradient, against CRFsuite's", r["times_faster"], 22, detail=detail)


def epoch(r: Report) -> Iterator[Target]:
    detail = f"CRFsuite's l2sgd {seconds_of(r['crfsuite'])}, {r['times_faster']:.3g} × as long"
    yield at_most("one epoch of stochastic gradient descent", middle(r["crfkit"]), 0.05, detail=detail)


def all_pairs(r: Report) -> Iterator[Target]:
    name = f"{r['weights']:,} weights"
    detail = f"0.05 of Wapiti's {WAPITI_EVALUATION} s"
    if "evaluation_double" in r:
        detail += f"; in double precision {seconds_of(r['evaluation_double'])}"
    yield at_most(f"{name}: value and gradient", middle(r["evaluation"]), 0.05 * WAPITI_EVALUATION, detail=detail)
    yield at_most(
        f"{name}: the solver's own work per iteration, against value and gradient",
        statistics.median(a / b for a, b in zip(r["vector_work"], r["evaluation_in_training"], strict=True)),
        1.0,
        "×",
        f"{seconds_of(r['vector_work'])}; value and gradient {seconds_of(r['evaluation_in_training'])}",
    )
    yield at_most(
        f"{name}: training to 7705.4, from the file",
        middle(r["trainings"], "to_7705.4"),
        10,
        detail=f"{seconds_of(r['trainings'], 'seconds')} to the default stop",
    )
    peak = max(row["peak_bytes"] for row in r["trainings"]) / 1e9
    yield at_most(f"{name}: peak memory of training", peak, 0.7, "GB")


def l1(r: Report) -> Iterator[Target]:
    n = r["crfsuite_iterations"]
    told = f"CRFsuite {seconds_of(r['crfsuite'], 'seconds')}" + ("" if n == 300 else f", scaled from {n} iterations")
    detail = f"{seconds_of(r['crfkit'], 'to_16834.2')}; {told}"
    yield at_least("L1 to 16,834.2, against 300 iterations of CRFsuite's OWL-QN", r["times_faster"], 30, detail=detail)
    yield at_most("L1 to 16,802.5", middle(r["crfkit"], "to_16802.5"), 5)


def modes(r: Report) -> Iterator[Target]:
    scores = ", ".join(f"{name} {row['f1']:.2%}" for name, row in r["modes"].items())
    yield at_most("difference of objectives between precisions, relative", r["largest_difference"], 1e-6, "")
    f1 = [round(100 * row["f1"], 2) for row in r["modes"].values()]
    yield at_most("difference of F1 between precisions", max(f1) - min(f1), 0.0, "points", scores)


def growth(r: Report) -> Iterator[Target]:
    for line, found in r.items():
        sizes, times = found["sizes"], found["seconds"]
        detail = f"{times[0]:.3g} s at {sizes[0]:,} tokens, {times[-1]:.4g} s at {sizes[-1]:,}"
        yield at_most(f"{line}: exponent over tokens", found["exponent"], 1.03, "", detail)
    largest = max(r.values(), key=lambda found: found["sizes"][-1])
    peak = largest["peak_bytes"][-1] / 1e9
    yield at_most(f"peak memory of training on {largest['sizes'][-1]:,} tokens", peak, 8, "GB")


TABLES = {
    "fit": fit,
    "evaluation": evaluation,
    "epoch": epoch,
    "all_pairs": all_pairs,
    "l1": l1,
    "modes": modes,
    "growth": growth,
}


def targets(results: Report) -> list[Target]:
    """Return the targets of all parts that have results."""
    return [target for part, make in TABLES.items() if part in results for target in make(results[part])]


def table(results: Report) -> str:
    """Return the targets as a Markdown table, and one of the precisions."""
    text = markdown(("", "figure", "target", "", "in detail"), [target.cells() for target in targets(results)])
    if "modes" not in results:
        return text
    rows = [
        (name, f"{row['seconds']:.3g} s", f"{row['objective']:,.6f}", f"{row['f1']:.2%}")
        for name, row in results["modes"]["modes"].items()
    ]
    return text + "\n" + markdown(("precision", "training from lists", "objective", "F1"), rows)
