"""Tables and plots of benchmarks/solvers.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crfkit.solvers import SOLVERS

Report = dict[str, Any]
GAPS = {"1 %": 1e-2, "0.1 %": 1e-3, "0.01 %": 1e-4, "0.001 %": 1e-5}
# CRFsuite's algorithm: (epochs, its other options, our solver)
ONLINE: dict[str, tuple[int, dict[str, float], str]] = {
    "l2sgd": (60, {"c2": 1.0}, "sgd"),
    "ap": (20, {}, "averaged-perceptron"),
    "pa": (20, {}, "passive-aggressive"),
    "arow": (20, {}, "arow"),
}
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")  # Okabe & Ito


def divided(a: float | None, b: float | None) -> float | None:
    return a / b if a and b else None


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def number(x: float | None, digits: int = 2, unit: str = "") -> str:
    return "–" if x is None else f"{x:,.{digits}f}{unit}"


def hessian_table(r: Report) -> str:
    rows = [(name, number(ratio)) for name, ratio in r["ratios"].items()]
    return table([f"{r['weights']:,} weights", "time, of that of value and gradient"], rows)


def smooth_table(r: Report) -> str:
    def cell(row: Report | None) -> str:
        return f"{row['seconds']:.2f} s, {row['work']:.0f}" if row else "–"

    parts = []
    for title, part in r.items():
        rows = [
            (name, *(cell(run["to"][gap]) for gap in GAPS), f"{run['evaluations']}", f"{run['products']}")
            for name, run in part["solvers"].items()
        ]
        about = (
            f"{part['weights']:,} weights, best {part['best']:,.2f}, a product costs {part['product']:.2f} evaluations"
        )
        parts.append(f"{title}: {about}\n\n" + table(["time, work to", *GAPS, "evaluations", "products in all"], rows))
    return "\n\n".join(parts)


def tron_table(r: Report) -> str:
    rows = [
        (name, f"{x['seconds']:.2f} s", f"{x['evaluations']}", f"{x['products']}", f"{x['value']:.4f}", x["status"])
        for name, x in r["solvers"].items()
    ]
    return table([f"‖g‖ ≤ {r['bound']:.3g}", "time", "evaluations", "products", "objective", ""], rows)


def crfsuite_table(r: Report) -> str:
    rows = []
    for algorithm, part in r.items():
        ours, theirs = part["crfkit"][0], part["crfsuite"]
        f1 = (number(100 * ours["f1"]), number(100 * theirs["f1"]), "")
        cells = (number(x["seconds per iteration"], 3, " s") for x in (ours, theirs))
        rows.append((f"{ONLINE[algorithm][2]}, {algorithm}: an epoch", *cells, number(part["times faster"], 1)))
        rows.append((f"F1 after {theirs['iterations']} epochs", *f1))
        for name, seconds in part.get("seconds to its F1", {}).items():
            cells = (number(seconds, 2, " s"), number(theirs["seconds"], 2, " s"))
            rows.append((f"{name}: to that F1 of {algorithm}", *cells, number(divided(theirs["seconds"], seconds), 1)))
    return table(["", "crfkit", "python-crfsuite", "times faster"], rows)


def l1_table(r: Report) -> str:
    rows = [
        (
            name,
            *(f"{row['evaluations']}" if row else "–" for row in run["to"].values()),
            f"{run['evaluations']}",
            number(run["value"]),
            f"{run['nonzeros']:,}",
        )
        for name, run in r.items()
    ]
    targets = next(iter(r.values()))["to"]
    return table(["evaluations to", *targets, "in all", "objective", "weights that are not zero"], rows)


def plot(r: Report, path: Path, top: float = 30.0) -> None:
    """The gap against seconds and against work, a row for each data set."""
    import matplotlib.pyplot as plt

    names = [name for name in SOLVERS if any(name in part["solvers"] for part in r.values())]
    figure, axes = plt.subplots(len(r), 2, figsize=(11, 4 * len(r)), sharey="row", squeeze=False, layout="constrained")
    lines: Report = {}
    for (title, part), pair in zip(r.items(), axes, strict=True):
        for ax, against, label in zip(pair, ("seconds", "work"), ("seconds", "work, in evaluations"), strict=True):
            for k, name in enumerate(names):
                trace = part["solvers"].get(name, {}).get("trace", {"value": [], against: []})
                gap = np.maximum(np.array(trace["value"]) / part["best"] - 1, 1e-9)
                shown = gap < top
                shown[:-1] |= shown[1:]
                (lines[name],) = ax.plot(
                    np.array(trace[against])[shown],
                    gap[shown],
                    color=COLOURS[k % len(COLOURS)],
                    linestyle="-" if k < len(COLOURS) else "--",
                    marker="osD^vPX<>*phd"[k % 13],
                    markersize=5,
                    markevery=max(1, int(shown.sum()) // 8),
                )
            ax.set(xscale="log", yscale="log", xlabel=label, title=title, ylim=(min(GAPS.values()) / 3, top))
            ax.grid(alpha=0.3)
        pair[0].set_ylabel("objective above the best, relative")
    figure.legend([lines[name] for name in names], names, loc="outside right upper", fontsize=11)
    figure.savefig(path, dpi=110)
    plt.close(figure)
