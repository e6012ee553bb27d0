"""Explanations of labels as text, as a table in HTML and as a frame."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from crfkit._values import Frame
from crfkit.wording import counted

if TYPE_CHECKING:
    from crfkit.chain.model.explanation import Contribution, Explanation, PositionExplanation


def name_of(c: Contribution, position: int) -> str:
    """Return what a contribution is called in an explanation of a position."""
    labels, instead = " → ".join(map(str, c.labels)), " → ".join(map(str, c.instead))
    if c.kind == "attribute":
        value = "" if c.value == 1.0 else f" = {c.value:g}"
        return f"{c.name}{value}" + ("" if c.position == position else f"  (position {c.position}: {labels})")
    change = f"{labels}  rather than {instead}" if labels != instead else labels
    return f"{c.name}  {change}" if c.name else change


def position_text(one: PositionExplanation, top: int) -> str:
    shown = f" {one.token!r}" if one.token else ""
    head = f"{one.position}{shown}: {one.label} ({one.probability:.3f})"
    if one.alternative is None:
        return f"{head}; no other label is possible here"
    lines = [f"{head} rather than {one.runner_up} ({one.runner_up_probability:.3f}), by {one.difference:.3f}"]
    lines += [f"  {c.amount:+8.3f}  {name_of(c, one.position)}" for c in one.contributions[:top]]
    rest = one.contributions[top:]
    if rest:
        lines.append(f"  {sum(c.amount for c in rest):+8.3f}  from {counted(len(rest), 'other weight')}")
    return "\n".join(lines)


def text(explanation: Explanation, top: int) -> str:
    head = f"labels with probability {explanation.probability:.3f}"
    return "\n".join([head, *(one.to_text(top) for one in explanation)])


def html(explanation: Explanation, top: int) -> str:
    rows = []
    for one in explanation:
        shown = one.contributions[:top]
        amounts = "".join(
            f"<li><data value='{c.amount:.6g}'>{c.amount:+.3f}</data> {escape(name_of(c, one.position))}</li>"
            for c in shown
        )
        rest = one.contributions[top:]
        if rest:
            amounts += f"<li>{sum(c.amount for c in rest):+.3f} from {counted(len(rest), 'other weight')}</li>"
        other = ("—", "—", "—")
        if one.alternative is not None:
            other = (escape(str(one.runner_up)), f"{one.runner_up_probability:.3f}", f"{one.difference:.3f}")
        cells = [str(one.position), f"<bdi>{escape(one.token)}</bdi>", escape(str(one.label)), f"{one.probability:.3f}"]
        body = "".join(f"<td>{cell}</td>" for cell in (*cells, *other, f"<ul>{amounts}</ul>"))
        rows.append(f"<tr>{body}</tr>")
    titles = ("position", "token", "label", "probability", "runner-up", "its probability", "difference", "because of")
    head = "".join(f"<th scope='col'>{title}</th>" for title in titles)
    return f"<table class='crfkit-explanation'><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def frame(explanation: Explanation) -> Frame:
    from crfkit.extras import load

    return load("pandas", "to_frame needs").DataFrame(
        [
            {
                "position": one.position,
                "token": one.token,
                "label": one.label,
                "probability": one.probability,
                "runner_up": one.runner_up,
                "runner_up_probability": one.runner_up_probability,
                "difference": one.difference,
                "kind": c.kind,
                "name": c.name,
                "at": c.position,
                "labels": " → ".join(map(str, c.labels)),
                "instead": " → ".join(map(str, c.instead)),
                "weight": c.weight,
                "value": c.value,
                "amount": c.amount,
            }
            for one in explanation
            for c in one.contributions
        ]
    )
