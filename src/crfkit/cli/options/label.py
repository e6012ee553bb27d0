"""Options about the labels of training files: which are not known, and what they weigh."""

from __future__ import annotations

from typing import Annotated

from crfkit.cli.runtime.help import INPUT, MODEL, option
from crfkit.errors import ParameterError

UnknownLabel = Annotated[
    str | None,
    option(
        INPUT,
        "--unknown-label",
        metavar="NAME",
        help="Label that marks a token as unlabelled, as in --unknown-label '?'.",
    ),
]
LabelSeparator = Annotated[
    str | None,
    option(
        INPUT,
        "--label-separator",
        metavar="TEXT",
        help="Separator of alternative labels: with --label-separator '|', B-PER|B-LOC means one of the two.",
    ),
]
WeightColumn = Annotated[
    int | None,
    option(
        INPUT,
        "--weight-column",
        metavar="N",
        help="Column with the weight of each token: 1 is the first, -2 the one before the label. If all tokens of a "
        "sequence have the same weight, it is the weight of the sequence.",
    ),
]
ClassWeight = Annotated[
    list[str] | None,
    option(
        MODEL,
        "--class-weight",
        metavar="LABEL=W",
        help="Weight of a label; may be given several times. Other labels weigh 1. balanced: inversely proportional "
        "to how often a label occurs.",
    ),
]


def class_weights(given: list[str] | None) -> dict[str, float] | str | None:
    """Return the weights of --class-weight."""
    if not given:
        return None
    if given == ["balanced"]:
        return "balanced"
    if "balanced" in given:
        raise ParameterError("--class-weight balanced sets the weights of all labels; give it alone")
    weights: dict[str, float] = {}
    for text in given:
        label, _, number = text.rpartition("=")
        try:
            weights[label] = float(number)
        except ValueError:
            label = ""
        if not label:
            raise ParameterError(f"--class-weight is LABEL=W or balanced, not {text!r}")
    return weights
