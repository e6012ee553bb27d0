"""The parts of the report page that need no script: tables, charts and bars, as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from crfkit.explain.labels import KINDS
from crfkit.explain.report.tables import table
from crfkit.schemes import phrases

if TYPE_CHECKING:
    from crfkit.explain.report.data import Report

HUES = (215, 28, 145, 285, 350, 185, 60, 320, 100, 245, 10, 165)


def hues(report: Report) -> dict[str, int]:
    """Return a colour for each type, the same everywhere."""
    return {row.name: HUES[k % len(HUES)] for k, row in enumerate(report.by_type)}


def spans(labels: Sequence[str], of_phrases: bool) -> list[tuple[int, int, str]]:
    """Return (start, end, type) of the phrases of labels, or of every position."""
    if of_phrases:
        return [(p.begin, p.end, p.type or "phrase") for p in phrases(labels)]
    return [(t, t + 1, label) for t, label in enumerate(labels)]


def facts(report: Report) -> str:
    model, test = report.model, report.test
    told = [f"model <b>{escape(str(model['name']))}</b>" if model["name"] else ""]
    told.append(f"on <b>{escape(str(test['name']))}</b>" if test["name"] else "")
    told.append(f"{test['sequences']:,} sentences, {test['tokens']:,} tokens")
    told.append(f"{model['labels']} labels, {model['attributes']:,} attributes, {model['weights']:,} weights")
    told.append(f"order {model['order']}" if model["order"] != 1 else "")
    told.append(f"penalty {escape(str(model['penalty']))}" if "penalty" in model else "")
    return " · ".join(text for text in told if text)


def scores(report: Report) -> str:
    cards = []
    for score in report.scores:
        low, high = score.interval
        floor = max(0.0, min(0.5, low - 0.1))  # where the scale begins
        x, a, b = (100 * (value - floor) / (1 - floor) for value in (score.value, low, high))
        cards.append(
            f"<div class='card'><small>{escape(score.name)}</small><b>{score.value * 100:.2f}</b>"
            f"<div class='range' aria-hidden='true'><i style='left:{a:.1f}%;width:{max(b - a, 0.5):.1f}%'></i>"
            f"<u style='left:{x:.1f}%'></u></div><small>{low * 100:.2f} – {high * 100:.2f}</small></div>"
        )
    notes = "".join(f"<p class='note'>{escape(note[:1].upper() + note[1:])}.</p>" for note in report.evaluation.notes)
    return (
        f"<p class='lead'>In percent, with intervals that hold the true value with {report.confidence * 100:g} % "
        f"confidence (bootstrap over sentences).</p>{notes}<div class='cards'>{''.join(cards)}</div>"
    )


def types(report: Report) -> str:
    if not report.by_type:
        return ""
    kinds = report.mistakes.by_type if report.mistakes is not None else {}
    most = max([sum(row.values()) for row in kinds.values()], default=0)
    rows = []
    for row in report.by_type:
        low, high = row.interval
        bar = (
            f"<span class='bar' aria-hidden='true'><i style='width:{row.f1 * 100:.1f}%'></i>"
            f"<u style='left:{low * 100:.1f}%;width:{max((high - low) * 100, 0.5):.1f}%'></u></span>"
        )
        cells = [f"{row.precision * 100:.2f}", f"{row.recall * 100:.2f}", f"{row.f1 * 100:.2f}{bar}"]
        cells += [f"{low * 100:.1f} – {high * 100:.1f}", f"{row.gold:,}", f"{row.found:,}", f"{row.correct:,}"]
        own = kinds.get(row.name, {})
        if most:
            cells.append(_stack(own, most))
        chip = f"<span class='tag hue' style='--h:{hues(report)[row.name]}'>{escape(row.name)}</span>"
        rows.append(f"<tr><th scope='row'>{chip}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    titles = [
        "precision",
        "recall",
        "F1",
        "interval of F1",
        "given",
        "found",
        "correct",
        *(["mistakes"] if most else []),
    ]
    legend = ""
    if most and report.mistakes is not None:
        told = {
            "boundary": "right type, other ends",
            "type": "right ends, other type",
            "both": "overlap only",
            "missed": "nothing found there",
            "invented": "nothing is there",
        }
        counts = report.mistakes.counts
        legend = "<ul class='legend'>" + "".join(
            f"<li><i class='k-{kind}'></i>{kind}: {told[kind]} ({counts[kind]:,})</li>" for kind in KINDS
        )
        legend += "</ul>"
    return table(["type" if report.phrases else "label", *titles], rows) + legend


def _stack(own: dict[str, int], most: int) -> str:
    total = sum(own.values())
    told = ", ".join(f"{n} {kind}" for kind, n in own.items() if n)
    pieces = "".join(f"<i class='k-{kind}' style='width:{100 * n / most:.2f}%'></i>" for kind, n in own.items() if n)
    bar = f"<span class='stack' title='{told}' role='img' aria-label='{told or 'none'}'>{pieces}</span>"
    return f"{bar}<span class='total'>{total:,}</span>"


def errors(report: Report) -> str:
    if not report.errors:
        return "<p class='lead'>There are none: every sentence is labelled as the file says.</p>"
    left = report.n_errors - len(report.errors)
    told = f"{report.n_errors:,} of {report.test['sequences']:,} sentences have a wrong label. "
    told += f"The {len(report.errors):,} least probable ones are here. " if left else ""
    told += "Choose a marked word to see why its label was chosen."
    kinds = ""
    if report.phrases:
        options = "".join(f"<option>{kind}</option>" for kind in KINDS)
        kinds = f"<label>mistake <select id='kind'><option value=''>any</option>{options}</select></label>"
    named = "".join(
        f"<option value='{escape(row.name, quote=True)}'>{escape(row.name)}</option>" for row in report.by_type
    )
    return (
        f"<p class='lead'>{told}</p><noscript><p>The errors are drawn by a script, which is turned off.</p></noscript>"
        "<div class='tools'><button type='button' id='previous' aria-keyshortcuts='ArrowLeft k'>← previous</button>"
        "<button type='button' id='next' aria-keyshortcuts='ArrowRight j'>next →</button>"
        "<span class='note keys'><kbd>←</kbd> <kbd>→</kbd> or <kbd>k</kbd> <kbd>j</kbd></span>"
        f"{kinds}<label>{'type' if report.phrases else 'label'} <select id='type'><option value=''>any</option>{named}"
        "</select></label><label>order <select id='order'><option value='worst'>least probable first</option>"
        "<option value='file'>as in the file</option></select></label>"
        "<label>word <input id='text' type='search' autocomplete='off'></label>"
        "<span class='place' id='place' role='status' aria-live='polite'></span></div><div id='sentence'></div>"
    )


def confused(report: Report) -> str:
    pairs = report.confusions.pairs[:15]
    if not pairs:
        return ""
    most = pairs[0][2]
    rows = [
        f"<tr><th scope='row'>{escape(str(a))}</th><td class='left'>{escape(str(b))}</td><td>{n:,}"
        f"<span class='bar' aria-hidden='true'><i style='width:{100 * n / most:.1f}%'></i></span></td></tr>"
        for a, b, n in pairs
    ]
    more = len(report.confusions.pairs) - len(pairs)
    note = f"<p class='note'>{more} other pairs are less frequent.</p>" if more else ""
    return f"<div class='narrow'>{table(['given', 'predicted', 'positions'], rows, left=2)}</div>{note}"


def weights(report: Report) -> str:
    most = max((abs(x) for row in report.weights for _, x in (*row.largest, *row.smallest)), default=0.0)
    if most == 0:
        return ""
    boxes = []
    for k, row in enumerate(report.weights):
        if not row.largest and not row.smallest:
            continue
        lines = "".join(_weight(name, x, most) for name, x in (*row.largest, *reversed(row.smallest)))
        first = f"<span><bdi>{escape(row.largest[0][0])}</bdi></span>" if row.largest else ""
        opened = " open" if k < 3 else ""
        boxes.append(
            f"<details{opened}><summary>{escape(row.label)}{first}</summary><ul class='bars'>{lines}</ul></details>"
        )
    return (
        "<p class='lead'>The attributes that speak most for each label, and most against it.</p>"
        f"<div class='weights'>{''.join(boxes)}</div>"
    )


def _weight(name: str, x: float, most: float) -> str:
    width = 50 * abs(x) / most
    side, left = ("for", 50.0) if x > 0 else ("against", 50.0 - width)
    return (
        f"<li><span>{x:+.2f}</span><span class='name'><bdi>{escape(name)}</bdi></span><span class='amount' "
        f"aria-hidden='true'><i class='{side}' style='width:{width:.1f}%;left:{left:.1f}%'></i></span></li>"
    )


def suspects(report: Report) -> str:
    if not report.suspects:
        return ""
    shown = {error.sequence for error in report.errors}
    rows = []
    for s in report.suspects:
        words: list[Any] = report.contexts[s.sequence]
        before, after = " ".join(words[max(0, s.position - 4) : s.position]), " ".join(words[s.position + 1 :][:4])
        place = str(s.sequence)
        if s.sequence in shown:
            place = f"<a href='#errors' data-sentence='{s.sequence}'>{s.sequence}</a>"
        context = f"<bdi>{escape(before)} <mark>{escape(words[s.position])}</mark> {escape(after)}</bdi>"
        rows.append(
            f"<tr><th scope='row'>{place}</th><td class='left context'>{context}</td><td class='left'>"
            f"{escape(str(s.given))}</td><td class='left'>{escape(str(s.suggested))}</td><td>{s.score:.3f}</td></tr>"
        )
    told = (
        "Labels of the file that may be wrong: the model is sure of another one, also in view of the given labels "
        f"around it. {'The 100 most suspect ones' if len(rows) == 100 else 'They'} are worth a look."
    )
    groups = "".join(
        f"<span class='tag'>{escape(group.change)} <b>{group.size:,}</b></span>" for group in report.corrections[:12]
    )
    titles = ["sentence", "words", "given", "suggested", "suspicion"]
    listed = table(titles, rows[:20], left=4)
    if len(rows) > 20:
        more = table(titles, rows[20:], left=4)
        listed += f"<details class='more'><summary>{len(rows) - 20} more</summary>{more}</details>"
    return f"<p class='lead'>{told}</p><p class='tags'>By what would be corrected: {groups}</p>{listed}"
