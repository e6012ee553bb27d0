"""What the pages say of the results: derived numbers and claims, from results.json alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import agpm_paper as paper
from agpm_claims import claims
from agpm_coverage import coverage
from agpm_statistics import geometric, mean, ratio

RIVALS = ("M-[14]", "M-[23]")
METHODS = (*RIVALS, "AGPM")
MEASURES = ("evaluations", "cpu")


def facts(folder: Path) -> dict[str, Any]:
    """Return all values that the templates need."""
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = {
        name: comparison(results[key][kind])
        for name, key, kind in (
            ("table", "Table 1", "pl"),
            ("likelihood", "Table 1", "likelihood"),
            ("figure1", "Figure 1", "pl"),
            ("figure2", "Figure 2", "pl"),
        )
        if results.get(key, {}).get(kind)
    }
    repeated = {
        name: draws for name, draws in results.get("Table 1", {}).get("likelihood", {}).items() if len(draws) > 1
    }
    if repeated:
        found["likelihood_repeated"] = comparison(repeated)
    found["paper"] = of_paper()
    if "table" in found:
        found["objective"] = objective(found, results.get("engines", {}))
        found["speed"] = speed(found["table"])
    if "rules" in results:
        found["rules"] = rules(results["rules"])
    if "variants" in results:
        found["variants"] = variants(results["variants"])
    found["engines"] = results.get("engines", {})
    first = results.get("Figure 2", {}).get("pl", {}).get("10/10", {}).get("0")
    if first:
        found["none_ended"] = all(row["status"] != "CONVERGED" for row in first.values())
    found["gaps"] = {
        samples: {method: row["gap"][-1] for method, row in rows.items()}
        for samples, rows in results.get("traces", {}).items()
    }
    found["minutes"] = {part: seconds / 60 for part, seconds in results.get("cpu", {}).items()}
    found["total_minutes"] = sum(found["minutes"].values())
    found["claims"] = claims(found)
    found["coverage"] = coverage(found)
    return found


def value_of(row: dict[str, Any], measure: str) -> float:
    """Return evaluations, or the least CPU seconds of the repeats."""
    return max(min(row["cpu"]), 1e-4) if measure == "cpu" else float(row["evaluations"])


def order(setting: str) -> tuple[int, ...]:
    return tuple(int(part) for part in setting.split("/"))


def comparison(units: dict[str, Any]) -> dict[str, Any]:
    """Return what a table or figure shows: for each setting means of draws and paired ratios, and all together.

    units: setting → draw → method → row of results.json.
    """
    units = {setting: units[setting] for setting in sorted(units, key=order) if units[setting]}
    settings = [one_setting(setting, list(draws.values())) for setting, draws in units.items()]
    rows = [row for draws in units.values() for draw in draws.values() for row in draw.values()]
    every = [draw for draws in units.values() for draw in draws.values()]
    found: dict[str, Any] = {
        "settings": settings,
        "names": [row["setting"] for row in settings],
        "by_name": {row["setting"]: row for row in settings},
        "n_settings": len(settings),
        "n_draws": len(every),
        "draws": sorted({row["draws"] for row in settings}),
        "fewest_draws": min(row["draws"] for row in settings),
        "repeats": min(len(row["cpu"]) for row in rows),
        "most_repeats": max(len(row["cpu"]) for row in rows),
        "ratios": {
            rival: {
                measure: ratio([pairs(list(draws.values()), rival, measure) for draws in units.values()])
                for measure in MEASURES
            }
            for rival in RIVALS
        },
        "mean": {
            method: {m: geometric(row["methods"][method][m] for row in settings) for m in MEASURES}
            | {"error": mean(row["methods"][method]["error"] for row in settings)}
            for method in METHODS
        },
        "sum": {method: sum(row["methods"][method]["cpu_mean"] for row in settings) for method in METHODS},
        "gap": max(max(r["error"] for r in draw.values()) - min(r["error"] for r in draw.values()) for draw in every),
        "capped": {method: sum(draw[method]["status"] != "CONVERGED" for draw in every) for method in METHODS},
        "uncapped": sum(all(row["status"] == "CONVERGED" for row in draw.values()) for draw in every),
        "capped_settings": [row["setting"] for row in settings if any(m["capped"] for m in row["methods"].values())],
        "least_kept": min(row["edges"] / row["candidates"] for row in rows),
    }
    found["ended"] = ended_ratios(units)
    for measure in MEASURES:
        found[f"first_{measure}"] = [row["setting"] for row in settings if row["first"][measure] == "AGPM"]
        found[f"not_first_{measure}"] = [row["setting"] for row in settings if row["first"][measure] != "AGPM"]
        found[f"wins_{measure}"] = sum(row["wins"][measure] for row in settings)
        found[f"lost_to_23_{measure}"] = [
            row["setting"] for row in settings if row["methods"]["AGPM"][measure] >= row["methods"]["M-[23]"][measure]
        ]
    return found


def one_setting(setting: str, draws: list[dict[str, Any]]) -> dict[str, Any]:
    methods = {
        method: {m: geometric(value_of(draw[method], m) for draw in draws) for m in MEASURES}
        | {
            "cpu_mean": mean(value_of(draw[method], "cpu") for draw in draws),
            "error": mean(draw[method]["error"] for draw in draws),
            "capped": sum(draw[method]["status"] != "CONVERGED" for draw in draws),
        }
        for method in METHODS
    }
    return {
        "setting": setting,
        "draws": len(draws),
        "methods": methods,
        "ratios": {rival: {m: ratio([pairs(draws, rival, m)]) for m in MEASURES} for rival in RIVALS},
        "first": {m: min(METHODS, key=lambda name, m=m: methods[name][m]) for m in MEASURES},
        "wins": {
            m: sum(value_of(d["AGPM"], m) < min(value_of(d[r], m) for r in RIVALS) for d in draws) for m in MEASURES
        },
        "spg_first_always": all(d["M-[14]"]["evaluations"] < d["AGPM"]["evaluations"] for d in draws),
        "edges": mean(draw["AGPM"]["edges"] for draw in draws),
        "hits": mean(draw["AGPM"]["hits"] for draw in draws),
        "true": mean(draw["AGPM"]["true"] for draw in draws),
        "candidates": draws[0]["AGPM"]["candidates"],
    }


def pairs(draws: list[dict[str, Any]], rival: str, measure: str) -> list[float]:
    """Return AGPM / rival of each draw."""
    return [value_of(draw["AGPM"], measure) / value_of(draw[rival], measure) for draw in draws]


def ended_ratios(units: dict[str, Any]) -> dict[str, Any]:
    """Return the ratios of evaluations of draws where all methods ended by the rule of the paper."""
    whole = [
        [d for d in draws.values() if all(row["status"] == "CONVERGED" for row in d.values())]
        for draws in units.values()
    ]
    whole = [draws for draws in whole if draws]
    if not whole:
        return {}
    return {rival: ratio([pairs(draws, rival, "evaluations") for draws in whole]) for rival in RIVALS}


def of_paper() -> dict[str, Any]:
    """Return what Table 1 of the paper says of ratios, sums and growth."""
    names = list(paper.TABLE_1)
    ratios = {r: [paper.seconds(name, "AGPM") / paper.seconds(name, r) for name in names] for r in RIVALS}
    return {
        "rows": {
            name: {m: {"cpu": paper.seconds(name, m), "error": paper.error(name, m)} for m in METHODS} for name in names
        },
        "ratios": {rival: geometric(values) for rival, values in ratios.items()},
        "sum": {method: sum(paper.seconds(name, method) for name in names) for method in METHODS},
        "gap": max(max(row[1::2]) - min(row[1::2]) for row in paper.TABLE_1.values()),
        "error": {method: mean(paper.error(name, method) for name in names) for method in METHODS},
        "always_first": all(max(values) < 1 for values in ratios.values()),
    }


def growth(seconds: dict[str, float]) -> dict[str, float | None]:
    """Return by how much the time of AGPM grows from 5 to 10 and to 15 nodes, over the features that all have."""
    found: dict[str, float | None] = {}
    for nodes in (10, 15):
        shared = [d for d in (5, 10, 15, 20) if f"5/{d}" in seconds and f"{nodes}/{d}" in seconds]
        found[str(nodes)] = geometric(seconds[f"{nodes}/{d}"] / seconds[f"5/{d}"] for d in shared) if shared else None
    return found


def objective(found: dict[str, Any], engines: dict[str, Any]) -> dict[str, Any]:
    """Compare how time grows with the number of nodes, and test errors: in the paper, and here with both objectives."""
    grown = {"paper": growth({name: paper.seconds(name, "AGPM") for name in paper.TABLE_1})}
    for name in ("table", "likelihood"):
        if name in found:
            grown[name] = growth({row["setting"]: row["methods"]["AGPM"]["cpu"] for row in found[name]["settings"]})
    once = {}
    if {"5", "15"} <= engines.keys():
        once = {name: engines["15"][name] / engines["5"][name] for name in engines["5"]}
    return {"growth": grown, "pairs": (15 * 14) / (5 * 4), "once": once}


def speed(table: dict[str, Any]) -> dict[str, Any]:
    """Compare the sum of the times of AGPM in Table 1 with the paper's, over the settings that there are."""
    theirs = sum(paper.seconds(row["setting"], "AGPM") for row in table["settings"])
    return {"ours": table["sum"]["AGPM"], "theirs": theirs, "times": theirs / table["sum"]["AGPM"]}


