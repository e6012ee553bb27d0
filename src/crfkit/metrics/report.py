"""The scores of an evaluation as a table, for `print` and for `crfkit eval`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crfkit.metrics import Counts, Evaluation


def report(result: Evaluation, labels: bool = False, mistakes: int = 10) -> str:
    """Return the scores as text: of phrases if labels mark them, otherwise of labels with the most frequent mistakes.

    labels : whether to show the scores of labels besides the scores of phrases
    mistakes : number of pairs of confused labels to show
    """
    lines = [
        f"{_count(result.tokens, 'token')}, accuracy {result.accuracy:.2%}; "
        f"{_count(result.sequences, 'sequence')}, {result.sequence_accuracy:.2%} without error"
    ]
    if result.scheme is not None:
        lines.append(f"tagging scheme {result.scheme.upper()}")
    lines += result.notes
    if result.has_phrases:
        rows = [("overall", result.overall), *sorted(result.by_type.items())]
        lines += _table(rows, "    gold  found  correct", 6)
    if result.has_phrases and labels:
        lines.append("")
    if labels or not result.has_phrases:
        lines += _label_tables(result, mistakes)
    return "\n".join(lines)


def _label_tables(result: Evaluation, mistakes: int) -> list[str]:
    rows = [(str(label), counts) for label, counts in result.by_label.items()]
    lines = _table(rows, "  support  found  correct", 7, result.macro)
    confused = result.mistakes
    if confused and mistakes > 0:
        lines += ["", "positions  gold → predicted"]
        lines += [f"{n:9d}  {gold} → {predicted}" for gold, predicted, n in confused[:mistakes]]
        if len(confused) > mistakes:
            lines.append(f"{'':9}  and {_count(len(confused) - mistakes, 'other pair')}")
    return lines


def _table(
    rows: list[tuple[str, Counts]], columns: str, digits: int, macro: Mapping[str, float] | None = None
) -> list[str]:
    width = max([len("overall"), *(len(name) for name, _ in rows)])
    lines = [f"{'':{width}}  precision   recall       F1{columns}"]
    if macro is not None:
        lines.append(f"{'macro':{width}}  {macro['precision']:9.2%}  {macro['recall']:7.2%}  {macro['f1']:7.2%}")
    for name, counts in rows:
        lines.append(
            f"{name:{width}}  {counts.precision:9.2%}  {counts.recall:7.2%}  {counts.f1:7.2%}  "
            f"{counts.gold:{digits}d} {counts.predicted:6d}  {counts.correct:7d}"
        )
    return lines


def _count(n: int, thing: str) -> str:
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"
