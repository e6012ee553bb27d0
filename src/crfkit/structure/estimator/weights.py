"""The parameters of a learned field by name, in a form that does not depend on how they were stored.

Rows and columns of an edge's table are centred, T − row means − column means + mean. What that takes out goes to the
nodes, which are centred too: the same field, and the only such parameters. A pair of two-label variables then has the
table J·[[1, −1], [−1, 1]], and J is its signed coupling whatever the other columns of the table are.
The effect of a feature on one variable through the table of the other cannot move to a node, and stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crfkit._types import Array, Entries, Floats, Frame, Label
from crfkit.extras import load
from crfkit.graph.encoding.tables import TableEncoder
from crfkit.graph.fields.basis import expanded
from crfkit.graph.model import GraphModel
from crfkit.structure.encoding.input_scaling import InputScales
from crfkit.structure.record import StructureRecord


@dataclass(frozen=True, eq=False)
class Parameters:
    """Centred log-potentials: nodes [p, F, K], edges [E, F, K, K]; 0 beyond the labels of a variable.

    With inputs X, there is one per feature; without, F is 1, the intercept.
    """

    nodes: Floats
    edges: Floats
    scales: Floats  # [edge features] standard deviations of inputs in training; 1 for the intercept
    means: Floats  # [edge features] means of inputs in training; 1 for the intercept

    @classmethod
    def of(cls, model: GraphModel, scales: InputScales | None = None) -> Parameters:
        """Return the parameters of a model of a table, whose inputs had these means and scales in training."""
        encoder, field = _table(model), model.field
        node_weights, edge_weights = field.unpack(model.w)  # [p, B, F], [E, B, G]
        nodes = np.einsum("tbf,bk->tfk", node_weights, field.node_basis)
        edges = expanded(np.moveaxis(edge_weights, 1, 2), field.edge_basis).copy()
        K = np.array(encoder.n_states)
        n_own, n_shared = encoder.n_own, len(encoder.feature_names) - encoder.n_own
        for e, (i, j) in enumerate(encoder.structure.edges.tolist()):
            T = edges[e, :, : K[i], : K[j]]
            for f in range(T.shape[0]):
                rows, columns, mean = T[f].mean(axis=1), T[f].mean(axis=0), T[f].mean()
                here, there = _places(f, n_shared, n_own)
                if here is not None:
                    T[f] -= rows[:, None] - mean
                    nodes[i, here, : K[i]] += rows
                if there is not None:
                    T[f] -= columns[None, :] - mean
                    nodes[j, there, : K[j]] += columns
                T[f] -= mean
        for i, k in enumerate(K):
            nodes[i, :, :k] -= nodes[i, :, :k].mean(axis=1, keepdims=True)
            nodes[i, :, k:] = 0.0
        width = edges.shape[1]
        if scales is None or width == 1:
            scales = InputScales(np.ones(width - 1), np.ones(0))
        return cls(nodes, edges, scales.of_edges(width), scales.means_of_edges(width))

    def at_means(self, e: int, K: Sequence[int] | Array, ends: Sequence[int]) -> Floats:
        """Return the tables of an edge [features, K_i, K_j], the first for rows whose inputs are the means."""
        i, j = ends
        T = self.edges[e, :, : K[i], : K[j]].copy()
        if len(T) > 1:
            T[0] = np.tensordot(self.means, T, 1)
            T[0] -= T[0].mean(axis=1, keepdims=True)
            T[0] -= T[0].mean(axis=0, keepdims=True)
        return T


def _places(f: int, n_shared: int, n_own: int) -> tuple[int | None, int | None]:
    """Return the place of feature f of an edge among those of its first node and of its second; None if not there."""
    if f < n_shared:
        return f, f
    return (f, None) if f < n_shared + n_own else (None, f - n_own)


def edge_sizes(model: GraphModel, scales: InputScales | None = None) -> Floats:
    """Return [E] the weight of each edge.

    Without inputs: the signed coupling J of two variables of two labels (table ±J), the signed slope of an ordinal
    edge at the ends of both scales; otherwise the root mean square of the centred table, which has no sign. With
    inputs: the root mean square of the table at the means of the inputs, and of the change per standard deviation of
    each.
    """
    parameters, encoder = Parameters.of(model, scales), _table(model)
    K = np.array(encoder.n_states)
    sizes, has_one_weight = np.zeros(len(parameters.edges)), model.field.has_one_weight
    for e, (i, j) in enumerate(encoder.structure.edges.tolist()):
        T = parameters.at_means(e, K, (i, j))
        if len(T) > 1:
            sizes[e] = np.linalg.norm(T * parameters.scales[:, None, None]) / np.sqrt(K[i] * K[j])
        elif K[i] == K[j] == 2 or has_one_weight[e]:
            sizes[e] = T[0, -1, -1]
        else:
            sizes[e] = np.linalg.norm(T) / np.sqrt(K[i] * K[j])
    return sizes


def input_sizes(model: GraphModel, scales: InputScales | None) -> list[dict[str, float]]:
    """Return, for each edge, input → size of the edge's weights on it, per standard deviation of the input; the largest
    first. Empty without inputs."""
    encoder = _table(model)
    if encoder.features is None or model.field.n_edge_features == 1:
        return [{} for _ in range(encoder.structure.n_edges)]
    parameters, K = Parameters.of(model, scales), encoder.n_states
    found = []
    for e, (i, j) in enumerate(encoder.structure.edges.tolist()):
        T = parameters.edges[e] * parameters.scales[:, None, None]
        sizes = np.sqrt(np.square(T).sum(axis=(1, 2)) / (K[i] * K[j])).tolist()
        names = [encoder.edge_name(e, f)[1] for f in range(len(sizes))]
        found.append(dict(sorted(zip(names[1:], sizes[1:], strict=True), key=lambda item: -item[1])))
    return found


def _table(model: GraphModel) -> TableEncoder:
    assert isinstance(model.encoder, TableEncoder)
    return model.encoder


class WeightsMixin:
    """The parameters of StructureLearner by name. Columns without names have numbers."""

    model_: GraphModel
    edges_: list[tuple[Label, Label, float]]
    stability_: dict[tuple[Label, Label], float]
    _record: StructureRecord

    def _name(self, i: int) -> Label:
        encoder = _table(self._fitted())
        return encoder.variables[i] if encoder.named else i

    def _fitted(self) -> GraphModel:
        raise NotImplementedError

    def _pair(self, i: int, j: int) -> tuple[Label, Label]:
        return self._name(i), self._name(j)

    @property
    def graph_(self) -> Any:
        """Return the edges as a networkx graph with the attribute "weight"."""
        networkx = load("networkx", "graph_ needs", "edges_ works without it")
        p = len(_table(self._fitted()).classes)
        graph = networkx.Graph()
        graph.add_nodes_from(self._name(i) for i in range(p))
        graph.add_weighted_edges_from(self.edges_)
        return graph

    @property
    def edge_weights_(self) -> dict[tuple[tuple[Label, Label], str, tuple[Label, Label]], float]:
        """Return ((column, column), feature, (label, label)) → centred log-potential.

        Without inputs the feature is "intercept". Weights of inputs are per unit of the input as it was given, so the
        intercept is for inputs of 0; ``edges_`` and ``edge_records_`` are for inputs at their means.
        """
        model = self._fitted()
        encoder, edges = _table(model), Parameters.of(model).edges
        out = {}
        for e, (i, j) in enumerate(encoder.structure.edges.tolist()):
            for f in range(edges.shape[1]):
                feature = encoder.edge_name(e, f)[1]
                for a, first in enumerate(encoder.classes[i].tolist()):
                    for b, second in enumerate(encoder.classes[j].tolist()):
                        out[self._pair(i, j), feature, (first, second)] = float(edges[e, f, a, b])
        return out

    @property
    def node_weights_(self) -> dict[tuple[Label, str, Label], float]:
        """Return (column, feature, label) → centred log-potential, with centred edges."""
        model = self._fitted()
        encoder, nodes = _table(model), Parameters.of(model).nodes
        return {
            (self._name(i), feature, label): float(nodes[i, f, k])
            for i, classes in enumerate(encoder.classes)
            for f, feature in enumerate(encoder.feature_names)
            for k, label in enumerate(classes.tolist())
        }

    @property
    def weight_matrix_(self) -> Floats:
        """Return [variables, variables] the weights of ``edges_``: symmetric, 0 where there is no edge."""
        model = self._fitted()
        i, j = _table(model).structure.edges.T
        matrix = np.zeros((len(_table(model).classes),) * 2)
        matrix[i, j] = matrix[j, i] = edge_sizes(model, self._record.input_scales)
        return matrix

    @property
    def edge_records_(self) -> list[Entries]:
        """Return a dict for each edge, in the order of ``edges_``.

        It has first, second, weight, kind ("coupling" has a sign, "table" has none), strongest (the pair of labels that
        goes together most, at the means of the inputs) and, where they are known, entered (the place in the order of
        entry into the path, from 1), entered_at (its λ), stability, inputs (input → size per standard deviation).
        """
        model = self._fitted()
        encoder, parameters = _table(model), Parameters.of(model, self._record.input_scales)
        ends = encoder.structure.edges.tolist()
        sizes = input_sizes(model, self._record.input_scales)
        inputs = dict(zip((self._pair(i, j) for i, j in ends), sizes, strict=True))
        place = {self._pair(i, j): (e, i, j) for e, (i, j) in enumerate(ends)}
        extra = self._edge_columns()
        records = []
        for first, second, weight in self.edges_:
            e, i, j = place[first, second]
            T = parameters.at_means(e, encoder.n_states, (i, j))[0]
            a, b = np.unravel_index(int(T.argmax()), T.shape)
            single = T.shape == (2, 2) or bool(model.field.has_one_weight[e])
            kind = "coupling" if single and parameters.edges.shape[1] == 1 else "table"
            record = {"first": first, "second": second, "weight": weight, "kind": kind}
            record["strongest"] = (encoder.classes[i].tolist()[a], encoder.classes[j].tolist()[b])
            if (first, second) in self.stability_:
                record["stability"] = self.stability_[first, second]
            if inputs[first, second]:
                record["inputs"] = inputs[first, second]
            records.append(record | extra.get((first, second), {}))
        return records

    def _edge_columns(self) -> dict[tuple[Label, Label], Entries]:
        """Further entries of the records of edges: their place in the order of entry into the path, from 1."""
        order = getattr(self, "entry_order_", [])
        return {(a, b): {"entered": place, "entered_at": s} for place, (a, b, s) in enumerate(order, start=1)}

    def edges_frame(self, parameters: bool = False) -> Frame:
        """Return the edges as a pandas data frame: a row per edge (``edge_records_``), with a column for each input.

        With `parameters`, a row for each parameter of each edge: first, second, feature, first_label, second_label,
        value (``edge_weights_``).
        """
        pandas = load("pandas", "edges_frame needs", "edge_records_ and edge_weights_ have the same as plain Python")
        if parameters:
            columns = ["first", "second", "feature", "first_label", "second_label", "value"]
            rows = [(*pair, f, *labels, value) for (pair, f, labels), value in self.edge_weights_.items()]
            return pandas.DataFrame(rows, columns=columns)
        flat = [
            {k: v for k, v in record.items() if k != "inputs"}
            | {f"input {name}": size for name, size in record.get("inputs", {}).items()}
            for record in self.edge_records_
        ]
        return pandas.DataFrame(flat, columns=None if flat else ["first", "second", "weight", "kind", "strongest"])
