"""What the page says about the results: means, paired differences, where the default loses, and who comes first.

"Loses": over the seeds of a family and a number of rows, the mean of F1 less the rival's is below zero by more than its
standard error. This was settled before the reported seeds were run.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from scipy.stats import t as student

FAMILIES = ("random", "hubs", "grid", "scale-free", "duplicate", "rare")
NODEWISE = ("refitted and", "refitted or", "penalised and", "penalised or")
LABELS = {
    "refitted and": "refits, AND",
    "refitted or": "refits, OR",
    "penalised and": "penalised fits, AND",
    "penalised or": "penalised fits, OR",
}
SCORES = ("f1", "f1_equal", "ap")
FALSE = 0.1  # edges per table of independent columns that a γ may let in
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


def facts(folder: Path) -> dict[str, Any]:
    """Return what the page needs from results.json of a folder."""
    file = folder / "results.json"
    results = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {
        "planted": planted(results.get("planted", {})),
        "tuned": tuned(results.get("tuned", {}), results.get("tuned_independent", {})),
        "independent": {rows: _mean(list(r.values())) for rows, r in _by_number(results.get("independent", {}))},
        "independent_tables": max((len(r) for r in results.get("independent", {}).values()), default=0),
        "conditional": conditional(results.get("conditional", {})),
        "rules": rules(results.get("rules", {})),
        "ordinal": {key.replace(" ", "_"): value for key, value in results.get("ordinal", {}).items()},
        "density": results.get("density", {}),
        "minutes": _minutes(results.get("cpu_seconds", {})),
    }


def planted(cells: dict[str, Any]) -> dict[str, Any]:
    """Return means of every cell, a family and a number of rows, and where the default loses."""
    rows = []
    for name in sorted(cells, key=lambda c: (FAMILIES.index(c.split()[0]), int(c.split()[1]))):
        family, n = name.split()
        trials = [cells[name][seed] for seed in sorted(cells[name], key=int)]
        rows.append({"family": family, "rows": int(n), "seeds": len(trials), **_compared([_flat(t) for t in trials])})
    methods = list(rows[0]["methods"]) if rows else []
    return {
        "cells": rows,
        "seeds": sorted({int(seed) for cell in cells.values() for seed in cell}),
        "rows": sorted({row["rows"] for row in rows}),
        "gamma": next((t["gamma"] for cell in cells.values() for t in cell.values()), None),
        "means": {m: {s: _mean([row["methods"][m][s] for row in rows]) for s in SCORES} for m in methods},
        "losses": {s: {m: _places(rows, m, s, "lost") for m in methods if m != "default"} for s in SCORES},
        "wins": {s: {m: _places(rows, m, s, "won") for m in methods if m != "default"} for s in SCORES},
        "counts": {str(n): _counts(cells, n) for n in sorted({row["rows"] for row in rows})},
        "missed_at_copies": _share_of_copies(cells, "same refitted and", 1000),
        "same": _against(rows, "same"),
        "usual": _against(rows, "usual"),
        "lowest": min(
            [m for m in methods if m.startswith("same")],
            key=lambda m: _mean([r["methods"][m]["f1"] for r in rows]),
            default=None,
        ),
        "largest": {
            s: max(methods, key=lambda m: _mean([r["methods"][m][s] for r in rows]), default=None) for s in SCORES
        },
        "seconds": {
            who: _mean([t["seconds"][who] for cell in cells.values() for t in cell.values()])
            for who in ("default", "nodewise")
        },
    }


def _flat(trial: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return method → scores of a trial."""
    found = {"default": trial["default"], "mutual information": trial["mutual information"]}
    for gamma in ("same", "usual"):
        found |= {f"{gamma} {name}": trial[gamma][name] for name in NODEWISE}
    return found


def _compared(trials: list[dict[str, dict[str, float]]]) -> dict[str, Any]:
    """Return the means of all methods and the paired gains of the default over each."""
    found: dict[str, Any] = {}
    for method in trials[0]:
        found[method] = {}
        for score in SCORES:
            gains = [t["default"][score] - t[method][score] for t in trials]
            gain, error = _mean(gains), _error(gains)
            found[method] |= {
                score: _mean([t[method][score] for t in trials]),
                f"{score}_gain": gain,
                f"{score}_error": error,
                f"{score}_lost": gain < -error - 1e-12,
                f"{score}_won": gain > error + 1e-12,
            }
    return {"methods": found}


def _places(rows: list[dict[str, Any]], method: str, score: str, what: str) -> list[str]:
    return [f"{r['family']}/{r['rows']}" for r in rows if r["methods"][method][f"{score}_{what}"]]


def _counts(cells: dict[str, Any], rows: int) -> dict[str, dict[str, float]]:
    """Return method → edges missed and false edges per table, over all families with a number of rows."""
    trials = [_flat(t) for name, cell in cells.items() if name.endswith(f" {rows}") for t in cell.values()]
    return {
        m: {
            "missed": _mean([t[m]["true"] - t[m]["hits"] for t in trials]),
            "false": _mean([t[m]["edges"] - t[m]["hits"] for t in trials]),
        }
        for m in trials[0]
    }


def _share_of_copies(cells: dict[str, Any], method: str, rows: int) -> float | None:
    """Return which share of the edges that a method misses is in fields with a copied column."""
    missed = {
        name: sum(_flat(t)[method]["true"] - _flat(t)[method]["hits"] for t in cell.values())
        for name, cell in cells.items()
        if name.endswith(f" {rows}")
    }
    total = sum(missed.values())
    return missed.get(f"duplicate {rows}", 0) / total if total else None


