"""The values of the page, from results.json: seconds and work to each accuracy, ratios, winners."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

GAPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
SHOWN = (1e-2, 1e-4, 1e-6, 1e-8)
EXPONENTS = {1e-2: "⁻²", 1e-4: "⁻⁴", 1e-6: "⁻⁶", 1e-8: "⁻⁸"}
GRADIENT = 1e-6
MAIN = "2000"
SOLVERS = ("tron", "tron, preconditioned", "tron, warm start", "newton", "lbfgs", "auto")
COLD, WARM = ("tron", "lbfgs"), ("tron, warm start", "auto")
BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "solvers.json"
Values = dict[str, Any]


def facts(folder: Path) -> Values:
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    main = MAIN if MAIN in results else next(iter(results))
    part = results[main]
    cells = cells_of(part)
    runs = {(cell["task"], cell["strength"], run["solver"]): run for cell in cells for run in cell["runs"]}
    found: Values = {
        "sequences": int(main) if main.isdigit() else main,
        "limit": part["protocol"]["limit"],
        "epochs": part["protocol"]["epochs"],
        "cpu_minutes": sum(one["cpu seconds"] for one in results.values()) / 60,
        "tasks": [{"task": task, **{key: entry[key] for key in SIZES}} for task, entry in part["tasks"].items()],
        "columns": [{"key": f"{gap:g}", "label": f"10{EXPONENTS[gap]}"} for gap in SHOWN],
        "strengths": sorted({cell["strength"] for cell in cells}),
        "repeats": {
            name: min((run["repeats"] for (_, _, of), run in runs.items() if of == name), default=0) for name in SOLVERS
        },
        "cells": cells,
        "costs": costs_of(part),
        "cold": duel(cells, *COLD),
        "warm": duel(cells, *WARM),
        "newton": duel(cells, "newton", "tron"),
        "preconditioned": duel(cells, "tron, preconditioned", "tron"),
        "warmed": duel(cells, "tron, warm start", "tron"),
        "fastest": fastest(cells),
        "cg": cg_of(runs),
        "jax": jax_of(),
    }
    steps = found["cg"]
    found["late_by_early"] = statistics.mean(row["late"] for row in steps) / statistics.mean(
        row["early"] for row in steps
    )
    found["certificate"] = max(at["certificate"] / at["best"] for at in all_strengths(part))
    found["reached"] = reached_of(cells)
    found["whole"] = [
        {**cell, **{key: part["tasks"][cell["task"]][key] for key in SIZES}}
        for size, part in results.items()
        if size == "all" and main != "all"
        for cell in cells_of(part)
    ]
    found["coverage"] = coverage(found)
    return found


SIZES = ("weights", "sequences", "tokens", "labels")


def all_strengths(part: Values) -> list[Values]:
    return [at for entry in part["tasks"].values() for at in entry["strengths"].values() if "best" in at]


def cells_of(part: Values) -> list[Values]:
    """Return what was measured for each task and strength."""
    cells = []
    for task, entry in part["tasks"].items():
        product = entry["costs"]["ratios"]["product"]
        for strength in sorted(entry["strengths"], key=float):
            at = entry["strengths"][strength]
            runs = [
                run_of(name, at["solvers"][name], at["best"], entry["first gradient"], product)
                for name in SOLVERS
                if name in at["solvers"]
            ]
            cells.append({"task": task, "strength": float(strength), "best": at["best"], "runs": runs})
    return cells


def run_of(name: str, run: Values, best: float, first: float, product: float) -> Values:
    """Return seconds, evaluations, products and work (in evaluations) to each gap and to the gradient."""
    trace = run["trace"]
    to: Values = {}
    for gap in GAPS:
        to[f"{gap:g}"] = row_at(trace, lambda k, gap=gap: trace["value"][k] <= best * (1 + gap), product)
    to["gradient"] = row_at(trace, lambda k: trace["gradient"][k] <= GRADIENT * first, product)
    repeats = run.get("repeats", 1)
    return {
        "solver": name,
        "repeats": repeats,
        "to": to,
        "seconds": trace["seconds"][-1],
        "start": run["start seconds"],
        "trace": trace,
    }


def row_at(trace: Values, holds: Any, product: float) -> Values | None:
    """Return the first row where something holds; None if it never does."""
    for k in range(len(trace["value"])):
        if holds(k):
            evaluations, products = trace["evaluations"][k], trace["products"][k]
            return {
                "seconds": trace["seconds"][k],
                "evaluations": evaluations,
                "products": products,
                "work": evaluations + product * products,
            }
    return None


def duel(cells: list[Values], one: str, other: str) -> Values:
    """Return the ratios of CPU seconds of two solvers in each cell and at each accuracy, and where one is ahead."""
    rows, ratios, works = [], {}, []
    for cell in cells:
        runs = {run["solver"]: run["to"] for run in cell["runs"]}
        if one not in runs or other not in runs:
            continue
        row = {key: ratio(runs[one][key], runs[other][key]) for key in [f"{gap:g}" for gap in GAPS] + ["gradient"]}
        rows.append({"task": cell["task"], "strength": cell["strength"], "ratios": row})
        for key, value in row.items():
            ratios[cell["task"], cell["strength"], key] = value
            if runs[one][key] and runs[other][key]:
                works.append(runs[one][key]["work"] / runs[other][key]["work"])
    known = {key: value for key, value in ratios.items() if value is not None}
    ahead = [key for key, value in known.items() if value < 1]
    return {
        "one": one,
        "other": other,
        "rows": rows,
        "least": min(known.values(), default=None),
        "most": max(known.values(), default=None),
        "median": statistics.median(known.values()) if known else None,
        "count": len(known),
        "ahead": len(ahead),
        "work": statistics.median(works) if works else None,
        "work_ahead": sum(work < 1 for work in works),
        "ahead_at": [{"task": task, "strength": s, "at": at} for task, s, at in ahead],
        "tasks_ahead": sorted({task for task, _, _ in ahead}),
        "strengths_ahead": sorted({s for _, s, _ in ahead}),
        "by_task": [
            {
                "task": task,
                "count": sum(of == task for of, _, _ in known),
                "ahead": sum(of == task for of, _, _ in ahead),
                "median": statistics.median(value for (of, _, _), value in known.items() if of == task),
            }
            for task in dict.fromkeys(of for of, _, _ in known)
        ],
        "by_gap": {
            at: statistics.median(value for (_, _, key), value in known.items() if key == at)
            for at in dict.fromkeys(key for _, _, key in known)
        },
        "by_strength": {
            f"{s:g}": statistics.median(value for (_, of, _), value in known.items() if of == s)
            for s in sorted({s for _, s, _ in known})
        },
    }


def ratio(one: Values | None, other: Values | None) -> float | None:
    """Return the ratio of seconds; infinite where only the other arrived."""
    if other is None:
        return None
    return math.inf if one is None else one["seconds"] / other["seconds"]


def fastest(cells: list[Values]) -> list[Values]:
    """Return the solver with the least CPU seconds for each cell and accuracy."""
    rows = []
    for cell in cells:
        winners = {}
        for key in [f"{gap:g}" for gap in SHOWN] + ["gradient"]:
            times = {run["solver"]: run["to"][key]["seconds"] for run in cell["runs"] if run["to"][key]}
            winners[key] = min(times, key=lambda name: times[name]) if times else None
        rows.append({"task": cell["task"], "strength": cell["strength"], "winners": winners})
    return rows


def costs_of(part: Values) -> Values:
    """Return what a product costs, in evaluations of value and gradient."""
    by_task = {task: entry["costs"] for task, entry in part["tasks"].items() if "costs" in entry}
    exact = [costs["ratios"]["product"] for costs in by_task.values()]
    rough = [costs["ratios"]["product by central differences"] for costs in by_task.values()]
    return {
        "tasks": [{"task": task, **costs} for task, costs in by_task.items()],
        "exact": max(exact),
        "least_exact": min(exact),
        "rough": min(rough),
        "difference": max(costs["difference"] for costs in by_task.values()),
    }


def cg_of(runs: dict[Any, Values]) -> list[Values]:
    """Return, for plain TRON, how many products a step takes and what the radius does."""
    rows = []
    for (task, strength, name), run in runs.items():
        if name != "tron":
            continue
        trace = run["trace"]
        steps = [b - a for a, b in zip(trace["products"], trace["products"][1:], strict=False)]
        radii = [radius for radius in trace.get("radius", []) if radius]
        trials = trace["evaluations"][-1] - 1
        rows.append(
            {
                "task": task,
                "strength": strength,
                "steps": len(steps),
                "rejected": trials - len(steps),
                "median": statistics.median(steps),
                "early": statistics.mean(steps[: len(steps) // 2]),
                "late": statistics.mean(steps[len(steps) // 2 :]),
                "most": max(steps),
                "first_radius": radii[0] if radii else None,
                "last_radius": radii[-1] if radii else None,
            }
        )
    return rows


def jax_of() -> Values | None:
    """Return what a product by automatic differentiation costs, from the benchmark of solvers."""
    if not BENCHMARK.exists():
        return None
    seconds = json.loads(BENCHMARK.read_text(encoding="utf-8"))["hessian"]["seconds"]
    if "product in JAX" not in seconds:
        return None
    return {
        "of its own gradient": seconds["product in JAX"] / seconds["value and gradient in JAX"],
        "of ours": seconds["product in JAX"] / seconds["value and gradient"],
        "ours": seconds["product"] / seconds["value and gradient"],
    }


def reached_of(cells: list[Values]) -> Values:
    """Return in how many cells each solver came to the last gap within the limit."""
    return {
        name: sum(bool(run["to"]["1e-08"]) for cell in cells for run in cell["runs"] if run["solver"] == name)
        for name in SOLVERS
    }


def coverage(found: Values) -> list[Values]:
    complete = len(found["cells"]) == 6 and all(len(cell["runs"]) == len(SOLVERS) for cell in found["cells"])
    law = {"outcome": "reproduced", "why": "tested against enumeration: `tests/laws/test_chain_hessian.py`"}
    return [
        {
            "item": "Table 2.1",
            "what": "a sentence of the CoNLL-2002 task with its tags",
            "outcome": "reproduced",
            "why": "an illustration; the Spanish data of that task are one of our two",
        },
        {
            "item": "Algorithm 1",
            "what": "trust region",
            "outcome": "reproduced" if complete else "partly reproduced",
            "why": "`tron`; the tables of this page",
        },
        {
            "item": "Algorithm 2",
            "what": "conjugate gradients in the region",
            "outcome": "reproduced" if complete else "partly reproduced",
            "why": "the line r ← r − α·Hd is lost in print",
        },
        {"item": "Algorithm 3", "what": "gradient by forward–backward", **law},
        {"item": "Algorithm 4", "what": "f̄ = f·v at every position", **law},
        {"item": "Algorithm 5", "what": "ᾱ and β̄", **law},
        {"item": "Algorithm 6", "what": "E[f] and E[f̄]", **law},
        {"item": "Algorithm 7", "what": "the Hessian-vector product", **law},
        {
            "item": "Section 4.3",
            "what": "a product has the complexity of a gradient",
            "outcome": "reproduced" if found["costs"]["exact"] < 3 else "not reproduced",
            "why": "measured: the table of costs",
        },
        {
            "item": "experiments",
            "what": "TRON against L-BFGS; the thesis cites Wang (2008)",
            "outcome": "reproduced" if complete else "partly reproduced",
            "why": "the thesis has none; Wang's data and code are not public, ours are two CoNLL tasks",
        },
    ]
