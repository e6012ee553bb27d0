"""Plots; they need the extra `plots` (matplotlib)."""

from crfkit.plots.graph import plot_graph
from crfkit.plots.reliability import plot_reliability
from crfkit.plots.sequence import plot_explanation, plot_label_probabilities
from crfkit.plots.trace import plot_errors, plot_trace

__all__ = [
    "plot_errors",
    "plot_explanation",
    "plot_graph",
    "plot_label_probabilities",
    "plot_reliability",
    "plot_trace",
]
