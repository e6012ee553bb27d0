"""Attributes that an L1 penalty holds at zero from the beginning: the strengths by block, and a corpus without them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from crfkit.chain.data import SequenceData
from crfkit.chain.encoding.sequences import TaggedCorpus
from crfkit.chain.fields.part import FieldPart
from crfkit.penalties import L1, Blockwise, ByBlock
from crfkit.protocols import Kind, Penalty


def l1_strengths(penalty: Penalty, blocks: Iterable[str]) -> Mapping[str, float]:
    """Return the strength of L1 by the names of blocks; those where the penalty has no L1 part are missing.

    Group norms have none: an attribute leaves zero by the norm of its gradient, not by one derivative. Neither has a
    :class:`Blockwise` with a layout of its own, which says where the weights stand.

    >>> from crfkit.penalties import L2, ElasticNet
    >>> l1_strengths(ElasticNet(0.5, 1.0), ["state", "pair"])
    {'state': 0.5, 'pair': 0.5}
    >>> l1_strengths(Blockwise({"state": L1(2.0), "transition": L2(1.0)}), ["state", "transition", "pair"])
    {'state': 2.0}
    """
    names = list(blocks)
    if isinstance(penalty, Blockwise):
        parts = {} if penalty.layout is not None else dict(penalty.penalties)
        found = {name: _l1_strength(part) for name, part in parts.items() if name in names}
    elif isinstance(penalty, ByBlock):
        found = dict.fromkeys(("state", "pair"), penalty.strength if penalty.kind is L1 else None)
    else:
        found = dict.fromkeys(names, _l1_strength(penalty))
    return {name: strength for name, strength in found.items() if strength is not None}


def _l1_strength(penalty: Penalty) -> float | None:
    """Return the strength of the L1 part of a penalty of all weights, next to which there may be L2; else None."""
    if isinstance(penalty, (Blockwise, ByBlock)):
        return None
    smooth, rest = penalty.split()
    if rest is None or Kind.L1 not in rest.kinds or (smooth is not None and Kind.L2 not in smooth.kinds):
        return None
    return rest.strength


def taken(corpus: TaggedCorpus, screen: FieldPart, data: SequenceData) -> TaggedCorpus:
    """Return the corpus with the attributes that are left; `data` are its sequences with those, weighted or not."""
    vocabulary = replace(
        corpus.vocabulary,
        attributes=corpus.vocabulary.attributes.take(screen.attributes.astype(np.int64)),
        pair_attributes=corpus.vocabulary.pair_attributes.take(screen.pair_attributes.astype(np.int64)),
    )
    weights, token_weights = corpus.data.weights, corpus.data.token_weights
    return replace(corpus, vocabulary=vocabulary, data=replace(data, weights=weights, token_weights=token_weights))
