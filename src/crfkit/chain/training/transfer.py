"""Weights from one chain model to the field of another, by name; and models without the weights that are zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Floats, Ids, Ints
from crfkit.chain.encoding.vocabulary import Vocabulary, common_ids
from crfkit.chain.fields.field import ChainField
from crfkit.chain.fields.part import FieldPart
from crfkit.chain.model.model import ChainModel


def transfer(
    old: ChainModel,
    vocabulary: Vocabulary,
    classes: Sequence[Any],
    field: ChainField,
    class_names: Sequence[str] = (),
    values: Floats | None = None,
    default: float = 0.0,
) -> Floats:
    """Return a vector for `field`: the old model's weights where it has them, `default` elsewhere.

    `values` takes the place of the old weights: a number for each.
    """
    source = old.w if values is None else values
    known = {label: i for i, label in enumerate(old.class_list)}
    labels = np.array([known.get(label, -1) for label in classes], dtype=np.int64)
    states = common_ids(old.vocabulary.attributes, vocabulary.attributes)
    pairs = common_ids(old.vocabulary.pair_attributes, vocabulary.pair_attributes)
    w = np.full(field.size, default)

    def copy(block: str, new: Sequence[Ids], before: Sequence[Ids], maps: Sequence[Ints], bases: Sequence[int]) -> None:
        """Copy a block, whose weight (a, b, …) in the new field is (maps[0][a], maps[1][b], …) in the old one."""
        names = [m[part] for m, part in zip(maps, new, strict=True)]
        codes = weight_codes(names, bases)
        codes[np.any([part < 0 for part in names], axis=0)] = -1
        have = weight_codes([part.astype(np.int64) for part in before], bases)
        order = np.argsort(have, kind="stable")
        at = np.searchsorted(have[order], codes)
        at[at == len(order)] = 0
        if len(order) == 0:
            return
        hit = have[order[at]] == codes
        w[field.layout[block]] = np.where(hit, source[old.field.layout[block]][order[at]], default)

    L = len(known)
    copy("state", field.state_ids(), old.field.state_ids(), (states, labels), (L,))
    copy("transition", field.transition_ids(), old.field.transition_ids(), (labels, labels), (L,))
    copy("pair", field.pair_ids(), old.field.pair_ids(), (pairs, labels, labels), (L, L))
    copy("triple", field.triple_ids(), old.field.triple_ids(), (labels, labels, labels), (L, L))
    if field.n_classes and old.field.n_classes:
        named = {name: i for i, name in enumerate(old.class_names)}
        same = np.array([named.get(name, -1) for name in class_names or old.class_names], dtype=np.int64)
        copy("class", field.class_ids(), old.field.class_ids(), (states, same), (old.field.n_classes,))
    return w


def weight_codes(parts: Sequence[NDArray[Any]], bases: Sequence[int]) -> Ints:
    """One number for each weight named by several: (a, b, c) is (a·base + b)·base + c."""
    codes = parts[0].astype(np.int64)
    for part, base in zip(parts[1:], bases, strict=True):
        codes = codes * base + part
    return codes


def pruned(model: ChainModel) -> ChainModel:
    """Return the model without weights that are zero and without attributes that have no others."""
    part, v = FieldPart.of_weights(model.field, model.w != 0), model.vocabulary
    vocabulary = replace(
        v, attributes=v.attributes.take(part.attributes), pair_attributes=v.pair_attributes.take(part.pair_attributes)
    )
    seen = None if model.seen is None else model.seen.take(part.attributes, part.pair_attributes)
    return replace(model, vocabulary=vocabulary, field=part.field, w=model.w[part.places], seen=seen)
