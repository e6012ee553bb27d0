"""What the results say, for README.md and results.md; only of what has been run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from choices import SIFT_CELL
from facts_coverage import coverage
from results_file import read

INFERENCES = {"bp": "belief propagation", "mean-field": "mean field", "pl": "pseudo-likelihood"}
SOLVERS = {"ista": "ISTA", "fista": "FISTA", "ogm": "OGM"}
# The rows "horse segmentation" of the paper's Tables II and I: test error in %, time in seconds; ISTA, FISTA, OGM
ERRORS = {"bp": (35.48, 16.69, 16.49), "mean-field": (35.67, 16.19, 15.51), "pl": (40.67, 27.59, 20.23)}
SECONDS = {
    "bp": (5438.36, 3392.03, 2418.48),
    "mean-field": (3887.54, 3151.10, 2370.22),
    "pl": (25126.93, 20588.54, 12854.96),
}
FAR = 5.0  # points of error by which one row is far above another


def facts(folder: Path) -> dict[str, Any]:
    """Return the values of the pages from the results in a folder."""
    file = folder / "results.json"
    results: dict[str, Any] = read(file)
    trials = {seed: cells for seed, cells in results.get("paper", {}).items() if len(cells) > 1}
    cells = paper_cells(trials)
    first = results.get("paper", {}).get("0", {})
    said = statements(cells) + along(first)
    found: dict[str, Any] = {
        "trials": sorted(map(int, trials)),
        "cells": list(cells.values()),
        "cell": {f"{c['inference']}_{c['solver']}".replace("-", "_"): c for c in cells.values()},
        "statements": said,
        "holding": sum(each["holds"] for each in said),
        "by_inference": {name: settling(trials, name) for name in INFERENCES},
        "on_the_way": least_on_the_way(first, "bp"),
        "end": min((row["test"] for name, row in first.items() if name.startswith("bp,")), default=None),
        "background": _mean([cells["background"]["test"] for cells in trials.values()]),
        "features": results.get("features"),
        "practice": practice(results.get("practice", {})),
        "practice_trials": sorted(map(int, results.get("practice", {}))),
        "equivalence": results.get("equivalence"),
        "noise": noise(results.get("noise", {})),
        "minutes": minutes(results),
        "sift_cell": SIFT_CELL,
        "tries": tries(trials),
    }
    if found["equivalence"]:
        rows = found["equivalence"]["rows"]
        found["agreement"] = max(row["above"] for row in rows.values())
        near = {name: row["to"]["evaluations"] for name, row in rows.items() if row["to"]}
        found["order"] = sorted(near.items(), key=lambda item: item[1])
    if cells:
        found["best_cell"] = min(cells.values(), key=lambda cell: cell["test"])
        found["spread"] = max(cell["spread"] for cell in cells.values())
    found["coverage"] = coverage(cells, said, falling(first))
    return found


def _mean(values: Any) -> float | None:
    return float(np.mean(values)) if len(values) else None


def paper_cells(trials: dict[str, Any]) -> dict[str, Any]:
    """Return the nine cells, those that some trial has, with means over trials and the paper's numbers."""
    found: dict[str, Any] = {}
    for inference, name in INFERENCES.items():
        for k, (solver, label) in enumerate(SOLVERS.items()):
            rows = [cells[f"{inference}, {solver}"] for cells in trials.values() if f"{inference}, {solver}" in cells]
            if not rows:
                continue
            chosen = [row["chosen"] for row in rows]
            found[f"{inference}, {solver}"] = {
                "inference": inference,
                "solver": solver,
                "name": f"{name}, {label}",
                "n": len(rows),
                "test": _mean([row["test"] for row in rows]),
                "sd": float(np.std([row["test"] for row in rows])),
                "train": _mean([row["train"] for row in rows]),
                "validation": _mean([each["validation"] for each in chosen]),
                "paper_error": ERRORS[inference][k],
                "paper_seconds": SECONDS[inference][k],
                "seconds": _mean([each["cpu_seconds"] for each in chosen]),
                "search": _mean([row["search_cpu_seconds"] for row in rows]),
                "iterations": _mean([each["iterations"] for each in chosen]),
                "evaluations": _mean([each["evaluations"] for each in chosen]),
                "unsettled": sum(each["unsettled"] for each in chosen) / sum(each["evaluations"] for each in chosen),
                "unary": _mean([each["unary"] for each in chosen]),
                "pairwise": _mean([each["pairwise"] for each in chosen]),
                "lambdas": [f"{each['lambda']:g}" for each in chosen],
                "mus": [f"{each['mu']:g}" for each in chosen if "mu" in each],
                "ends": sorted({each["status"] for each in chosen}),
                "tries": sum(len(row["tries"]) for row in rows),
                "capped": sum(each["status"] == "MAX_ITERATIONS" for row in rows for each in row["tries"]),
                "spread": _mean([_spread(row["tries"]) for row in rows]),
            }
    return found


