"""Plots; they need the extra `plots` (matplotlib)."""

from crfkit.plots.trace import plot_errors, plot_trace

__all__ = ["plot_errors", "plot_trace"]
