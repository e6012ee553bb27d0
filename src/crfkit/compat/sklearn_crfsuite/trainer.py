"""A trainer that prints one line for each iteration."""

from __future__ import annotations

from crfkit._values import Entries
from crfkit.compat import pycrfsuite


class LinePerIterationTrainer(pycrfsuite.Trainer):
    """Print the progress of each iteration on one line, and a table of the labels' scores at the end."""

    def on_iteration(self, log: str, info: Entries) -> None:
        parts = ["Iter {num:<3} ", "time={time:<5.2f} ", "loss={loss:<8.2f} "]
        if "active_features" in info:
            parts.append("active={active_features:<5} ")
        if "avg_precision" in info:
            parts.append("precision={avg_precision:0.3f}  recall={avg_recall:0.3f}  F1={avg_f1:0.3f}  ")
            parts.append("Acc(item/seq)={item_accuracy_float:0.3f} {instance_accuracy_float:0.3f}  ")
        if "feature_norm" in info:
            parts.append("feature_norm={feature_norm:<8.2f}")
        print("".join(parts).format(**{"time": 0.0, "loss": float("nan"), **info}).strip())

    def on_optimization_end(self, log: str) -> None:
        scores = (self.logparser.last_iteration or {}).get("scores")
        if scores:
            rows = [
                [label, *(f"{value or 0.0:.3f}" for value in (score.precision, score.recall, score.f1)), str(score.ref)]
                for label, score in sorted(scores.items())
            ]
            table = _table(["Label", "Precision", "Recall", "F1", "Support"], rows)
            width = len(table[0])
            print("=" * width, *table, "-" * width, sep="\n")
        super().on_optimization_end(log)


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a table: the first column to the left, numbers to the right, a rule under the head."""
    # two blanks more than a title has, as tabulate makes it for sklearn-crfsuite
    widths = [max(len(title) + 2, *map(len, cells)) for title, *cells in zip(head, *rows, strict=True)]

    def line(cells: list[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        return "  ".join([f"{first[0]:<{first[1]}}", *(f"{cell:>{width}}" for cell, width in others)])

    return [line(head), "  ".join("-" * width for width in widths), *map(line, rows)]
