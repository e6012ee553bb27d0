"""What the page says about the results: means, paired differences, where the default loses, and who comes first.

"Loses": over the seeds of a family and a number of rows, the mean of F1 less the rival's is below zero by more than its
standard error. This was settled before the reported seeds were run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conditional_facts import conditional
from means import SCORES, error, lost, mean
from results_file import read
from scipy.stats import t as student

FAMILIES = ("random", "hubs", "grid", "scale-free", "duplicate", "rare")
NODEWISE = ("refitted and", "refitted or", "penalised and", "penalised or")
LABELS = {
    "refitted and": "refits, AND",
    "refitted or": "refits, OR",
    "penalised and": "penalised fits, AND",
    "penalised or": "penalised fits, OR",
}
FALSE = 0.1  # edges per table of independent columns that a γ may let in


def facts(folder: Path) -> dict[str, Any]:
    """Return what the page needs from results.json of a folder."""
    file = folder / "results.json"
    results = read(file)
    empty = {rows: mean(list(r.values())) for rows, r in _by_number(results.get("independent", {}))}
    found = {"independent_most": max(empty.values()), "independent_few": max(empty.values()) <= FALSE} if empty else {}
    return found | {
        "planted": planted(results.get("planted", {})),
        "tuned": tuned(results.get("tuned", {}), results.get("tuned_independent", {})),
        "independent": empty,
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
        "means": {m: {s: mean([row["methods"][m][s] for row in rows]) for s in SCORES} for m in methods},
        "losses": {s: {m: _places(rows, m, s, "lost") for m in methods if m != "default"} for s in SCORES},
        "wins": {s: {m: _places(rows, m, s, "won") for m in methods if m != "default"} for s in SCORES},
        "counts": {str(n): _counts(cells, n) for n in sorted({row["rows"] for row in rows})},
        "pooled": {str(n): _pooled(cells, n) for n in sorted({row["rows"] for row in rows})},
        "missed_at_copies": _share_of_copies(cells, "same refitted and", 1000),
        "same": _against(rows, "same"),
        "usual": _against(rows, "usual"),
        "lowest": min(
            [m for m in methods if m.startswith("same")],
            key=lambda m: mean([r["methods"][m]["f1"] for r in rows]),
            default=None,
        ),
        "largest": {
            s: max(methods, key=lambda m: mean([r["methods"][m][s] for r in rows]), default=None) for s in SCORES
        },
        "seconds": {
            who: mean([t["seconds"][who] for cell in cells.values() for t in cell.values()])
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
            gain, spread = mean(gains), error(gains)
            found[method] |= {
                score: mean([t[method][score] for t in trials]),
                f"{score}_gain": gain,
                f"{score}_error": spread,
                f"{score}_lost": gain < -spread - 1e-12,
                f"{score}_won": gain > spread + 1e-12,
            }
    return {"methods": found}


def _places(rows: list[dict[str, Any]], method: str, score: str, what: str) -> list[str]:
    return [f"{r['family']}/{r['rows']}" for r in rows if r["methods"][method][f"{score}_{what}"]]


def _counts(cells: dict[str, Any], rows: int) -> dict[str, dict[str, float]]:
    """Return method → edges missed and false edges per table, over all families with a number of rows."""
    trials = [_flat(t) for name, cell in cells.items() if name.endswith(f" {rows}") for t in cell.values()]
    return {
        m: {
            "missed": mean([t[m]["true"] - t[m]["hits"] for t in trials]),
            "false": mean([t[m]["edges"] - t[m]["hits"] for t in trials]),
        }
        for m in trials[0]
    }


def _pooled(cells: dict[str, Any], rows: int) -> dict[str, Any]:
    """Return rival → the gain in F1 over all tables with a number of rows, and over those without a copied column."""
    found = {}
    for rival in NODEWISE:
        gains = {
            name: [_flat(t)["default"]["f1"] - _flat(t)[f"same {rival}"]["f1"] for t in cell.values()]
            for name, cell in cells.items()
            if name.endswith(f" {rows}")
        }
        some = [gain for of in gains.values() for gain in of]
        plain = [gain for name, of in gains.items() if not name.startswith("duplicate") for gain in of]
        found[rival] = {
            "gain": mean(some),
            "error": error(some),
            "plain": mean(plain),
            "plain_error": error(plain),
        }
    return found


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
    losses, won, by_chance = [], 0, 0.0
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
                losses.append(place | {"gain": found["f1_gain"], "error": found["f1_error"], "p": share})
    best = max((mean([r["methods"][f"{gamma} {m}"]["f1"] for r in rows]) for m in NODEWISE if rows), default=None)
    plentiful = sum(place["rows"] >= 1000 and place["rival"].endswith("AND") for place in losses)
    significant = sum(place["p"] < 0.05 for place in losses)
    return {
        "significant": significant,
        "plentiful": plentiful,
        "best": best,
        "comparisons": len(rows) * len(NODEWISE),
        "lost": losses,
        "won": won,
        "by_chance": by_chance,
    }


def tuned(cells: dict[str, Any], empty: dict[str, Any]) -> dict[str, Any]:
    """Return mean F1 by γ on the fields for choosing, of the learner and of rivals with the same γ, and false edges.

    Only seeds that all cells have count, so that an unfinished run compares the same fields.
    """
    whole = set.intersection(*(set(cell) for cell in cells.values())) if cells else set()
    cells = {name: {seed: cell[seed] for seed in sorted(whole, key=int)} for name, cell in cells.items()}
    trials = [t for cell in cells.values() for t in cell.values()]
    gammas = sorted({g for t in trials for g in t if g != "twice"}, key=float)
    rows = {}
    for g in gammas:
        mine = [t[g] for t in trials if g in t]
        losses = [
            name
            for name, cell in cells.items()
            if any(lost([t[g]["default"] - t[g][rival] for t in cell.values() if g in t]) for rival in NODEWISE)
        ]
        rows[g] = {
            "f1": mean([t["default"] for t in mine]),
            "rivals": {name: mean([t[name] for t in mine]) for name in NODEWISE},
            "lost": len(losses),
            "false_most": max((mean([t[g] for t in of.values() if g in t]) for of in empty.values()), default=None),
        }
        rows[g]["allowed"] = rows[g]["false_most"] is not None and rows[g]["false_most"] <= FALSE
    by_rows = {
        str(n): {
            g: mean([t[g]["default"] for c, of in cells.items() if c.endswith(f" {n}") for t in of.values() if g in t])
            for g in gammas
        }
        for n in sorted({int(name.split()[1]) for name in cells})
    }
    found = _choices(rows, by_rows, mean([t["twice"]["default"] for t in trials]))
    return found | {
        "gammas": rows,
        "cells": len(cells),
        "seeds": sorted({int(seed) for cell in cells.values() for seed in cell}),
        "rows": sorted({int(name.split()[1]) for name in cells}),
        "tables": max((len(of) for of in empty.values()), default=0),
        "by_rows": by_rows,
        "twice": mean([t["twice"]["default"] for t in trials]),
        "twice_by_cell": {
            name: (
                mean([t["0.35"]["default"] for t in cell.values()]),
                mean([t["twice"]["default"] for t in cell.values()]),
            )
            for name, cell in cells.items()
            if all("0.35" in t for t in cell.values())
        },
    }


def _choices(rows: dict[str, Any], by_rows: dict[str, Any], twice: float | None) -> dict[str, Any]:
    """Return what the page says about γ and the price of edges, where that was measured."""
    found: dict[str, Any] = {}
    if twice is not None and "0.35" in rows:
        found["better_than_twice"] = rows["0.35"]["f1"] > twice
    if {"0.25", "0.35", "0.5"} <= rows.keys():
        found["kept"] = abs(rows["0.25"]["f1"] - rows["0.35"]["f1"]) < 0.005 and rows["0.5"]["f1"] < rows["0.35"]["f1"]
    few, many = by_rows.get("150", {}), by_rows.get("1000", {})
    if {"0.35", "0.5"} <= few.keys() & many.keys():
        found["trade"] = many["0.5"] >= many["0.35"] - 5e-4 and few["0.5"] < few["0.35"]
    return found


def rules(trials: dict[str, Any]) -> dict[str, Any]:
    """Return F1 (mean, least), edges and seconds of every rule."""
    found = {}
    for rule in ("ebic", "cv", "stability"):
        rows = [t[rule] for t in trials.values()]
        if rows:
            found[rule] = {key: mean([r[key] for r in rows]) for key in ("f1", "edges", "seconds")}
            found[rule]["least"] = min(r["f1"] for r in rows)
    return {"seeds": sorted(map(int, trials)), "of": found}


def _minutes(seconds: dict[str, float]) -> dict[str, float]:
    """Return CPU minutes by part, and in total."""
    found: dict[str, float] = {}
    for key, value in seconds.items():
        part = key.split()[0]
        found[part] = found.get(part, 0.0) + value / 60
    choice = sum(value for part, value in found.items() if part.startswith("tuned"))
    return found | {"total": sum(found.values()), "choice": choice}


def _by_number(cells: dict[str, Any]) -> list[tuple[str, Any]]:
    return sorted(cells.items(), key=lambda item: int(item[0]))
