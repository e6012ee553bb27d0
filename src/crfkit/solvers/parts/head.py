"""The head of a problem: the weights of most curvature, with all that they have to do with each other.

A diagonal H₀ knows nothing of that, and L-BFGS has to learn it pair by pair. With B, the block of the Hessian that
belongs to the head, H₀ is B^(−p) there and diag(h)^(−p) elsewhere. B is estimated from a sample of the Hessian,
B = AᵀA with sparse rows A (:mod:`crfkit.chain.losses.sampled_hessian`), plus the penalty's diagonal. A power p < 1 is
safer than 1, as B is a sample and changes on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import numpy as np
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from crfkit._types import Floats, Ints
from crfkit.errors import ParameterError
from crfkit.protocols import Kind, Vector
from crfkit.protocols.loss import SampledEvaluation
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.saved import check_matrix

SEQUENCES = 4  # that are drawn for each weight of the head
ROWS = 2  # of the sample for each weight at least: with fewer, the head is smaller
EXACT = 0.05  # share of the known diagonal in B: no direction has less curvature than that
LEAST = 16  # weights of a head that is worth it


@dataclass(frozen=True, eq=False)
class Head:
    """The places of some weights, ascending, and ``excess`` = B^(−p) − I: by how much H₀ differs from the identity."""

    places: Ints
    excess: Floats

    @classmethod
    def sampled(cls, objective: Objective, point: Point, diagonal: Vector, size: int, power: float) -> Head | None:
        """Return a head of at most `size` weights at a point, where `diagonal` is that of the Hessian."""
        sample = cast("SampledEvaluation", point.evaluation).hess_sample(SEQUENCES * size, 0)
        size = min(size, sample.shape[0] // ROWS)
        touched, columns = np.unique(sample.indices, return_inverse=True)  # few: no array is as long as w
        chosen = np.sort(np.argsort(-diagonal[touched], kind="stable")[:size])
        places = touched[chosen]
        if len(places) < LEAST:
            return None
        number = np.full(len(touched), -1)
        number[chosen] = np.arange(len(chosen))
        columns = number[columns]
        kept = columns >= 0
        ends = np.concatenate([[0], np.cumsum(kept)])[sample.indptr]
        rows = type(sample)((sample.data[kept], columns[kept], ends), shape=(sample.shape[0], len(chosen)))
        block = np.asarray((rows.T @ rows).todense())
        exact = np.diag(np.asarray(diagonal[places], dtype=np.float64))
        block += np.diag(_penalty_diagonal(objective, point, places))
        block *= 1.0 - EXACT
        block += EXACT * exact
        if not np.isfinite(block).all():
            return None
        with _blas().limit(limits=1, user_api="blas"):  # more threads would wait actively, and gain little
            values, vectors = np.linalg.eigh(block)
            if not values[-1] > 0.0:
                return None
            values = np.maximum(values, 1e-12 * values[-1])
            excess = (vectors * values**-power) @ vectors.T
        excess[np.diag_indices_from(excess)] -= 1.0
        return cls(places, excess)

    @classmethod
    def restored(cls, saved: Mapping[str, Any], size: int) -> Head | None:
        """Return the head of a saved state of a problem of `size` weights, if it has one."""
        if "head_places" not in saved:
            return None
        places = saved["head_places"]
        sound = isinstance(places, np.ndarray) and places.ndim == 1 and places.dtype.kind == "i" and len(places) > 0
        if not sound or places[0] < 0 or places[-1] >= size or not (np.diff(places) > 0).all():
            raise ParameterError("the saved state is damaged: head_places are not the places of weights")
        excess = np.array(check_matrix(saved, "head_excess", len(places), len(places)), dtype=np.float64)
        return cls(places.astype(np.int64), excess)

    def saved(self) -> Mapping[str, Any]:
        return {"head_places": self.places, "head_excess": self.excess}


@cache
def _blas() -> Any:
    """Return what limits the threads of BLAS; to look for the libraries takes milliseconds."""
    return ThreadpoolController()


def _penalty_diagonal(objective: Objective, point: Point, places: Ints) -> Floats:
    """Return the diagonal of the Hessian of the penalty's smooth part at some places."""
    smooth = objective.smooth
    if smooth is None or Kind.L2 in smooth.kinds:
        return np.full(len(places), objective.l2)
    diagonal = np.zeros(len(point.w))
    smooth.add_hess_diag(point.w, diagonal)
    return diagonal[places]
