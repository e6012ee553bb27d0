"""The features that a model has by CRFsuite's rules, and a trained model without the features whose weight is zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crfkit._types import Entries, Flags, Floats, Ints, Label
from crfkit.chain.data import SequenceData
from crfkit.chain.encoding.sequences import Vocabulary
from crfkit.chain.fields.field import ChainField
from crfkit.chain.model.model import ChainModel
from crfkit.chain.training.train import ChainTraining
from crfkit.compat.pycrfsuite._instances import TrainingSet


@dataclass(frozen=True)
class FeatureRules(ChainTraining):
    """The options of chains, with a least frequency of features.

    The frequency of a feature is the sum of its values in the training data, so values below 0 count against it.
    """

    min_feature_frequency: float = 0.0

    def make_field(
        self, data: SequenceData, vocabulary: Vocabulary, classes: Sequence[Label]
    ) -> tuple[ChainField, tuple[str, ...]]:
        field, names = super().make_field(data, vocabulary, classes)
        least = self.min_feature_frequency
        if least <= 0 and (data.values is None or not (data.values < 0).any()):
            return field, names
        keep = np.concatenate([_state_frequencies(data, field), _transition_frequencies(data, field)]) >= least
        return _part(field, keep), names


def _state_frequencies(data: SequenceData, field: ChainField) -> Floats:
    assert data.labels is not None
    positions = np.repeat(np.arange(data.n_positions), np.diff(data.offsets))
    codes = data.attributes.astype(np.int64) * field.n_labels + data.labels[positions]
    attributes, labels = field.state_ids()
    places = np.searchsorted(attributes.astype(np.int64) * field.n_labels + labels, codes)
    return np.bincount(places, data.values, minlength=field.n_state).astype(np.float64)


def _transition_frequencies(data: SequenceData, field: ChainField) -> Floats:
    assert data.labels is not None
    inside = np.ones(data.n_positions, dtype=bool)
    inside[data.starts[:-1][data.lengths > 0]] = False
    at = np.flatnonzero(inside)
    codes = data.labels[at - 1].astype(np.int64) * field.n_labels + data.labels[at]
    i, j = field.transition_ids()
    places = np.searchsorted(i.astype(np.int64) * field.n_labels + j, codes)
    return np.bincount(places, minlength=field.n_transition).astype(np.float64)


def _part(field: ChainField, keep: Flags) -> ChainField:
    """Return a field with some of the weights."""
    return field.with_blocks(
        **{name: field.blocks[name].keep(keep[field.layout[name]]) for name in ("state", "transition")}
    )


def _offsets(ids: Ints, n: int) -> Ints:
    return np.concatenate([[0], np.cumsum(np.bincount(ids, minlength=n))]).astype(np.int64)


def active_model(training_set: TrainingSet, field: ChainField, w: Floats, record: Entries) -> ChainModel:
    """Return the model of the weights that are not zero; its attributes are in the order of their first appearance."""
    attributes, labels = field.state_ids()
    states = np.flatnonzero(w[: field.n_state])
    raw = training_set.raw_ids[attributes[states]]
    order = np.lexsort((labels[states], raw))
    known, ids = np.unique(raw, return_inverse=True)
    i, j = field.transition_ids()
    moves = np.flatnonzero(w[field.n_state :])
    codes = (i * field.n_labels + j)[moves]
    smaller = ChainField(
        field.n_labels,
        len(known),
        state_offsets=_offsets(ids, len(known)),
        state_labels=labels[states][order],
        transition_codes=codes,
        n_transition=len(codes),
    )
    vocabulary = replace(training_set.corpus.vocabulary, attributes=training_set.names.table(known.astype(np.int64)))
    weights = np.concatenate([w[states][order], w[field.n_state + moves]])
    return ChainModel(vocabulary, training_set.corpus.classes, smaller, weights, record)
