"""The report as one page of HTML that needs no other file and no network. Every text from data is escaped."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from crfkit.chain.model.explanation_text import name_of
from crfkit.explain.report import charts, parts

if TYPE_CHECKING:
    from crfkit.chain.model.explanation import PositionExplanation
    from crfkit.explain.report.data import Report
    from crfkit.explain.report.errors import SentenceError

TERMS = 6  # contributions that are shown of each explanation


def page(report: Report) -> str:
    """Return the page."""
    from crfkit import __version__

    folder = files("crfkit.explain.report") / "assets"
    html, css, script = (folder.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("html", "css", "js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    sections = [
        ("scores", "Scores", parts.scores(report)),
        ("types", "Types" if report.phrases else "Labels", parts.types(report)),
        ("errors", "Errors", parts.errors(report)),
        ("confusions", "Confusions", parts.confused(report)),
        ("calibration", "Calibration", charts.calibration(report)),
        ("transitions", "Transitions", charts.transitions(report)),
        ("weights", "Weights", parts.weights(report)),
        ("suspects", "Suspect labels", parts.suspects(report)),
    ]
    kept = [(name, title, body) for name, title, body in sections if body]
    return _filled(
        html,
        {
            "title": escape(report.title),
            "version": escape(__version__),
            "facts": parts.facts(report),
            "nav": "".join(f"<a href='#{name}'>{title}</a>" for name, title, _ in kept),
            "sections": "\n".join(
                f"<section id='{name}' aria-labelledby='{name}-title'>"
                f"<h2 id='{name}-title'>{title}</h2>\n{body}</section>"
                for name, title, body in kept
            ),
            "css": css,
            "script": script,
            "script_hash": f"sha256-{digest}",
            "data": _json(_data(report)),
        },
    )


def _filled(template: str, values: dict[str, str]) -> str:
    """Return the template with each {{name}} replaced once; what is filled in is not looked at again."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], template)


def _json(value: Any) -> str:
    """Return JSON that is safe inside a script element: it cannot end it or begin a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _data(report: Report) -> dict[str, Any]:
    """Return what the script draws: the errors, with names in a table because they occur again and again."""
    seen = {label for error in report.errors for label in (*error.gold, *error.predicted)}
    names = [*report.labels, *sorted(seen - set(report.labels))]
    labels = {name: k for k, name in enumerate(names)}
    strings: dict[str, int] = {}
    errors = [_error(error, labels, strings, report.phrases) for error in report.errors]
    return {"labels": names, "hues": parts.hues(report), "strings": list(strings), "errors": errors}


def _error(error: SentenceError, labels: dict[str, int], strings: dict[str, int], phrases: bool) -> dict[str, Any]:
    found = [(s.start, s.end, s.type or "phrase", round(s.probability, 4)) for s in error.spans]
    if not phrases:
        found = [(t, t + 1, label) for t, label in enumerate(error.predicted)]  # type: ignore[misc]
    told: dict[str, Any] = {"n": error.sequence, "w": error.tokens, "k": error.kinds}
    told |= {"g": [labels[x] for x in error.gold], "p": [labels[x] for x in error.predicted]}
    told |= {"gs": parts.spans(error.gold, phrases), "ps": found, "pp": float(f"{error.probability:.4g}")}
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


def _why(one: PositionExplanation, gold: list[str], strings: dict[str, int]) -> list[Any]:
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
