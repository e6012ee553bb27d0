"""The charts of the report page: the reliability diagram as SVG, the weights of transitions as a heat map."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crfkit.explain.report.tables import table

if TYPE_CHECKING:
    from crfkit.explain.report.data import Report


class _Bin(NamedTuple):
    """Predictions whose probability is in a range: how probable they are on average, how many are right."""

    low: float
    high: float
    number: int
    confidence: float
    right: float


def calibration(report: Report) -> str:
    found = report.calibration
    if found is None:
        return ""
    kept = np.flatnonzero(found.counts)
    columns = (found.edges[:-1][kept], found.edges[1:][kept], found.counts[kept], found.confidence[kept])
    bins = [_Bin(*row) for row in zip(*(c.tolist() for c in (*columns, found.accuracy[kept])), strict=True)]
    size, margin = 300, 36

    def x(p: float) -> float:
        return margin + p * size

    def y(p: float) -> float:
        return 10 + (1 - p) * size

    most = max(row.number for row in bins)
    axis = "".join(
        f"<line class='axis' x1='{x(0)}' x2='{x(1)}' y1='{y(p)}' y2='{y(p)}'/>"
        f"<text x='{x(0) - 6}' y='{y(p) + 4}' text-anchor='end'>{p:g}</text>"
        f"<text x='{x(p)}' y='{y(0) + 16}' text-anchor='middle'>{p:g}</text>"
        for p in (0, 0.2, 0.4, 0.6, 0.8, 1)
    )
    counts = "".join(
        f"<rect class='count' x='{x(row.low) + 1:.1f}' width='{size / 10 - 2}' y='{y(0) - 60 * row.number / most:.1f}' "
        f"height='{60 * row.number / most:.1f}'/>"
        for row in bins
    )
    gaps = "".join(
        f"<line class='gap' x1='{x(r.confidence):.1f}' x2='{x(r.confidence):.1f}' y1='{y(r.confidence):.1f}' "
        f"y2='{y(r.right):.1f}'/>"
        for r in bins
    )
    points = " ".join(f"{x(row.confidence):.1f},{y(row.right):.1f}" for row in bins)
    dots = "".join(
        f"<circle class='dot' cx='{x(r.confidence):.1f}' cy='{y(r.right):.1f}' r='4'>"
        f"<title>{r.number:,} predictions of probability {r.confidence:.2f}: {r.right:.0%} are right</title></circle>"
        for r in bins
    )
    what = "phrases" if report.phrases else "labels"
    chart = (
        f"<svg viewBox='0 0 {margin + size + 14} {size + 46}' role='img' aria-label='Reliability diagram: share of "
        f"right {what} by their probability; the table beside it has the numbers'>{axis}{counts}"
        f"<line class='ideal' x1='{x(0)}' y1='{y(0)}' x2='{x(1)}' y2='{y(1)}'/>{gaps}"
        f"<polyline class='curve' points='{points}'/>{dots}"
        f"<text x='{x(0.5)}' y='{y(0) + 32}' text-anchor='middle'>probability of predicted {what}</text></svg>"
    )
    rows = [
        f"<tr><th scope='row'>{r.low:.1f} – {r.high:.1f}</th><td>{r.number:,}</td><td>{r.confidence:.3f}</td>"
        f"<td>{r.right:.3f}</td><td>{r.right - r.confidence:+.3f}</td></tr>"
        for r in bins
    ]
    told = (
        f"How often predicted {what} are right, by the probability that the model gives them. On the dashed line both "
        f"agree. The mean distance, the expected calibration error, is <b>{found.ece:.4f}</b>. Pale "
        "columns are numbers of predictions."
    )
    numbers = table(["probability", "number", "mean", "right", "difference"], rows)
    return f"<p class='lead'>{told}</p><div class='two'>{chart}{numbers}</div>"


def transitions(report: Report) -> str:
    w = report.transitions
    finite = np.isfinite(w)
    if not finite.any() or len(w) > 80:
        return ""
    most = float(np.abs(w[finite]).max()) or 1.0
    head = "".join(f"<th scope='col'><span>{escape(label)}</span></th>" for label in report.labels)
    rows = []
    for label, values in zip(report.labels, w.tolist(), strict=True):
        cells = "".join(_heat(value, most, label, other) for value, other in zip(values, report.labels, strict=True))
        rows.append(f"<tr><th scope='row'>{escape(label)}</th>{cells}</tr>")
    return (
        "<p class='lead'>Weights of transitions from the label of a row to the label of a column. Blue speaks for a "
        "transition, orange against it; empty cells have no weight, hatched ones are forbidden.</p>"
        "<div class='scroll' tabindex='0' role='region' aria-label='Weights of transitions'><table class='heat'><thead>"
        f"<tr><td></td>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _heat(value: float, most: float, label: str, other: str) -> str:
    if np.isnan(value):
        return "<td class='none'>·</td>"
    told = escape(f"{label} → {other}", quote=True)
    if np.isinf(value):
        return f"<td class='forbidden' title='{told}: forbidden'></td>"
    share = abs(value) / most
    kind = ("p" if value > 0 else "n") + (" strong" if share > 0.7 else "")
    style = f"--s:{100 * share**0.7:.0f}%"
    return f"<td class='{kind}' style='{style}' title='{told}: {value:+.3f}'>{value:.1f}</td>".replace("-0.0<", "0.0<")
