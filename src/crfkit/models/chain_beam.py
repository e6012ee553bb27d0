"""Labels by a beam, for many labels or order 2, with a bound on what the beam may have missed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from crfkit.models.chain_decoding import check_count

if TYPE_CHECKING:
    from crfkit.models.chain import ChainModel


@dataclass(frozen=True)
class BeamLabelling:
    """The labels that a beam found, their score, and an upper bound on how far it is below the best score.

    exp(−gap) is a lower bound on p(labels | x) / p(best labels | x). A gap of 0 proves that no labelling is better.
    """

    labels: list[Any]
    score: float
    gap: float

    @property
    def exact(self) -> bool:
        """Return whether the labels are proven to be the best."""
        return self.gap == 0.0


def predict_beam(model: ChainModel, X: Iterable[Any], beam: int) -> list[BeamLabelling]:
    """Return the labels of each sequence that a beam of `beam` states finds."""
    beam = check_count("beam", beam)
    data = model.encode(X)
    labels, scores, gaps = model.inference.beam(data, beam)
    names = model.class_list
    return [
        BeamLabelling([names[j] for j in labels[a:b].tolist()], score, gap)
        for (a, b), score, gap in zip(pairwise(data.starts.tolist()), scores.tolist(), gaps.tolist(), strict=True)
    ]
