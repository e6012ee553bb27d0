"""Convergence: how far the objective is above the best known value, against seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crfkit.errors import ParameterError
from crfkit.result import Result


def plot_trace(
    results: Mapping[str, Result], optimum: float | None = None, against: str = "seconds", ax: Any = None
) -> Any:
    """Draws one line per result; returns the axes.

    `optimum` is the value that gaps are measured from, by default the smallest in the results; `against` is any
    column of the trace that grows: "seconds", "iteration" or "evaluations".
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ParameterError("plots need matplotlib: pip install 'crfkit[plots]'") from None
    if against not in ("seconds", "iteration", "evaluations"):
        raise ParameterError(f"against must be seconds, iteration or evaluations, not {against!r}")
    best = min(result.value for result in results.values()) if optimum is None else optimum
    if ax is None:
        _, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for name, result in results.items():
        gaps = [(getattr(row, against), (row.value - best) / abs(best)) for row in result.trace if row.value > best]
        if gaps:
            ax.plot(*zip(*gaps, strict=True), label=name)
    ax.set_yscale("log")
    ax.set_xlabel(against if against != "iteration" else "iterations")
    ax.set_ylabel("objective above the optimum, relative")
    ax.grid(alpha=0.3)
    ax.legend()
    return ax
