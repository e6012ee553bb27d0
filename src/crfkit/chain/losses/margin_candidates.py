"""The softmax margin of chains with the attributes that were selected; all others are candidates."""

from __future__ import annotations

from collections.abc import Mapping

from numpy.typing import ArrayLike

from crfkit._types import Ints
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.chain.losses.candidates import MEMORY_LIMIT, CandidateChain
from crfkit.training.costs import cost_matrix


class CandidateMargin(CandidateChain):
    """The softmax margin of selected attributes, from none to all of those of a training set.

    Parameters
    ----------
    cost : of labelling i as j, [gold label, label]; None: 1 for all mistakes.

    The others are those of :class:`~crfkit.chain.losses.candidates.CandidateChain`.

    >>> import numpy as np
    >>> from crfkit.penalties import L1
    >>> from crfkit.solvers import GraftingLight
    >>> loss = CandidateMargin.example()
    >>> GraftingLight(select_unit=2).minimize(loss, L1(1.0), np.zeros(loss.size)).status.name
    'CONVERGED'
    """

    name = "softmax margin"
    takes_cost = True

    def __init__(
        self,
        data: SequenceData,
        field: ChainField,
        cost: ArrayLike | None = None,
        n_threads: int | None = None,
        kernels: str = "auto",
        memory_limit: int = MEMORY_LIMIT,
        names: Mapping[str, Ints] | None = None,
    ) -> None:
        self._cost = cost_matrix(cost, field.n_labels)
        super().__init__(data, field, n_threads, kernels, memory_limit, names)
