"""Convergence: the objective, its gap to the best known value, and errors on data, against seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crfkit._values import Axes
from crfkit.errors import ParameterError
from crfkit.extras import load
from crfkit.result import Result


def plot_trace(
    results: Mapping[str, Result], optimum: float | None = None, against: str = "seconds", ax: Axes = None
) -> Axes:
    """Draw one line per result. Return the axes.

    `optimum` is the value that gaps are measured from, by default the smallest in the results; `against` is any
    column of the trace that grows: "seconds", "iteration" or "evaluations".
    """
    plt = _pyplot(against)
    best = min(result.value for result in results.values()) if optimum is None else optimum
    if ax is None:
        _, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for name, result in results.items():
        gaps = [(getattr(row, against), (row.value - best) / abs(best)) for row in result.trace if row.value > best]
        if gaps:
            ax.plot(*zip(*gaps, strict=True), label=name)
    ax.set_yscale("log")
    _label(ax, against, "objective above the optimum, relative")
    ax.legend()
    return ax


def plot_errors(
    results: Mapping[str, Result],
    keys: Sequence[str] = ("train_error", "test_error"),
    against: str = "seconds",
    axes: Sequence[Axes] | None = None,
) -> Axes:
    """Draw a panel for the objective and one for each key, with a line per result. Return the axes.

    Keys are what callbacks returned: with ``callbacks=[lambda it: {"test_error": error(it.w)}]`` a trace has
    "test_error". Rows without a key are omitted from its panel. Seconds are without the time that callbacks took.
    """
    plt = _pyplot(against)
    if isinstance(keys, str):
        keys = (keys,)
    rows = [row for result in results.values() for row in result.trace]
    for key in keys:
        if not any(key in row.extra for row in rows):
            there = ", ".join(sorted({name for row in rows for name in row.extra})) or "nothing"
            raise ParameterError(f"no trace has {key!r}; its callbacks returned {there}")
    if axes is None:
        n = 1 + len(keys)
        _, (axes,) = plt.subplots(1, n, figsize=(4.2 * n, 3.6), squeeze=False, layout="constrained")
    assert axes is not None
    if len(axes) != 1 + len(keys):
        raise ParameterError(f"expected {1 + len(keys)} axes, one per panel; got {len(axes)}")
    of_panels: list[str | None] = [None, *keys]
    for ax, panel in zip(axes, of_panels, strict=True):
        for name, result in results.items():
            points = [
                (getattr(row, against), row.value if panel is None else row.extra[panel])
                for row in result.trace
                if panel is None or panel in row.extra
            ]
            x, y = zip(*points, strict=True) if points else ((), ())
            ax.plot(x, y, label=name)
        _label(ax, against, "objective" if panel is None else panel.replace("_", " "))
    axes[0].legend()
    return axes


def _pyplot(against: str) -> Axes:
    plt = load("matplotlib.pyplot", "plots need")
    if against not in ("seconds", "iteration", "evaluations"):
        raise ParameterError(f"against must be 'seconds', 'iteration' or 'evaluations', not {against!r}")
    return plt


def _label(ax: Axes, against: str, y: str) -> None:
    ax.set_xlabel(against if against != "iteration" else "iterations")
    ax.set_ylabel(y)
    ax.grid(alpha=0.3)
