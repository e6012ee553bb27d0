"""Find the attributes that can have weights under an L1 penalty: the others stay at zero, wherever a solver goes.

In the likelihood of a chain and in its softmax margin the derivative of the weight of attribute a and label y is

    ∂ = Σ_{t : a at t} c_t·(p(y_t = y | x) − [y_t = y]),   c_t = weight of the sequence · value of a at t,

where 0 ≤ p ≤ 1, so −low ≤ ∂ ≤ high for every w, with n = low + high = Σ |c_t| and

    low = Σ_{y_t = y} max(c_t, 0) + Σ_{y_t ≠ y} max(−c_t, 0).

Under L1 of strength λ a weight can leave zero only where |∂| > λ. If low ≤ λ and high ≤ λ for all labels that an
attribute has weights for, it can be omitted: the optimum is the same, and so is every step of a solver that begins at
zero. At λ = 1 that holds for attributes that occur once, and for those that occur twice, with different labels. The
same is true of pair attributes and pairs of labels. Transitions occur in all sequences, so no useful λ would leave
one out.

An attribute is omitted as a whole or not at all: where one of its weights may be omitted, n ≤ 2λ, and then nearly
always all of them may.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crfkit._types import Flags, Floats, Ids, Ints
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.chain.fields.observed import inner_positions
from crfkit.chain.fields.part import FieldPart


def screened(data: SequenceData, field: ChainField, strengths: Mapping[str, float]) -> FieldPart | None:
    """Return the field without the attributes whose weights cannot leave zero; None if there are no such attributes.

    `strengths` are those of L1 by the names of ``field.layout``; blocks that are missing or have strength 0 stay whole.
    What is left has at least one weight. The labels must be known, and positions must have no weights of their own:
    else what is observed depends on w as well, and the bounds do not hold.
    """
    if data.weak or data.labels is None:
        return None
    keep, keep_pairs = np.ones(field.n_attributes, dtype=bool), np.ones(field.n_pair_attributes, dtype=bool)
    state, classes = strengths.get("state", 0.0), strengths.get("class", 0.0)
    weights = None if data.weights is None else np.repeat(data.weights, data.lengths)
    if state > 0 and (field.n_classes == 0 or classes > 0):
        share = _shares(data.offsets, weights, data.values)
        least = state if field.n_classes == 0 else min(state, classes)
        lists = (field.state_offsets, field.state_labels) if field.n_classes == 0 else (None, None)
        keep = _needed(data.offsets, data.attributes, share, data.labels, field.n_labels, *lists, keep, least)
    pair = strengths.get("pair", 0.0)
    if pair > 0 and data.pair_offsets is not None and data.pair_attributes is not None:
        inner = inner_positions(data, 1)
        share = _shares(data.pair_offsets, inner.astype(np.float64) if weights is None else inner * weights, None)
        codes = np.roll(data.labels, 1).astype(np.int64) * field.n_labels + data.labels  # where there is one before
        lists = field.pair_offsets, field.pair_codes
        ids, width = data.pair_attributes, field.n_labels**2
        keep_pairs = _needed(data.pair_offsets, ids, share, codes, width, *lists, keep_pairs, pair)
    if keep.all() and keep_pairs.all():
        return None
    found = FieldPart.of_attributes(field, keep, keep_pairs)
    return found if found.field.size else None


def _shares(offsets: Ints, weights: Floats | None, values: Floats | None) -> Floats | None:
    """Return c_t of every occurrence; None: all 1."""
    if weights is None:
        return values
    spread = np.repeat(weights, np.diff(offsets))
    return spread if values is None else spread * values


def _needed(
    offsets: Ints,
    ids: Ids,
    share: Floats | None,
    labels: Ints | Ids,
    width: int,
    code_offsets: Ints | None,
    codes: Ids | None,
    keep: Flags,
    strength: float,
) -> Flags:
    """Return which attributes may have a weight: `labels` are the codes of the positions, `width` bounds them.

    Attributes have the weights of their lists of codes, or all.
    """
    n = np.bincount(ids, None if share is None else np.abs(share), len(keep))
    needed = n > strength
    if code_offsets is None or codes is None:
        return np.asarray(needed)  # n is `low` or `high` of a label that never occurs, and there nearly always is one
    unsure = np.flatnonzero(needed & (n <= 2 * strength) & (np.diff(code_offsets) > 0))
    needed[np.diff(code_offsets) == 0] = False
    if len(unsure) == 0:
        return np.asarray(needed)
    # low of the weights of the attributes in question that occur
    number = np.full(len(keep), -1, dtype=np.int64)
    number[unsure] = np.arange(len(unsure))
    entries = np.flatnonzero(number[ids] >= 0)
    t = np.searchsorted(offsets, entries, side="right") - 1
    c = np.ones(len(entries)) if share is None else share[entries]
    seen, which = np.unique(number[ids[entries]] * width + labels[t], return_inverse=True)
    negative = np.bincount(number[ids[entries]], np.maximum(-c, 0.0), len(unsure))
    low = np.bincount(which, c, len(seen)) + negative[seen // width]  # max(c, 0) − max(−c, 0) = c
    within = (low <= strength) & (n[unsure][seen // width] - low <= strength)
    # a weight that does not occur has low = Σ max(−c, 0)
    counts = np.diff(code_offsets)[unsure]
    of = np.repeat(np.arange(len(unsure)), counts)
    begins = np.concatenate([[0], np.cumsum(counts)[:-1]])
    listed = of * width + codes[np.arange(counts.sum()) + np.repeat(code_offsets[unsure] - begins, counts)]
    at = np.minimum(np.searchsorted(seen, listed), len(seen) - 1)
    absent = (negative <= strength) & (n[unsure] - negative <= strength)
    held = np.where(seen[at] == listed, within[at], absent[of])
    needed[unsure] = np.bincount(of, ~held, len(unsure)) > 0
    return np.asarray(needed)