def rules(draws: dict[str, Any]) -> dict[str, Any]:
    """Return the means of evaluations and CPU seconds over draws, the fewest evaluations first."""
    names = list(next(iter(draws.values())))
    rows = [
        {
            "name": name,
            "evaluations": geometric(draw[name]["evaluations"] for draw in draws.values()),
            "cpu": geometric(max(draw[name]["cpu"], 1e-4) for draw in draws.values()),
            "ended": all(draw[name]["status"] == "CONVERGED" for draw in draws.values()),
        }
        for name in names
    ]
    by_name = {row["name"]: row for row in rows}
    spread = [draw["bs3, gll"]["evaluations"] / draw["bs1, gll"]["evaluations"] - 1 for draw in draws.values()]
    return {
        "rows": sorted(rows, key=lambda row: row["evaluations"]),
        "by_name": by_name,
        "draws": len(draws),
        "chaos": max(abs(change) for change in spread),
    }


def variants(units: dict[str, Any]) -> dict[str, Any]:
    """Return evaluations of variants of AGPM and their ratios to AGPM, over draws of settings."""
    units = {setting: units[setting] for setting in sorted(units, key=order) if units[setting]}
    names = list(next(iter(next(iter(units.values())).values())))
    rows = {}
    for name in names:
        per = {setting: geometric(draw[name] for draw in draws.values()) for setting, draws in units.items()}
        rows[name] = {
            "evaluations": geometric(per.values()),
            "settings": per,
            "ratio": ratio([[draw[name] / draw["AGPM"] for draw in draws.values()] for draws in units.values()]),
        }
    level = ("AGPM, gll", "AGPM, η = .95", "AGPM, dai-fletcher", "AGPM, huang")
    every = [draw for draws in units.values() for draw in draws.values()]
    return {
        "search_share": max(abs(rows[name]["ratio"]["ratio"] - 1) for name in level),
        "huang_same": all(draw["AGPM"] == draw["AGPM, huang"] for draw in every),
        "rows": rows,
        "listed": sorted(({"name": name, **row} for name, row in rows.items()), key=lambda row: row["evaluations"]),
        "settings": list(units),
        "n_settings": len(units),
        "draws": min(len(draws) for draws in units.values()),
    }
