"""Layers as chain models, so that models' explanations, reports and calibration apply to a network's output; and back.

A chain model of a layer has an attribute for each tag, whose value is the emission and whose weight is 1, and
attributes for the first and the last step, whose weights are the start and end transitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from crfkit.errors import ParameterError, option_error
from crfkit.torch.layer import CRF

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel

FIRST, LAST = "first step", "last step"


def to_chain_model(layer: CRF) -> ChainModel:
    """Return the layer as a chain model. It takes what `emission_items` returns; nothing is shared with the layer.

    >>> layer = CRF(3, batch_first=True, labels=["O", "B-X", "I-X"], scheme="iob2")
    >>> model, emissions = to_chain_model(layer), torch.randn(2, 5, 3)
    >>> tags = [[layer.labels[k] for k in row] for row in layer.decode(emissions)]
    >>> model.predict(emission_items(layer, emissions)) == tags
    True
    """
    from crfkit import _core
    from crfkit.chain.encoding.sequences import Vocabulary
    from crfkit.chain.fields.field import ChainField
    from crfkit.chain.model.model import ChainModel
    from crfkit.labels import label_array

    n, labels = layer.num_tags, _labels(layer)
    forbidden = [x.cpu().numpy() for x in (layer._forbidden, layer._forbidden_start, layer._forbidden_end)]
    allowed = [~mask if mask.any() else None for mask in forbidden]
    field = ChainField(
        n,
        n + 2,
        state_offsets=np.concatenate([np.arange(n + 1), [2 * n, 3 * n]]),
        state_labels=np.tile(np.arange(n, dtype=np.int32), 3),
        n_transition=n * n,
        allowed=allowed[0],
        allowed_start=allowed[1],
        allowed_end=allowed[2],
    )
    weights = (layer.start_transitions, layer.end_transitions, layer.transitions.flatten())
    w = np.concatenate([np.ones(n), *(x.detach().cpu().double().numpy() for x in weights)])
    names = _core.StringTable.from_strings([*map(_name, labels), FIRST, LAST])
    vocabulary = Vocabulary("items", None, names, _core.StringTable.from_strings([]))
    return ChainModel(vocabulary, label_array(labels), field, w, {"origin": "crfkit.torch.CRF"})


@torch.no_grad()
def emission_items(layer: CRF, emissions: Tensor, mask: Tensor | None = None) -> list[list[dict[str, float]]]:
    """Return emissions as the model of `to_chain_model` takes them: the attributes of each step with their values."""
    names = [_name(label) for label in _labels(layer)]
    scores = layer._scores(emissions, mask)
    found = []
    for rows, length in zip(scores.u.double().tolist(), scores.lengths.tolist(), strict=True):
        items = [dict(zip(names, row, strict=True)) for row in rows[:length]]
        if items:
            items[0][FIRST] = items[-1][LAST] = 1.0
        found.append(items)
    return found


def from_chain_model(model: ChainModel, **options: Any) -> CRF:
    """Return a layer with the labels, transitions and constraints of a chain model of order 1.

    `options` are those of CRF, such as batch_first. Start and end transitions are 0, as chain models have none.

    >>> from crfkit import ChainCRF
    >>> chain = ChainCRF(constraints="iob2").fit([[["w=Ada"], ["w=ran"]]], [["B-PER", "O"]])
    >>> from_chain_model(chain.model_, batch_first=True).labels
    ['B-PER', 'O']
    """
    field = model.field
    if field.order != 1 or field.n_pair_attributes:
        raise ParameterError(
            "a layer has transitions that do not depend on the input; this model is of order "
            f"{field.order} and has {field.n_pair_attributes} attributes of label pairs"
        )
    n = field.n_labels
    masks = {name: getattr(field, name) for name in ("allowed", "allowed_start", "allowed_end")}
    layer = CRF(n, labels=[str(label) for label in model.class_list], **masks, **options)
    table = field.blocks["transition"].table(np.asarray(model.w)[field.layout["transition"]])
    with torch.no_grad():
        layer.start_transitions.zero_()
        layer.end_transitions.zero_()
        layer.transitions.copy_(torch.from_numpy(np.asarray(table).reshape(n, n)))
    return layer


def _name(label: str) -> str:
    return f"emission of {label}"


def _labels(layer: CRF) -> list[str]:
    if layer.labels is None:
        raise option_error("labels", " are not given: CRF(…, labels=[…]) names the tags of the model")
    return layer.labels
