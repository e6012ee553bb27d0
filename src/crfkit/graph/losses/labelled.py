"""The base of losses that condition on labels, all of which must be known."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from crfkit._threads import count_threads
from crfkit._types import Floats, Ids
from crfkit.errors import DataError
from crfkit.graph.data import GraphData
from crfkit.graph.fields.basis import native_basis
from crfkit.graph.fields.field import GraphField
from crfkit.protocols import LossOptions
from crfkit.protocols.field_loss import FieldLoss

Self = TypeVar("Self", bound="LabelledLoss")


class LabelledLoss(FieldLoss):
    """A loss of fully labelled graphs."""

    data: GraphData
    field: GraphField

    @classmethod
    def example(cls) -> LabelledLoss:
        from crfkit.graph.losses.examples import graph_example

        return cls(*graph_example())

    shardable = True

    @classmethod
    def make(cls, data: GraphData, field: GraphField, options: LossOptions) -> LabelledLoss:
        return cls(data, field, options.n_threads)

    def __init__(self, data: GraphData, field: GraphField, n_threads: int | None = None) -> None:
        self.labels = known_labels(data, field, self.name)
        self.data = data
        self.field = field
        self.n_threads = n_threads

    def subset(self: Self, ids: ArrayLike) -> Self:
        """The loss of some graphs only."""
        return type(self)(self.data.take(ids), self.field, self.n_threads)

    def native_arrays(self, w: Floats) -> tuple[Any, ...]:
        """Return what functions of the core take: graph, potentials, labels, weights and the number of threads."""
        potentials = self.field.potentials(self.data, w)
        return (
            self.data.graph.native,
            potentials.unary,
            potentials.coefficients,
            native_basis(potentials.basis),
            self.labels,
            self.data.node_weights,
            count_threads(self.n_threads),
        )


def known_labels(data: GraphData, field: GraphField, what: str) -> Ids:
    """The labels of data that fit the field and are fully labelled; raises and names the node otherwise."""
    field.check(data)
    if data.node_counts is not None:
        raise DataError(
            f"the {what} needs the rows themselves: these data are counts; make them with GraphData.table(…, Y=Y)"
        )
    if data.labels is None:
        raise DataError("the data have no labels")
    if data.graph.n_nodes == 0:
        raise DataError("there are no nodes to learn from")
    if (unknown := np.flatnonzero(data.labels < 0)).size:
        raise DataError(
            f"node {unknown[0]} has no label; the {what} needs all of them: give it, or use the likelihood, "
            "which sums over labels that are not known"
        )
    return data.labels
