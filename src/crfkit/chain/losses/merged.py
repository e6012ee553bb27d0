"""The likelihood of chains whose attributes are merged (:mod:`crfkit.chain.fields.merged`)."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from crfkit._types import Floats
from crfkit.chain.fields.merged import MergedAttributes
from crfkit.chain.losses.likelihood import ChainLikelihood
from crfkit.penalties import L2
from crfkit.protocols import Loss, Penalty

LEAST_WEIGHTS = 1_000_000  # from which on the time of vectors is worth it


def merged_likelihood(loss: Loss, penalty: Penalty) -> Loss:
    """Return the likelihood with fewer weights that has the same optimum under a penalty, or the loss itself."""
    if type(loss) is not ChainLikelihood or loss.size < LEAST_WEIGHTS:
        return loss
    if not isinstance(penalty, L2) or penalty.strength == 0:
        return loss
    merged = MergedAttributes.of(loss.data, loss.field)
    return loss if merged is None else MergedLikelihood(merged, n_threads=loss.n_threads, precision=loss.precision)


class MergedLikelihood(ChainLikelihood):
    """The negative log-likelihood in the weights that are left."""

    def __init__(self, merged: MergedAttributes, **options: Any) -> None:
        super().__init__(merged.data, merged.field, **options)
        self.merged = merged

    def in_full(self, w: Floats) -> Floats:
        return self.merged.in_full(w)

    def of_full(self, w: Floats) -> Floats:
        return self.merged.of_full(w)

    def subset(self, ids: ArrayLike) -> MergedLikelihood:
        part = super().subset(ids)
        assert isinstance(part, MergedLikelihood)
        part.merged = self.merged
        return part