def _against(rows: list[dict[str, Any]], gamma: str) -> dict[str, Any]:
    """Return in how many comparisons with nodewise regressions of one γ the default loses and wins, and what it loses.

    `by_chance` is how many it would lose if there were no difference at all, by Student's t.
    """
    lost, won, by_chance = [], 0, 0.0
    for row in rows:
        for rival in NODEWISE:
            found = row["methods"][f"{gamma} {rival}"]
            won += found["f1_won"]
            by_chance += float(student.cdf(-1.0, row["seeds"] - 1)) if row["seeds"] > 1 else 0.0
            if found["f1_lost"]:
                place = {"family": row["family"], "rows": row["rows"], "rival": LABELS[rival]}
                share = (
                    float(student.cdf(found["f1_gain"] / found["f1_error"], row["seeds"] - 1))
                    if found["f1_error"]
                    else 0.0
                )
                lost.append(place | {"gain": found["f1_gain"], "error": found["f1_error"], "p": share})
    best = max((_mean([r["methods"][f"{gamma} {m}"]["f1"] for r in rows]) for m in NODEWISE if rows), default=None)
    return {"best": best, "comparisons": len(rows) * len(NODEWISE), "lost": lost, "won": won, "by_chance": by_chance}


def tuned(cells: dict[str, Any], empty: dict[str, Any]) -> dict[str, Any]:
    """Return the sums of F1 by γ on the fields for choosing, gains over rivals with the same γ, and false edges."""
    trials = [t for cell in cells.values() for t in cell.values()]
    gammas = sorted({g for t in trials for g in t if g != "twice"}, key=float)
    tables = [t for of_rows in empty.values() for t in of_rows.values()]
    rows = {}
    for g in gammas:
        mine = [t[g] for t in trials if g in t]
        lost = [
            name
            for name, cell in cells.items()
            if any(_lost([t[g]["default"] - t[g][rival] for t in cell.values() if g in t]) for rival in NODEWISE)
        ]
        rows[g] = {
            "f1": _mean([t["default"] for t in mine]),
            "rivals": {name: _mean([t[name] for t in mine]) for name in NODEWISE},
            "lost": len(lost),
            "false": _mean([t[g] for t in tables if g in t]),
            "false_most": max((_mean([t[g] for t in of.values()]) for of in empty.values()), default=None),
        }
    allowed = [g for g in gammas if (rows[g]["false_most"] or 0.0) <= FALSE]
    return {
        "gammas": rows,
        "best": max(allowed, key=lambda g: rows[g]["f1"], default=None),
        "cells": len(cells),
        "seeds": sorted({int(seed) for cell in cells.values() for seed in cell}),
        "rows": sorted({int(name.split()[1]) for name in cells}),
        "tables": max((len(of) for of in empty.values()), default=0),
        "by_rows": {
            str(n): {
                g: _mean(
                    [t[g]["default"] for c, of in cells.items() if c.endswith(f" {n}") for t in of.values() if g in t]
                )
                for g in gammas
            }
            for n in sorted({int(name.split()[1]) for name in cells})
        },
        "twice": _mean([t["twice"]["default"] for t in trials]),
        "twice_by_cell": {
            name: (
                _mean([t["0.35"]["default"] for t in cell.values()]),
                _mean([t["twice"]["default"] for t in cell.values()]),
            )
            for name, cell in cells.items()
            if all("0.35" in t for t in cell.values())
        },
    }


def _lost(gains: list[float]) -> bool:
    return bool(gains) and _mean(gains) < -_error(gains) - 1e-12


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
        "values": values,
        "methods": {m: {k: _mean(v) for k, v in of.items()} for m, of in values.items()},
        "lost": {s: [m for m in rivals if _lost(gains[m][s])] for s in ("f1", "f1_equal", "ap")},
        "by_ap": sorted((m for m in methods if "ap" in values[m]), key=lambda m: -_mean(values[m]["ap"])),
    }


def _same(method: str, gamma: float) -> str:
    """Return the name with "same" or "usual" instead of γ."""
    words = method.split()
    return " ".join("same" if w == f"{gamma:g}" else "usual" if w == "0.25" else w for w in words)


def rules(trials: dict[str, Any]) -> dict[str, Any]:
    """Return F1 (mean, least), edges and seconds of every rule."""
    found = {}
    for rule in ("ebic", "cv", "stability"):
        rows = [t[rule] for t in trials.values()]
        if rows:
            found[rule] = {key: _mean([r[key] for r in rows]) for key in ("f1", "edges", "seconds")}
            found[rule]["least"] = min(r["f1"] for r in rows)
    return {"seeds": sorted(map(int, trials)), "of": found}


def _minutes(seconds: dict[str, float]) -> dict[str, float]:
    """Return CPU minutes by part, and in total."""
    found: dict[str, float] = {}
    for key, value in seconds.items():
        part = key.split()[0]
        found[part] = found.get(part, 0.0) + value / 60
    return found | {"total": sum(found.values())}


def _mean(values: list[float]) -> Any:
    return sum(values) / len(values) if values else None


def _error(values: list[float]) -> float:
    """Return the standard error of a mean; 0 of a single value."""
    if len(values) < 2:
        return 0.0
    mean = _mean(values)
    return math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values))


def _by_number(cells: dict[str, Any]) -> list[tuple[str, Any]]:
    return sorted(cells.items(), key=lambda item: int(item[0]))
