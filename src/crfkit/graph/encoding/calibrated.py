"""Graphs whose nodes have the log-probabilities of another model as features, to calibrate and smooth them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crfkit._values import Label
from crfkit.graph.encoding.graphs import SampleEncoder
from crfkit.graph.fields.calibrated import CalibratedField
from crfkit.graph.fields.field import GraphField


@dataclass(frozen=True, eq=False, kw_only=True)
class CalibratedEncoder(SampleEncoder):
    """Encode graphs as :class:`SampleEncoder` does, with K features per node: the log-probability of each class."""

    kind = "calibrated"
    edge_form = "potts"

    def field(self, node_form: str, edge_form: str) -> GraphField:
        """Return the field: one temperature and a bias per class for all nodes, one set of weights for all edges."""
        n_edge_features = 1 if self.n_edge_features is None else self.n_edge_features + self.intercept
        return CalibratedField(np.array(self.n_states), 1 + len(self.classes), n_edge_features, edge_form=edge_form)

    def node_name(self, variable: int, feature: int) -> tuple[Label, ...]:
        return ("bias" if feature == 0 else f"log p({self.classes.tolist()[feature - 1]})",)
