"""Small data for the examples of chain losses, which the laws of losses are tested with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField


def chain_example() -> tuple[SequenceData, ChainField]:
    """Return four sequences of three labels and five attributes, and the field of all their weights."""
    rng = np.random.default_rng(0)
    lengths = (3, 1, 4, 2)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    attributes = np.sort(rng.integers(0, 5, size=(sum(lengths), 2), dtype=np.int32), axis=1)
    offsets = np.arange(0, attributes.size + 1, 2)
    data = SequenceData(starts, offsets, attributes.ravel(), labels=rng.integers(0, 3, sum(lengths), np.int32))
    return data, ChainField.from_data(data, 3, 5, all_states=True, all_transitions=True)


def weak_chain_example() -> tuple[SequenceData, ChainField]:
    """Return the same with labels that are known in part, and weights of the positions."""
    data, field = chain_example()
    rng = np.random.default_rng(1)
    assert data.labels is not None
    targets = rng.random((data.n_positions, 3)) < 0.3
    targets[np.arange(data.n_positions), data.labels] = True
    weights = rng.choice([0.5, 1.0, 2.0], data.n_positions)
    return replace(data, labels=None, targets=targets, token_weights=weights), field
