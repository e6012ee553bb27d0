"""Draw what a tagger thinks of one sequence: the probabilities of its labels, and why a label was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crfkit._checks import check_count
from crfkit._values import Axes
from crfkit.chain.model.explanation_text import name_of
from crfkit.chain.model.token_text import token_text
from crfkit.errors import ParameterError
from crfkit.extras import load
from crfkit.wording import counted

if TYPE_CHECKING:
    from crfkit.chain.model.explanation import PositionExplanation


def plot_label_probabilities(
    model: Any, x: object, tokens: Sequence[str] | None = None, least: float = 0.05, ax: Axes = None
) -> Axes:
    """Draw p(label | x) of each position of a sequence as a heat map. Return the axes.

    model : a fitted :class:`~crfkit.ChainCRF` or a :class:`~crfkit.ChainModel`
    x : one sequence, as the model takes it
    tokens : texts to show; by default words are looked for in x
    least : the smallest probability that is written as a number

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from crfkit import ChainCRF
    >>> crf = ChainCRF().fit([[["w=the"], ["w=cat"]], [["w=a"], ["w=cat"]]], [["DET", "NOUN"], ["DET", "NOUN"]])
    >>> ax = plot_label_probabilities(crf, [["w=a"], ["w=cat"]], tokens=["a", "cat"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['DET', 'NOUN']
    """
    plt = load("matplotlib.pyplot", "plots need")
    p = model.predict_marginals([x])[0]  # [positions, labels]
    names = [str(label) for label in getattr(model, "class_list", None) or model.classes_]
    texts = [token_text(x, t) or str(t) for t in range(len(p))] if tokens is None else [str(text) for text in tokens]
    if len(texts) != len(p):
        raise ParameterError(f"got {counted(len(texts), 'token')} for a sequence of {counted(len(p), 'position')}")
    if ax is None:
        size = (1.5 + 0.75 * max(4, len(p)), 1.2 + 0.32 * len(names))
        _, ax = plt.subplots(figsize=size, layout="constrained")
    ax.imshow(p.T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (t, k), value in np.ndenumerate(p):
        if value >= least:
            ax.text(t, k, f"{value:.2f}", ha="center", va="center", color="white" if value > 0.5 else "black")
    ax.set_xticks(range(len(p)), texts)
    ax.set_yticks(range(len(names)), names)
    ax.set_title("p(label | sequence)")
    return ax


def plot_explanation(one: PositionExplanation, top: int = 8, ax: Axes = None) -> Axes:
    """Draw what decided for the label of a position as bars: the `top` largest contributions, and the rest as one.

    Return the axes. The bars add up to log(p/q): p is the probability of the best labelling, q the probability of the
    best one with the runner-up at this position.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from crfkit import ChainCRF
    >>> crf = ChainCRF().fit([[["w=the"], ["w=cat"]], [["w=a"], ["w=cat"]]], [["DET", "NOUN"], ["DET", "NOUN"]])
    >>> plot_explanation(crf.explain([["w=a"], ["w=cat"]])[1]).get_title()
    "'cat': NOUN rather than DET, by 1.4"
    """
    plt = load("matplotlib.pyplot", "plots need")
    check_count(top=top)
    if one.alternative is None:
        raise ParameterError(f"no label other than {one.label} is possible at position {one.position}")
    shown, rest = one.contributions[:top], one.contributions[top:]
    names, amounts = [name_of(c, one.position) for c in shown], [c.amount for c in shown]
    if rest:
        names.append(counted(len(rest), "other weight"))
        amounts.append(sum(c.amount for c in rest))
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 0.9 + 0.3 * len(names)), layout="constrained")
    places = range(len(names))  # not the names: two contributions may have the same one
    ax.barh(places, amounts, color=["C0" if amount > 0 else "C1" for amount in amounts])
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set_yticks(places, names)
    ax.invert_yaxis()
    token = repr(one.token) if one.token else f"position {one.position}"
    ax.set_title(f"{token}: {one.label} rather than {one.runner_up}, by {one.difference:.1f}")
    ax.set_xlabel("contribution to the difference of the scores")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