def _spread(tries: list[dict[str, Any]]) -> float:
    """Return how far apart the validation errors of a cell's settings are."""
    errors = [each["validation"] for each in tries]
    return max(errors) - min(errors)


def tries(trials: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a table for each cell: validation errors in % by trial and setting, the chosen one in bold."""
    tables = []
    for inference, name in INFERENCES.items():
        for solver, label in SOLVERS.items():
            rows, heads = [], []
            for seed, cells in trials.items():
                if (cell := cells.get(f"{inference}, {solver}")) is None:
                    continue
                heads = [
                    f"{each['lambda']:g}" + (f", {each['mu']:g}" if "mu" in each else "") for each in cell["tries"]
                ]
                shown = [
                    f"**{100 * each['validation']:.2f}**"
                    if each == cell["chosen"]
                    else f"{100 * each['validation']:.2f}"
                    for each in cell["tries"]
                ]
                rows.append({"trial": seed, "cells": shown})
            if rows:
                tables.append({"name": f"{name}, {label}", "heads": heads, "rows": rows})
    return tables


def settling(trials: dict[str, Any], inference: str) -> dict[str, Any] | None:
    """Return, over all tries of an inference, how runs ended and how often inference had not converged."""
    tries = [
        each
        for cells in trials.values()
        for name, row in cells.items()
        if name.split(",")[0] == inference
        for each in row["tries"]
    ]
    if not tries:
        return None
    return {
        "tries": len(tries),
        "converged": sum(each["status"] == "CONVERGED" for each in tries),
        "capped": sum(each["status"] == "MAX_ITERATIONS" for each in tries),
        "unsettled": sum(each["unsettled"] for each in tries) / sum(each["evaluations"] for each in tries),
    }


def statements(cells: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the paper's statements about horses, each with whether it holds for the means here."""

    def of(what: str, solver: str) -> dict[str, float]:
        return {i: cells[f"{i}, {solver}"][what] for i in INFERENCES if f"{i}, {solver}" in cells}

    full = [i for i in INFERENCES if all(f"{i}, {s}" in cells for s in SOLVERS)]
    said: list[dict[str, Any]] = []

    def say(text: str, where: list[str], among: list[str]) -> None:
        if among:
            names = [INFERENCES[i] if i in INFERENCES else SOLVERS[i] for i in where]
            said.append({"text": text, "where": names, "of": len(among), "holds": len(where) == len(among)})

    error = {s: of("test", s) for s in SOLVERS}
    seconds = {s: of("seconds", s) for s in SOLVERS}
    say(
        "the test error of OGM is lower than that of FISTA and ISTA",
        [i for i in full if error["ogm"][i] < min(error["fista"][i], error["ista"][i])],
        full,
    )
    say(
        f"the test error of ISTA is far (by more than {FAR:g} points) above that of FISTA",
        [i for i in full if 100 * (error["ista"][i] - error["fista"][i]) > FAR],
        full,
    )
    say(
        "OGM takes less time than FISTA",
        [i for i in full if seconds["ogm"][i] < seconds["fista"][i]],
        full,
    )
    say(
        "FISTA takes less time than ISTA",
        [i for i in full if seconds["fista"][i] < seconds["ista"][i]],
        full,
    )
    if len(full) == len(INFERENCES):
        every = list(SOLVERS)
        say(
            "pseudo-likelihood has a higher test error than belief propagation and mean field",
            [s for s in every if error[s]["pl"] > max(error[s]["bp"], error[s]["mean-field"])],
            every,
        )
        say(
            "pseudo-likelihood takes longer than belief propagation and mean field",
            [s for s in every if seconds[s]["pl"] > max(seconds[s]["bp"], seconds[s]["mean-field"])],
            every,
        )
        say(
            "mean field takes less time than belief propagation",
            [s for s in every if seconds[s]["mean-field"] < seconds[s]["bp"]],
            every,
        )
    return said


def falling(first: dict[str, Any]) -> list[str]:
    """Return the cells of the first trial whose test error ends within a point of its least on the way."""
    return [
        name
        for name, row in first.items()
        if "curve" in row and row["test"] <= min(moment["test"] for moment in row["curve"]) + 0.01
    ]


def along(first: dict[str, Any]) -> list[dict[str, Any]]:
    """Return whether test errors fall with training time."""
    n = sum("curve" in row for row in first.values())
    if not n:
        return []
    where = []
    for name in falling(first):
        inference, solver = name.split(", ")
        where.append(f"{INFERENCES[inference]} by {SOLVERS[solver]}")
    text = "the test error falls in general while training goes on (figures: it ends within a point of its least)"
    return [{"text": text, "where": where, "of": n, "holds": len(where) == n}]


def least_on_the_way(first: dict[str, Any], inference: str) -> float | None:
    """Return the least test error along the chosen runs of an inference in the first trial."""
    curves = [row["curve"] for name, row in first.items() if name.startswith(f"{inference},") and "curve" in row]
    return min((moment["test"] for curve in curves for moment in curve), default=None)


def curve_of(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the errors along the chosen run of a cell, its end included."""
    chosen = row["chosen"]
    end = {"iteration": chosen["iterations"], **{key: chosen[key] for key in ("evaluations", "objective")}}
    return [*row["curve"], {**end, "train": row["train"], "test": row["test"]}]


def practice(trials: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the second table, with means over trials and differences to logistic regression."""
    names = list(dict.fromkeys(name for rows in trials.values() for name in rows))
    found = []
    for name in names:
        rows = [rows[name] for rows in trials.values()]
        gain = [each["logistic regression"]["test"] - each[name]["test"] for each in trials.values()]
        found.append(
            {
                "name": name,
                "test": _mean([row["test"] for row in rows]),
                "sd": float(np.std([row["test"] for row in rows])),
                "gain": _mean(gain),
                "seconds": _mean([row["cpu_seconds"] for row in rows]),
                "unary": _mean([row["unary"] for row in rows]),
                "pairwise": _mean([row["pairwise"] for row in rows]),
                "kept": _mean([row["kept"] for row in rows if "kept" in row]),
                "penalties": [row["penalty"] for row in rows],
            }
        )
    return found


def noise(trials: dict[str, Any]) -> dict[str, Any] | None:
    """Return the study of noise: shares of noise features dropped, and test errors."""
    if not trials:
        return None
    features = 162
    rows = []
    for seed, both in sorted(trials.items(), key=lambda item: int(item[0])):
        kept = both["noisy"]["noise_kept"]
        rows.append(
            {
                "trial": int(seed),
                "unary": 1 - kept["unary"] / features,
                "pairwise": 1 - kept["pairwise"] / features,
                "noisy": both["noisy"]["test"],
                "clean": both["clean"]["test"],
                "weights": both["noisy"]["unary"] + both["noisy"]["pairwise"],
            }
        )
    means = {key: _mean([row[key] for row in rows]) for key in ("unary", "pairwise", "noisy", "clean")}
    least = {f"least_{key}": min(row[key] for row in rows) for key in ("unary", "pairwise")}
    return {"rows": rows, "n": len(rows), "cost": means["noisy"] - means["clean"], **means, **least}  # type: ignore[operator]


def minutes(results: dict[str, Any]) -> dict[str, float]:
    """Return the CPU minutes that the parts took."""
    cells = [row for trial in results.get("paper", {}).values() for name, row in trial.items() if "," in name]
    together = sum(row["together_cpu_seconds"] for row in cells) / len(SOLVERS)
    return {
        "paper": together / 60,
        "alone": sum(row["search_cpu_seconds"] for row in cells) / 60,
        "features": results.get("features", {}).get("cpu_seconds", 0.0) / 60,
    }
