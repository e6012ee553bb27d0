"""Explain a model's errors, find wrong labels, choose what to label next, and compare two models."""

from crfkit.explain.comparison import Comparison, Difference, compare
from crfkit.explain.label_errors import Group, LabelErrors, Suspect, find_label_errors, suspect_labels
from crfkit.explain.labels import Confusions, Mistake, Mistakes, confusions, mistakes
from crfkit.explain.report.data import Report, make_report
from crfkit.explain.sequences import LearningCurve, WorstSequence, learning_curve, worst_sequences
from crfkit.explain.suggestions import Suggestion, suggest

__all__ = [
    "Comparison",
    "Confusions",
    "Difference",
    "Group",
    "LabelErrors",
    "LearningCurve",
    "Mistake",
    "Mistakes",
    "Report",
    "Suggestion",
    "Suspect",
    "WorstSequence",
    "compare",
    "confusions",
    "find_label_errors",
    "learning_curve",
    "make_report",
    "mistakes",
    "suggest",
    "suspect_labels",
    "worst_sequences",
]
