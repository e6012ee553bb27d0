"""Costs of wrong labels as weights: the cost-augmented chain is a chain with one more attribute at each position."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crfkit._types import Floats
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField


def with_costs(
    data: SequenceData, field: ChainField, w: Floats, cost: Floats
) -> tuple[SequenceData, ChainField, Floats]:
    """Return labelled sequences, a field and weights whose scores are score(x, y) + Σ_t cost[label of t, y_t].

    The attribute n + g, where n is the number of attributes, stands at the positions with the gold label g and has the
    weights cost[g, :].
    """
    labels, L, n = data.labels, field.n_labels, field.n_attributes
    assert labels is not None
    ends = data.offsets[1:]
    more = replace(
        data,
        offsets=data.offsets + np.arange(len(data.offsets)),
        attributes=np.insert(data.attributes, ends, n + labels),
        values=None if data.values is None else np.insert(data.values, ends, 1.0),
    )
    larger = field.with_blocks(state=field.blocks["state"].extended(L))
    return more, larger, np.insert(w, field.layout["state"].stop, cost.ravel())
