"""The option --plot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from crfkit._values import Axes
from crfkit.errors import ParameterError
from crfkit.extras import check_installed, load


def check_plot(plot: Path | None) -> None:
    """Raise an error if a plot cannot be written to this file."""
    if plot is None:
        return
    if plot.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ParameterError(f"--plot must be a file that ends in .png, .svg or .pdf, not {plot}")
    check_installed("matplotlib", "--plot needs")


def write_plot(plot: Path, draw: Callable[[], Axes]) -> None:
    """Write the figure of the axes that `draw` returns."""
    from crfkit.cli.runtime.output import open_output

    load("matplotlib", "--plot needs").use("Agg")
    axes = draw()
    with open_output(plot) as out:
        axes.figure.savefig(out, format=plot.suffix.lower()[1:], dpi=150)
