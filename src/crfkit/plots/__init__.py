"""Plots; they need the extra `plots` (matplotlib)."""

from crfkit.plots.trace import plot_trace

__all__ = ["plot_trace"]
