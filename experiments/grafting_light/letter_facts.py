"""Derived numbers of Figures 4 and 5 and of weaker strengths."""

from __future__ import annotations

from typing import Any

from chain_facts import STOPPED, where

LETTERS = "acmsig"
LONG = 0.05  # of λ: a sub-gradient longer than this is not that of an optimum


def letters(found: dict[str, Any]) -> dict[str, Any]:
    """Return what the studies of the letters show; empty without results."""
    runs = found.get("runs", [])
    if not runs:
        return {}
    return {
        "figure_4": figure_4(runs),
        "figure_5": figure_5(runs),
        "pl": pseudo(runs),
        "beyond": beyond(runs),
        "paths": paths(found.get("paths", {})),
        "long": LONG,
    }


def in_order(runs: list[dict[str, Any]]) -> list[str]:
    """Return the letters of some runs in the order of the paper."""
    return sorted({run["letter"] for run in runs}, key=LETTERS.index)


def figure_4(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a row for each letter, with the three methods in it."""
    rows = []
    for letter in in_order(where(runs, study="bp")):
        here = {run["method"]: run for run in where(runs, study="bp", letter=letter)}
        if len(here) < 3:
            continue
        best = min(run["objective"] for run in here.values())
        light, greedy, full = here["grafting-light"], here["grafting"], here["full-opt-l1"]
        rows.append({
            "letter": letter,
            "images": light["images"],
            "strength": light["strength"],
            "share": light["share"],
            "light": light,
            "greedy": greedy,
            "full": full,
            "full_gap": full["objective"] / best - 1.0,
            "light_gap": light["objective"] / best - 1.0,
            "greedy_gap": greedy["objective"] / best - 1.0,
            "full_slope": full["optimality"] / full["strength"],
            "full_stopped": full["status"] == STOPPED,
            "gradient_ratio": greedy["evaluations"] / light["evaluations"],
            "time_ratio": greedy["cpu_seconds"] / light["cpu_seconds"],
            "full_ratio": full["cpu_seconds"] / light["cpu_seconds"],
        })  # fmt: skip
    names = [row["letter"] for row in rows]
    return {
        "rows": rows,
        "letters": names,
        "converged": [row["letter"] for row in rows if not row["full_stopped"]],
        "stopped": [row["letter"] for row in rows if row["full_stopped"]],
        "long": [row["letter"] for row in rows if row["full_slope"] > LONG],
        "unsettled": [row["letter"] for row in rows if row["full"]["unsettled"]],
        "same_edges": [row["letter"] for row in rows if row["light"]["edges"] == row["greedy"]["edges"]],
        "largest_gap": max((row["full_gap"] for row in rows), default=None),
        "light_gap": max((max(row["light_gap"], row["greedy_gap"]) for row in rows), default=None),
        "fewer_gradients": [row["letter"] for row in rows if row["gradient_ratio"] > 1],
        "less_time": [row["letter"] for row in rows if row["time_ratio"] > 1],
        "faster_than_full": [row["letter"] for row in rows if row["full_ratio"] > 1],
        "full_fewest": [row["letter"] for row in rows if row["full"]["evaluations"] < row["light"]["evaluations"]],
        "full_nll_larger": [row["letter"] for row in rows if row["full"]["nll"] > row["light"]["nll"] * 1.001],
        "light_seconds": _range([row["light"]["cpu_seconds"] for row in rows]),
        "greedy_seconds": _range([row["greedy"]["cpu_seconds"] for row in rows]),
        "full_seconds": _range([row["full"]["cpu_seconds"] for row in rows]),
        "ratios": _range([row["gradient_ratio"] for row in rows]),
        "bp_distance": _range([row[m]["bp_distance"] for row in rows for m in ("light", "greedy", "full")]),
        "samples_light": _range([row["light"]["samples_distance"] for row in rows]),
        "samples_full": _range([row["full"]["samples_distance"] for row in rows]),
        "limit": rows[0]["full"]["limit"] if rows else None,
        "blurred": [row["letter"] for row in rows if row["full"]["bp_blur"] > 1.1 * row["light"]["bp_blur"]],
    }


def _range(values: list[float]) -> list[float] | None:
    return [min(values), max(values)] if values else None


def figure_5(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return Grafting-Light and Grafting by select unit for one letter."""
    here = where(runs, study="units")
    light = {run["M"]: run for run in where(here, method="grafting-light")}
    greedy = {run["M"]: run for run in where(here, method="grafting")}
    units = sorted(light.keys() & greedy.keys())
    if not units:
        return {}
    letter = here[0]["letter"]
    full = where(runs, study="bp", letter=letter, method="full-opt-l1")
    wide = [unit for unit in units if unit >= 10]
    seconds = [greedy[unit]["cpu_seconds"] for unit in units]
    return {
        "letter": letter,
        "units": units,
        "rows": [{"M": unit, "light": light[unit], "greedy": greedy[unit]} for unit in units],
        "full": full[0] if full else None,
        "less_time": [unit for unit in units if light[unit]["cpu_seconds"] < greedy[unit]["cpu_seconds"]],
        "fewer_gradients": [unit for unit in units if light[unit]["evaluations"] < greedy[unit]["evaluations"]],
        "same_edges": len({run["edges"] for unit in units for run in (light[unit], greedy[unit])}) == 1,
        "light_gradients": _range([light[unit]["evaluations"] for unit in wide]),
        "greedy_gradients": _range([greedy[unit]["evaluations"] for unit in wide]),
        "greedy_falls": seconds[-1] < seconds[0],
        "largest_gap": max(run["objective"] for unit in units for run in (light[unit], greedy[unit]))
        / min(run["objective"] for unit in units for run in (light[unit], greedy[unit]))
        - 1.0,
    }


def pseudo(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return Grafting-Light by pseudo-likelihood, next to belief propagation."""
    rows = []
    for run in sorted(where(runs, study="pl"), key=lambda run: LETTERS.index(run["letter"])):
        other = where(runs, study="bp", letter=run["letter"], method="grafting-light")
        if other:
            rows.append({"letter": run["letter"], "pl": run, "bp": other[0]})
    return {
        "rows": rows,
        "letters": [row["letter"] for row in rows],
        "better": [row["letter"] for row in rows if row["pl"]["held_out"] < row["bp"]["held_out"]],
        "edges": _range([row["pl"]["edges"] for row in rows]),
        "seconds": _range([row["pl"]["cpu_seconds"] for row in rows]),
        "ratio": _range([row["pl"]["held_out"] / row["bp"]["held_out"] for row in rows]),
        "samples": _range([row["pl"]["samples_distance"] for row in rows if "samples_distance" in row["pl"]]),
    }


def beyond(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the three methods at strengths below the end of the path."""
    rows = []
    for letter, share in dict.fromkeys((run["letter"], run["share"]) for run in where(runs, study="beyond")):
        here = {run["method"]: run for run in where(runs, study="beyond", letter=letter, share=share)}
        if len(here) == 3:
            light, greedy, full = here["grafting-light"], here["grafting"], here["full-opt-l1"]
            row = {"letter": letter, "share": share, "strength": light["strength"]}
            rows.append(row | {"light": light, "greedy": greedy, "full": full})
    every = [row[m] for row in rows for m in ("light", "greedy", "full")]
    return {
        "rows": rows,
        "letters": sorted({row["letter"] for row in rows}),
        "limit": every[0]["limit"] if every else None,
        "no_optimum": all(run["optimality"] > LONG * run["strength"] for run in every) if every else None,
        "full_denser": all(row["full"]["edges"] > 5 * row["light"]["edges"] for row in rows) if rows else None,
        "full_farther": all(_farther(row["full"], row["light"]) for row in rows) if rows else None,
        "full_blurrier": [r["letter"] for r in rows if r["full"]["bp_blur"] > 1.1 * r["light"]["bp_blur"]],
    }


def _farther(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether both average images of `one` are farther from the training images."""
    return all(one[key] > other[key] for key in ("bp_distance", "samples_distance"))


def paths(found: dict[str, Any]) -> dict[str, Any]:
    """Return where the paths end, and whether held-out images were still getting more probable there."""
    ends = {}
    for name, rows in found.items():
        good = [row for row in rows if row["optimal"]]
        ends[name] = {
            "last": good[-1] if good else None,
            "next": None if rows[-1]["optimal"] else rows[-1],
            "improving": bool(good) and min(good, key=lambda row: row["held_out"]) is good[-1],
        }
    return {
        "rows": [{"name": name} | row for name, rows in found.items() for row in rows],
        "ends": ends,
        "improving": [name for name, end in ends.items() if end["improving"]],
        "bp": [name for name in ends if name.endswith(" bp")],
        "improving_bp": [name for name, end in ends.items() if end["improving"] and name.endswith(" bp")],
    }
