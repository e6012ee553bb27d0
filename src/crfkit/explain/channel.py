"""A chain that has also seen labels which may be wrong: p(y | x, given) ∝ p(y | x) · Π_t p(given_t | y_t).

The second factor is the channel: the probability that an annotator writes label k where j is right. In the chain it is
one more attribute at each position, "label k was given", whose weight for label j is log p(k | j), so inference
stays exact, whatever the chain has: orders, pair attributes, constraints.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from crfkit._types import Floats, Ids
from crfkit.chain.data import SequenceData
from crfkit.chain.inference import ChainInference

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel


def with_given(data: SequenceData, given: Ids, n_attributes: int) -> SequenceData:
    """Return the data with the attribute "label k was given", n_attributes + k, at each position."""
    places = data.offsets[1:]  # after the last attribute of each position: ids stay ascending
    values = None if data.values is None else np.insert(data.values, places, 1.0)
    return replace(
        data,
        offsets=data.offsets + np.arange(len(data.offsets)),
        attributes=np.insert(data.attributes, places, n_attributes + given),
        values=values,
    )


def with_channel(model: ChainModel, log_channel: Floats) -> ChainInference:
    """Return inference of a model with log p(k | j) = log_channel[j, k].

    The labels k that may be given need not be labels of the model.
    """
    field, K = model.field, log_channel.shape[1]
    state, of_class = field.blocks["state"].extended(K), field.blocks["class"].extended(K, empty=True)
    own, end = model.w, field.layout["state"].stop
    classes = np.zeros(of_class.size - field.n_class)  # the channel knows no classes
    w = np.concatenate([own[:end], log_channel.T.ravel(), own[end:], classes])
    return ChainInference(field.with_blocks(**{"state": state, "class": of_class}), w, model.n_threads)
