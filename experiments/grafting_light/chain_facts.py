"""Derived numbers of Figures 2 and 3, of SGD under L1, of the choice of λ, and of OWL-QN's variants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any

Record = dict[str, Any]
SELECTING = ("grafting-light", "grafting", "grafting-origin", "gauss-seidel")
STOPPED = "STOPPED_BY_CALLBACK"
UNITS = (100, 500, 2000)  # of Figure 3
WHOLE_FILE = 8936  # sentences of CoNLL-2000's training file


def where(records: Sequence[Record], **wanted: Any) -> list[Record]:
    """Return the records with these values."""
    return [record for record in records if all(record.get(key) == value for key, value in wanted.items())]


def means(records: Sequence[Record], *keys: str) -> dict[str, float]:
    """Return the mean of each criterion; empty without records."""
    return {key: mean(record[key] for record in records) for key in keys} if records else {}


def with_gaps(records: Sequence[Record], group: str = "seed") -> list[Record]:
    """Return the records with `gap`: how far the objective is above the best of the same data, relatively."""
    l1 = [record for record in records if record["method"] != "all-features"]
    best = {
        key: min(record["objective"] for record in l1 if record[group] == key)
        for key in {record[group] for record in l1}
    }
    return [
        record | ({"gap": record["objective"] / best[record[group]] - 1.0} if record in l1 else {})
        for record in records
    ]


KEPT = ("relevant_kept", "irrelevant_kept")
CRITERIA = (
    "cpu_seconds",
    "objective",
    "nll",
    "nonzero_inputs",
    "nonzero_weights",
    "selected_inputs",
    "evaluations",
    "passes",
)


def table(records: Sequence[Record], quality: str) -> list[Record]:
    """Return a row for each method and select unit: means over the seeds."""
    rows = []
    for method in ("all-features", "full-opt-l1", "sgd-l1", *SELECTING):
        for unit in sorted({record["M"] for record in where(records, method=method)}):
            here = where(records, method=method, M=unit)
            stopped = sum(record["status"] == STOPPED for record in here)
            rows.append(
                {"method": method, "M": unit, "seeds": len(here), "stopped": stopped, "limit": here[0].get("limit")}
                | means(here, *CRITERIA, quality)
                | {"gap": max((record["gap"] for record in here if "gap" in record), default=None)}
            )
    return rows


def synthetic(records: Sequence[Record]) -> dict[str, Any]:
    """Return what Figure 2 shows."""
    records = with_gaps(records)
    rows = table(records, "error")
    at = {(row["method"], row["M"]): row for row in rows}
    light = {row["M"]: row for row in rows if row["method"] == "grafting-light"}
    greedy = {row["M"]: row for row in rows if row["method"] == "grafting"}
    both = sorted(light.keys() & greedy.keys())
    full = at.get(("full-opt-l1", 0), {})
    optimal = [r for r in records if r["method"] in ("full-opt-l1", *SELECTING) and r["status"] == "CONVERGED"]
    by_seed = {seed: where(optimal, seed=seed) for seed in sorted({r["seed"] for r in optimal})}
    seidel = [row for row in rows if row["method"] == "gauss-seidel"]
    wide = [unit for unit in both if unit >= 10]
    return {
        "rows": rows,
        "at": {f"{method} {unit}": row for (method, unit), row in at.items()},
        "seeds": sorted({r["seed"] for r in where(records, method="grafting-light")}),
        "units": both,
        "full": full,
        "largest_gap": max((r["gap"] for r in optimal), default=None),
        "same_error": all(len({r["error"] for r in here}) == 1 for here in by_seed.values()),
        "same_inputs": all(len({r["nonzero_inputs"] for r in here}) == 1 for here in by_seed.values()),
        "optimum": [
            {"seed": seed}
            | {key: here[0][key] for key in ("error", "nonzero_inputs", "relevant_kept", "irrelevant_kept")}
            for seed, here in by_seed.items()
        ],
        "fewer_gradients": [unit for unit in both if light[unit]["evaluations"] < greedy[unit]["evaluations"]],
        "less_time": [unit for unit in both if light[unit]["cpu_seconds"] < greedy[unit]["cpu_seconds"]],
        "gradient_ratio": {unit: greedy[unit]["evaluations"] / light[unit]["evaluations"] for unit in both},
        "time_ratio": {unit: greedy[unit]["cpu_seconds"] / light[unit]["cpu_seconds"] for unit in both},
        "more_selected": [unit for unit in both if light[unit]["selected_inputs"] >= greedy[unit]["selected_inputs"]],
        "light_range": _range(light, wide, "evaluations"),
        "greedy_range": _range(greedy, wide, "evaluations"),
        "light_seconds": _range(light, wide, "cpu_seconds"),
        "greedy_seconds": _range(greedy, wide, "cpu_seconds"),
        "faster_than_full": [unit for unit in both if full and light[unit]["cpu_seconds"] < full["cpu_seconds"]],
        "seidel": seidel,
        "seidel_converged": [row["M"] for row in seidel if not row["stopped"]],
        "seidel_stopped": [row for row in seidel if row["stopped"]],
    }


def _range(rows: dict[int, Record], units: Sequence[int], key: str) -> list[float] | None:
    values = [rows[unit][key] for unit in units]
    return [min(values), max(values)] if values else None


def sgd(records: Sequence[Record], written_out: Sequence[Record]) -> dict[str, Any]:
    """Return which inputs stochastic gradients keep, next to the optimum of the same data."""
    records = with_gaps(records)
    rows = []
    for found in where(records, method="sgd-l1"):
        best = where(records, method="full-opt-l1", seed=found["seed"])
        epochs = {"penalty": "cumulative", "epochs": found["iterations"]}
        rows.append(found | epochs | {"optimum": best[0] if best else None})
    for found in written_out:
        best = where(records, method="full-opt-l1", seed=found["seed"])
        gap = found["objective"] / best[0]["objective"] - 1.0 if best else None
        rows.append(found | {"optimum": best[0] if best else None, "gap": gap})
    rows.sort(key=lambda row: (row["seed"], ("cumulative", "clipping", "naive").index(row["penalty"])))
    compared = [row for row in rows if row["optimum"]]

    def more(how: str) -> bool | None:
        here = [r["irrelevant_kept"] > r["optimum"]["irrelevant_kept"] for r in compared if r["penalty"] == how]
        return all(here) if here else None

    return {
        "rows": rows,
        "seeds": sorted({row["seed"] for row in rows if row["penalty"] == "cumulative"}),
        "more": {how: more(how) for how in ("cumulative", "clipping", "naive")},
    }


def noun_phrases(records: Sequence[Record]) -> dict[str, Any]:
    """Return what Figure 3 shows."""
    if not records:
        return {}
    strength = records[-1]["strength"]
    records = with_gaps([record for record in records if record["strength"] == strength])
    rows = table(records, "f1")
    at = {(row["method"], row["M"]): row for row in rows}
    light = [row for row in rows if row["method"] == "grafting-light"]
    rivals = [row for row in rows if row["method"] in ("grafting", "gauss-seidel")]
    ended = [row for row in light if not row["stopped"]]
    best = min(ended, key=lambda row: row["cpu_seconds"], default={})
    unfinished = [row for row in rivals if row["stopped"]]
    peaks = {r["method"]: r["peak_mb"] for r in records if r["M"] in (0, 500)}
    full, everything = at.get(("full-opt-l1", 0), {}), at.get(("all-features", 0), {})
    return {
        "rows": rows,
        "at": {f"{method} {unit}": row for (method, unit), row in at.items()},
        "strength": strength,
        "sentences": records[0]["sentences"],
        "weights": records[0]["weights"],
        "inputs": records[0]["inputs"],
        "full": full,
        "all": everything,
        "light": light,
        "light_converged": ended,
        "equal_time": _equal_time(light, rivals),
        "rivals": rivals,
        "rivals_stopped": unfinished,
        "rivals_at_optimum": [row for row in rivals if not row["stopped"]],
        "best_light": best,
        "peaks": peaks,
        "discarded": 1.0 - best["nonzero_weights"] / records[0]["weights"] if best else None,
        "light_gap": max(abs(r["objective"] / full["objective"] - 1) for r in ended) if ended and full else None,
        "rival_names": list(dict.fromkeys(row["method"] for row in unfinished)),
        "missing": [
            f"{m} {unit}"
            for m in ("grafting-light", "grafting", "gauss-seidel")
            for unit in UNITS
            if (m, unit) not in at
        ],
        "rival_gap": [min(row["gap"] for row in unfinished), max(row["gap"] for row in unfinished)]
        if unfinished
        else None,
        "rival_loss": full["f1"] - min(row["f1"] for row in unfinished) if unfinished and full else None,
        "lost": everything["f1"] - full["f1"] if everything and full else None,
        "f1_spread": max(abs(row["f1"] - full["f1"]) for row in ended) if ended and full else None,
        "earlier": [f"{r['method']} {r['M']}" for r in records if r.get("earlier")],
    }


def _equal_time(light: Sequence[Record], rivals: Sequence[Record]) -> list[Record]:
    """Return for each M the methods that were stopped at the same limit of CPU time, with Grafting-Light among them."""
    made = []
    for own in light:
        others = [row for row in rivals if row["stopped"] and (row["M"], row["limit"]) == (own["M"], own["limit"])]
        if own["stopped"] and others:
            least = min(others, key=lambda row: row["gap"])
            made.append({"M": own["M"], "limit": own["limit"], "light": own, "best_rival": least})
    return made


def strengths(found: dict[str, Any]) -> dict[str, Any]:
    """Return the cross-validation as rows by λ, with differences to the chosen λ in the same folds."""
    best, folds = found.get("best"), found.get("folds", [])
    rows = []
    for key, score in sorted(found.get("scores", {}).items(), key=lambda item: float(item[0])):
        strength = float(key)
        rows.append({"strength": strength, **score, "paired": _paired(folds, strength, best)})
    other = [row["paired"]["error"] for row in rows if row["paired"] and row["strength"] == found.get("best_by_error")]
    kept = [[r["nonzero_weights"] for r in where(folds, strength=s)] for s in (found.get("best_by_error"), best)]
    ratio = mean(kept[0]) / mean(kept[1]) if all(kept) and other else None
    return {key: value for key, value in found.items() if key != "folds"} | {
        "by_error": other[0] if other else None,
        "weights_ratio": ratio,
        "rows": rows,
        "whole_file": found.get("sentences") == WHOLE_FILE,
        "per_position": bool(folds),
        "next_best": min((row["paired"]["nll"]["t"] for row in rows if row["paired"]), default=None),
    }


def _paired(folds: Sequence[Record], strength: float, best: float | None) -> dict[str, Any] | None:
    """Return mean and standard error of the differences to the best λ in the same folds, and their ratio."""
    by = {(row["fold"], row["strength"]): row for row in folds}
    common = [k for k, s in by if s == strength and (k, best) in by]
    if strength == best or len(common) < 2:
        return None
    made = {}
    for key in ("error", "nll"):
        differences = [by[k, strength][key] - by[k, best][key] for k in common]
        se = stdev(differences) / math.sqrt(len(differences))
        made[key] = {"mean": mean(differences), "se": se, "t": mean(differences) / se if se else math.inf}
    return made


def owlqn(records: Sequence[Record]) -> dict[str, Any]:
    """Return how far each variant gets, by problem."""
    rows = [{key: value for key, value in record.items() if key != "trace"} for record in records]
    at = {f"{row['problem']} {row['variant']}": row for row in rows}
    problems = sorted({row["problem"] for row in rows})

    def of(variant: str) -> list[Record]:
        return [row for row in rows if row["variant"] == variant]

    def ratio(problem: str) -> float | None:
        """Return evaluations of the original until 1e-4, in those of the default."""
        both = [at.get(f"{problem} {variant}", {}).get("reached", {}).get("0.0001") for variant in ("original", "free")]
        return both[0] / both[1] if both[0] and both[1] else None

    return {
        "rows": rows,
        "at": at,
        "problems": problems,
        "printed_gap": [row["gap"] for row in of("printed")],
        "original_gap": [row["gap"] for row in of("original")],
        "free_gap": [row["gap"] for row in of("free")],
        "ratio": ratio("noun phrases"),
        "synthetic_ratio": ratio("synthetic"),
        "gaps": sorted({gap for row in rows for gap in row["reached"]}, key=float, reverse=True),
    }
