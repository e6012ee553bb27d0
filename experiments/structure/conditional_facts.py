"""What the page says about conditional fields."""

from __future__ import annotations

from typing import Any

from means import SCORES, lost, mean

CONDITIONAL = {  # method → label, in the order of the table
    "default": "StructureLearner, extended BIC",
    "± edges same and": "regressions ±, price of edges, AND",
    "± edges same or": "regressions ±, price of edges, OR",
    "± coefficients same and": "regressions ±, price of coefficients, AND",
    "± coefficients same or": "regressions ±, price of coefficients, OR",
    "± coefficients usual and": "regressions ±, price of coefficients, usual γ, AND",
    "± coefficients usual or": "regressions ±, price of coefficients, usual γ, OR",
    "indicators edges same and": "regressions on indicators, price of edges, AND",
    "indicators edges same or": "regressions on indicators, price of edges, OR",
    "indicators coefficients same and": "regressions on indicators, price of coefficients, AND",
    "indicators coefficients same or": "regressions on indicators, price of coefficients, OR",
    "± cross-validation and": "regressions ±, cross-validation, AND",
    "indicators cross-validation and": "regressions on indicators, cross-validation, AND",
    "mutual information": "mutual information",
    "Linf ising": "ranking: Ising couplings, L∞",
    "L2 ising": "ranking: Ising couplings, L2",
    "Linf full": "ranking: tables, L∞",
    "L2 full": "ranking: tables, L2",
}


def conditional(fields: dict[str, Any]) -> dict[str, Any]:
    """Return every method's values over the fields, in the order of the seeds, and their means."""
    seeds = sorted(fields, key=int)
    flat = [{m.replace(",", ""): row for unit in fields[s].values() for m, row in unit.items()} for s in seeds]
    gammas = [t["default"].get("gamma") for t in flat if "default" in t]
    named = [{_same(m, gammas[0] if gammas else 0.0): row for m, row in t.items()} for t in flat]
    methods = [m for m in CONDITIONAL if any(m in t for t in named)]
    keys = (*SCORES, "edges", "hits", "true", "seconds")
    values = {m: {k: [t[m][k] for t in named if k in t.get(m, {})] for k in keys} for m in methods}
    values = {m: {k: v for k, v in of.items() if v} for m, of in values.items()}
    rivals = [m for m in methods if m.startswith(("±", "indicators"))]
    gains = {
        m: {
            s: [t["default"][s] - t[m][s] for t in named if m in t and "default" in t and s in t[m]]
            for s in ("f1", "f1_equal", "ap")
        }
        for m in rivals
    }
    return {
        "seeds": [int(s) for s in seeds],
        "labels": CONDITIONAL,
        "missing": [label for m, label in CONDITIONAL.items() if m not in methods],
        "values": values,
        "methods": {m: {k: mean(v) for k, v in of.items()} for m, of in values.items()},
        "lost": {s: [m for m in rivals if lost(gains[m][s])] for s in ("f1", "f1_equal", "ap")},
        "best_equal": max((mean(values[m]["f1_equal"]) for m in rivals if " same " in m), default=None),
        "short": {m: label.removeprefix("ranking: ") for m, label in CONDITIONAL.items()},
        "first_on": _first_on(values),
        "by_ap": sorted((m for m in methods if "ap" in values[m]), key=lambda m: -mean(values[m]["ap"])),
    }


def _first_on(values: dict[str, Any]) -> int:
    """Return on how many fields the method with the largest mean average precision has the largest."""
    ranked = {m: v["ap"] for m, v in values.items() if "ap" in v}
    best = max(ranked, key=lambda m: mean(ranked[m]), default=None)
    if best is None:
        return 0
    whole = [v for v in ranked.values() if len(v) == len(ranked[best])]
    return sum(ranked[best][k] >= max(v[k] for v in whole) for k in range(len(ranked[best])))


def _same(method: str, gamma: float) -> str:
    """Return the name with "same" or "usual" instead of γ."""
    words = method.split()
    return " ".join("same" if w == f"{gamma:g}" else "usual" if w == "0.25" else w for w in words)
