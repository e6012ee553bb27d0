"""Find the combinations of attributes and labels that occur in a training set: those have weights in the observed set.

Where the labels are known in part only, an attribute occurs with the labels that are possible at its position, but
positions where nothing is known say nothing: else every attribute there would have all weights. Label pairs and triples
occur if they are possible, whether or not anything is known: transitions are few.
"""

from __future__ import annotations

import numpy as np

from crfkit import _core
from crfkit._types import Flags, Ids, Ints
from crfkit.chain.data import SequenceData, gather


def observed_states(data: SequenceData, n_attributes: int, n_labels: int, of: Ids | None = None) -> tuple[Ints, Ids]:
    """Return the labels of each attribute as (offsets, labels); with `of`, those that the labels are mapped to."""
    offsets, attributes, labels = data.offsets, data.attributes, data.labels
    if data.targets is not None:
        t, labels = _known_positions(data.targets)
        offsets, entries = gather(data.offsets, t)
        attributes = data.attributes[entries]
    assert labels is not None
    return _core.observed_pairs(offsets, attributes, labels if of is None else of[labels], n_attributes, n_labels)


def observed_pairs(data: SequenceData, n_pair_attributes: int, n_labels: int) -> tuple[Ints, Ids]:
    """Return the label pairs of each pair attribute as (offsets, codes i·L + j)."""
    assert data.pair_offsets is not None
    assert data.pair_attributes is not None
    offsets, attributes, labels = data.pair_offsets, data.pair_attributes, data.labels
    if data.targets is not None:
        # Rows in pairs, one for (t − 1) without attributes and one for t with them, of all possible label pairs.
        told = data.targets.sum(axis=1) < n_labels
        t = np.flatnonzero(inner_positions(data, 1) & told & np.roll(told, 1))
        row, i, j = _possible_pairs(data.targets, t)
        ends, entries = gather(data.pair_offsets, t[row])
        offsets = np.repeat(ends, 2)[:-1]
        attributes = data.pair_attributes[entries]
        labels = np.stack([i, j], axis=1).astype(np.int32).ravel()
    assert labels is not None
    return _core.observed_pairs(offsets, attributes, labels, n_pair_attributes, n_labels, pairs=True)


def observed_runs(data: SequenceData, n_labels: int, lag: int) -> Ids:
    """Return the codes of the runs of lag + 1 labels that occur, ascending."""
    t = np.flatnonzero(inner_positions(data, lag))
    if data.targets is not None:
        return _possible_runs(data.targets, t, n_labels, lag)
    assert data.labels is not None
    codes = np.zeros(len(t), dtype=np.int64)
    for back in range(lag, -1, -1):
        codes = codes * n_labels + data.labels[t - back]
    return np.unique(codes).astype(np.int32)


def inner_positions(data: SequenceData, lag: int) -> Flags:
    """Return which positions have at least `lag` positions of their sequence before them."""
    places = np.arange(data.n_positions) - np.repeat(data.starts[:-1], data.lengths)
    return np.asarray(places >= lag)


def _known_positions(targets: Flags) -> tuple[Ints, Ids]:
    """Return (position, label) of all that is possible where something is known."""
    some = np.flatnonzero(targets.sum(axis=1) < targets.shape[1])
    row, labels = np.nonzero(targets[some])
    return some[row], labels.astype(np.int32)


def _possible_pairs(targets: Flags, t: Ints, cells: int = 1 << 25) -> tuple[Ints, Ints, Ints]:
    """Return (place in t, i, j) of all label pairs that are possible at t − 1 and t, a few positions at a time."""
    size = max(1, cells // targets.shape[1] ** 2)
    parts = [np.zeros((3, 0), dtype=np.int64)]
    for begin in range(0, len(t), size):
        here = t[begin : begin + size]
        row, i, j = np.nonzero(targets[here - 1][:, :, None] & targets[here][:, None, :])
        parts.append(np.stack([row + begin, i, j]))
    row, i, j = np.concatenate(parts, axis=1)
    return row, i, j


def _possible_runs(targets: Flags, t: Ints, n_labels: int, lag: int) -> Ids:
    # [i, j] occurs if Σ_t possible(t − 1, i)·possible(t, j) > 0; a run of three for each first label.
    here, before = targets[t].astype(np.float32), targets[t - 1].astype(np.float32)
    if lag == 1:
        return np.flatnonzero(before.T @ here).astype(np.int32)
    found = np.zeros((n_labels, n_labels * n_labels), dtype=bool)
    for i in range(n_labels):
        found[i] = ((before * targets[t - 2, i : i + 1]).T @ here > 0).ravel()
    return np.flatnonzero(found).astype(np.int32)
