"""The report as one page of HTML that needs no other file and no network.

Each section is a template in assets/. Jinja escapes every text from data.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crfkit._values import Entries, Label
from crfkit.chain.model.explanation_text import name_of
from crfkit.explain.labels import KINDS
from crfkit.explain.report.data import spans_of

if TYPE_CHECKING:
    from crfkit.chain.model.explanation import PositionExplanation
    from crfkit.explain.report.data import Report
    from crfkit.explain.report.errors import SentenceError

HUES = (215, 28, 145, 285, 350, 185, 60, 320, 100, 245, 10, 165)
MEANINGS = (
    "right type, other ends",
    "right ends, other type",
    "overlap only",
    "nothing found there",
    "nothing is there",
)
MOST_LABELS = 80  # of the table of transitions
TERMS = 6  # contributions that are shown of each explanation


def page(report: Report) -> str:
    """Return the page."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    from crfkit import __version__

    folder = files("crfkit.explain.report") / "assets"

    def read(name: str) -> str:
        return folder.joinpath(name).read_text("utf-8")

    html = Environment(
        loader=FunctionLoader(read), undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    html.filters |= {
        "commas": lambda number: f"{number:,}",
        "fixed": lambda value, digits: f"{value:.{digits}f}",
        "percent": lambda share, digits=2: f"{100 * share:.{digits}f}",
    }
    script = read("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    values = _values(report)
    return html.get_template("page.html").render(
        report=report,
        sections=_sections(report, values),
        version=__version__,
        css=read("page.css"),
        script=script,
        script_hash=f"sha256-{digest}",
        data=_json(_data(report)),
        **values,
    )


def _values(report: Report) -> Entries:
    """Return what the templates show besides the report: colours, bins and the largest values of charts."""
    finite = np.abs(report.transitions[np.isfinite(report.transitions)])
    mistakes = {} if report.mistakes is None else report.mistakes.by_type
    return {
        "hues": _hues(report),
        "kinds": dict(zip(KINDS, MEANINGS, strict=True)),
        "mistakes": mistakes,
        "most_mistakes": max((sum(row.values()) for row in mistakes.values()), default=0),
        "bins": _bins(report),
        "most_transition": float(finite.max(initial=0.0)) or 1.0,
        "most_weight": max((abs(x) for row in report.weights for _, x in (*row.largest, *row.smallest)), default=0.0),
        "shown": {error.sequence for error in report.errors},
    }


def _sections(report: Report, values: Entries) -> list[tuple[str, str]]:
    """Return the names of the templates that have something to show, and their titles."""
    sections = [
        ("scores", "Scores", True),
        ("types", "Types" if report.phrases else "Labels", report.by_type),
        ("errors", "Errors", True),
        ("confusions", "Confusions", report.confusions.pairs),
        ("calibration", "Calibration", values["bins"]),
        ("transitions", "Transitions", len(report.labels) <= MOST_LABELS and np.isfinite(report.transitions).any()),
        ("weights", "Weights", values["most_weight"]),
        ("suspects", "Suspect labels", report.suspects),
    ]
    return [(name, title) for name, title, shown in sections if shown]


def _hues(report: Report) -> dict[str, int]:
    """Return a colour for each type, the same everywhere."""
    return {row.name: HUES[k % len(HUES)] for k, row in enumerate(report.by_type)}


class _Bin(NamedTuple):
    """Predictions whose probability is in a range: how probable they are on average, how many are right."""

    low: float
    high: float
    number: int
    confidence: float
    right: float


def _bins(report: Report) -> list[_Bin]:
    """Return the bins that have predictions."""
    found = report.calibration
    if found is None:
        return []
    columns = (found.edges[:-1], found.edges[1:], found.counts, found.confidence, found.accuracy)
    return [_Bin(*row) for row in zip(*(column.tolist() for column in columns), strict=True) if row[2]]


def _json(value: object) -> str:
    """Return JSON that is safe inside a script element: it cannot end it or begin a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _data(report: Report) -> Entries:
    """Return what the script draws: the errors, with names in a table because they occur again and again."""
    seen = {label for error in report.errors for label in (*error.gold, *error.predicted)}
    names = [*report.labels, *sorted(seen - set(report.labels))]
    labels = {name: k for k, name in enumerate(names)}
    strings: dict[str, int] = {}
    errors = [_error(error, labels, strings, report.phrases) for error in report.errors]
    return {"labels": names, "hues": _hues(report), "strings": list(strings), "errors": errors}


def _error(error: SentenceError, labels: dict[str, int], strings: dict[str, int], phrases: bool) -> Entries:
    found = [(s.start, s.end, s.type or "phrase", round(s.probability, 4)) for s in error.spans]
    if not phrases:
        found = [(t, t + 1, label) for t, label in enumerate(error.predicted)]  # type: ignore[misc]
    told: Entries = {"n": error.sequence, "w": error.tokens, "k": error.kinds}
    told |= {"g": [labels[x] for x in error.gold], "p": [labels[x] for x in error.predicted]}
    told |= {"gs": spans_of(error.gold, phrases), "ps": found, "pp": float(f"{error.probability:.4g}")}
    told["lp"] = None if error.log_probability == float("-inf") else round(error.log_probability, 3)
    told["alt"] = [
        [
            float(f"{other.probability:.4g}"),
            [[t, labels[str(x)]] for t, x in enumerate(other.labels) if str(x) != error.predicted[t]],
        ]
        for other in error.alternatives
    ]
    told["why"] = [_why(one, error.gold, strings) for one in error.why]
    return told


def _why(one: PositionExplanation, gold: list[str], strings: dict[str, int]) -> list[Label]:
    if one.alternative is None or str(one.runner_up) != gold[one.position]:
        return [one.position, 0, 0, None, [], 0, 0]

    def number(text: str) -> int:
        return strings.setdefault(text, len(strings))

    terms = [[round(c.amount, 2), number(name_of(c, one.position))] for c in one.contributions[:TERMS]]
    rest = one.contributions[TERMS:]
    chances = [float(f"{p:.3g}") for p in (one.probability, one.runner_up_probability)]
    return [one.position, *chances, round(one.difference, 3), terms, round(_sum(c.amount for c in rest), 2), len(rest)]


def _sum(values: Iterable[float]) -> float:
    return float(sum(values))
