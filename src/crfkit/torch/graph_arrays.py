"""Labelled graphs as plain arrays: all that a loss on tensors needs of a training set and its field.

Whoever has them needs no compiled core.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from crfkit._types import Array, Features, Flags, Floats, Ids, Ints
from crfkit.errors import CapabilityError

if TYPE_CHECKING:
    from crfkit.graph.data import GraphData
    from crfkit.graph.fields.field import GraphField


@dataclass(frozen=True, eq=False)
class GraphArrays:
    """n nodes and E edges in G graphs with their labels, and which weights a field has.

    The arrays are those of :class:`~crfkit.graph.data.GraphData` and :class:`~crfkit.graph.fields.field.GraphField`.
    """

    n_states: Ids  # [T]
    node_active: Flags  # [T, B]
    edge_active: Flags  # [S, C]
    node_basis: Floats | None  # [B, K]; None: a set of weights for each state
    edge_basis: Floats | None  # [C, K, K]; None: a set of weights for each pair of states
    edges: Ids  # [E, 2]
    labels: Ids  # [n]
    weights: Floats  # [G]
    node_offsets: Ints  # [G+1]
    edge_offsets: Ints  # [G+1]
    node_features: Features
    edge_features: Features
    node_rows: Ids | None = None
    edge_rows: Ids | None = None
    node_types: Ids | None = None
    edge_types: Ids | None = None

    @classmethod
    def of(cls, data: GraphData, field: GraphField) -> GraphArrays:
        """Return the arrays of encoded, labelled data and a field; raise for what tensors do not have."""
        from crfkit.graph.fields.basis import is_unit
        from crfkit.graph.fields.field import GraphField
        from crfkit.graph.losses.labelled import known_labels

        if type(field) is not GraphField:
            raise CapabilityError(
                f"fields of the type {type(field).__name__} cannot be trained on tensors; drop the device to train on "
                "the CPU with the compiled core"
            )
        labels = known_labels(data, field, "pseudo-likelihood")
        unit = is_unit(field.edge_basis)
        return cls(
            field.n_states,
            field.node_active,
            field.edge_active,
            field.node_basis if field.node_form == "ising" else None,
            None if unit else field.edge_basis,
            data.graph.edges,
            labels,
            data.graph_weights,
            data.graph.node_offsets,
            data.graph.edge_offsets,
            **{f"{kind}_{what}": getattr(data, f"{kind}_{what}") for kind in _KINDS for what in _OF_DATA},
        )

    def __len__(self) -> int:
        """Return the number of graphs."""
        return len(self.weights)

    @property
    def n_nodes(self) -> int:
        return len(self.labels)

    @property
    def most_states(self) -> int:
        return int(self.n_states.max())

    @property
    def layout(self) -> Mapping[str, slice]:
        nodes = int(self.node_active.sum()) * self.node_features.shape[1]
        return {"node": slice(0, nodes), "edge": slice(nodes, nodes + self._n_edge_weights)}

    @property
    def _n_edge_weights(self) -> int:
        return int(self.edge_active.sum()) * int(self.edge_features.shape[1])

    def take(self, ids: Ints) -> GraphArrays:
        """Return some of the graphs."""
        nodes, node_offsets = _ranges(self.node_offsets, ids)
        edges, edge_offsets = _ranges(self.edge_offsets, ids)
        shift = np.repeat(node_offsets[:-1] - self.node_offsets[ids], np.diff(edge_offsets))
        parts: dict[str, Array | None] = {}
        for kind, chosen in (("node", nodes), ("edge", edges)):
            types, rows = getattr(self, f"{kind}_types"), getattr(self, f"{kind}_rows")
            parts[f"{kind}_types"] = None if types is None else types[chosen]
            if rows is None:
                parts[f"{kind}_features"] = getattr(self, f"{kind}_features")[chosen]
            else:
                parts[f"{kind}_rows"] = rows[chosen]
        return replace(
            self,
            edges=(self.edges[edges] + shift[:, None]).astype(np.int32),
            labels=self.labels[nodes],
            weights=self.weights[ids],
            node_offsets=node_offsets,
            edge_offsets=edge_offsets,
            **parts,  # type: ignore[arg-type]
        )


_KINDS = ("node", "edge")
_OF_DATA = ("features", "rows", "types")


def _ranges(offsets: Ints, chosen: Ints) -> tuple[Ints, Ints]:
    """Return (the places of the items of these graphs, their offsets)."""
    lengths = np.diff(offsets)[chosen]
    ends = np.cumsum(lengths)
    places = np.arange(lengths.sum()) + np.repeat(offsets[chosen] - (ends - lengths), lengths)
    return places, np.concatenate([[0], ends]).astype(np.int64)
