"""The strongest weights of a chain by label, and its transitions as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crfkit._types import Floats

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel


@dataclass(frozen=True)
class LabelWeights:
    """The attributes with the largest weights for and against a label."""

    label: str
    largest: list[tuple[str, float]]
    smallest: list[tuple[str, float]]


def label_weights(model: ChainModel, top: int = 8) -> list[LabelWeights]:
    """Return the strongest attributes of each label."""
    attribute, label = model.field.state_ids()
    w = model.w[model.field.layout["state"]]
    names = model.vocabulary.attributes
    found = []
    for j, name in enumerate(model.class_list):
        mine = np.flatnonzero(label == j)
        order = mine[np.argsort(-w[mine], kind="stable")].tolist()
        high = [(names[int(attribute[k])], float(w[k])) for k in order[:top] if w[k] > 0]
        low = [(names[int(attribute[k])], float(w[k])) for k in order[::-1][:top] if w[k] < 0]
        found.append(LabelWeights(str(name), high, low))
    return found


def transition_table(model: ChainModel) -> Floats:
    """Return the weights of transitions [label, next label]: NaN where there is none, −inf where it is forbidden."""
    L = model.field.n_labels
    table = np.full((L, L), np.nan)
    i, j = model.field.transition_ids()
    table[i, j] = model.w[model.field.layout["transition"]]
    if model.field.allowed is not None:
        table[~model.field.allowed] = -np.inf
    return table
