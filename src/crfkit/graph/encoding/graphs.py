"""Graphs as samples: every sample has its own nodes, edges and features, and all share the same weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crfkit._types import Array, Entries, Floats, Ids, Label, Samples, Tabular
from crfkit.errors import DataError, ModelFileError, sample_error
from crfkit.files.modelfile import Contents
from crfkit.graph.data import GraphData
from crfkit.graph.encoding.graph_samples import (
    GraphSample,
    graph_of,
    is_one_graph,
    joined_labels,
    labels_of_one,
    matrix_width,
    read_samples,
)
from crfkit.graph.encoding.states import Labels, check_classes, learn_classes, to_states
from crfkit.graph.fields.field import GraphField


@dataclass(frozen=True, eq=False, kw_only=True)
class SampleEncoder:
    """Encode graphs and their labels, and turn states back into labels."""

    classes: Labels
    n_features: int | None  # of a node; None if nodes have no features
    n_edge_features: int | None  # of an edge; None if edges have no features
    intercept: bool = True
    edge_inputs: bool = True  # whether features of edges are used

    kind = "graphs"
    noun = "graph"  # what messages call a sample
    node_form = "full"
    edge_form = "symmetric"

    @classmethod
    def learn(
        cls, X: Samples, Y: Samples, *, intercept: bool = True, edge_inputs: bool = True
    ) -> tuple[SampleEncoder, Ids]:
        """Return the encoder for a training set, and the states [n] of its nodes."""
        samples = read_samples(X)
        if not samples:
            raise DataError("X has no graphs")
        graphs = [graph_of(sample, g) for g, sample in enumerate(samples)]
        width = None if samples[0].features is None else matrix_width(samples[0].features, "graph 0: features")
        of_edges = (s.edge_features for s in samples if s.edge_features is not None) if edge_inputs else ()
        edge_width = next((matrix_width(features, "edge features") for features in of_edges), None)
        values, known = joined_labels(Y, X, [graph.n_nodes for graph in graphs])
        classes = learn_classes(values, known, "Y")
        made = cls(
            classes=classes,
            n_features=width,
            n_edge_features=edge_width,
            intercept=bool(intercept),
            edge_inputs=bool(edge_inputs),
        )
        return made, to_states(values, known, classes, "Y")

    # --- what the estimators need

    def listed(self, X: Samples, Y: Samples) -> tuple[Tabular, Tabular, bool]:
        """Return X and Y as lists, and whether they were one graph given without a list."""
        return ([X], labels_of_one(Y), True) if is_one_graph(X) else (X, Y, False)

    @property
    def n_states(self) -> list[int]:
        return [len(self.classes)]

    def field(self, node_form: str, edge_form: str) -> GraphField:
        """Return the field: one set of weights for all nodes and one for all edges."""
        nodes, edges = (
            1 if width is None else width + self.intercept for width in (self.n_features, self.n_edge_features)
        )
        return GraphField(np.array(self.n_states), nodes, edges, node_form=node_form, edge_form=edge_form)

    def training_data(self, X: Samples, states: Ids, weights: Samples, rows: str) -> GraphData:
        """Return the encoded graphs with their states; `rows` matters only to tables."""
        return self._data(read_samples(X), states, weights)

    def encode(self, X: Samples, observed: Samples = None) -> GraphData:
        """Return the encoded graphs."""
        return self._data(read_samples(X))

    def encode_labels(self, Y: Samples, data: GraphData, X: Samples) -> Ids:
        """Return the states [n] of labels; −1 where a label is unknown."""
        values, known = joined_labels(Y, X, np.diff(data.graph.node_offsets).tolist(), self.noun)
        return to_states(values, known, self.classes, "Y")

    def labels(self, states: Ids, data: GraphData, X: Samples) -> list[Labels]:
        """Return an array [..., nodes] of labels for each graph, from states [..., n]."""
        return [self.classes[part] for part in np.split(states, data.graph.node_offsets[1:-1], axis=-1)][: len(data)]

    def by_node(self, values: Floats, data: GraphData, X: Samples) -> list[Floats]:
        """Return an array [nodes, K] for each graph, from values [n, K]."""
        return np.split(values, data.graph.node_offsets[1:-1])[: len(data)]

    def by_edge(self, values: Floats, data: GraphData) -> list[Floats]:
        """Return an array [edges, K, K] for each graph, from values [E, K, K]."""
        return np.split(values, data.graph.edge_offsets[1:-1])[: len(data)]

    # --- names

    def node_name(self, variable: int, feature: int) -> tuple[Label, ...]:
        return (_feature_name("x", feature, self.n_features, self.intercept),)

    def edge_name(self, edge: int, feature: int) -> tuple[Label, ...]:
        return (_feature_name("e", feature, self.n_edge_features, self.intercept),)

    def node_classes(self, variable: int) -> Labels:
        return self.classes

    def edge_classes(self, edge: int) -> tuple[Labels, Labels]:
        return self.classes, self.classes

    # --- the file

    def parts(self) -> tuple[Entries, dict[str, Array]]:
        metadata = {
            "labels": self.classes.tolist(),
            "n_features": self.n_features,
            "n_edge_features": self.n_edge_features,
            "intercept": self.intercept,
            "edge_inputs": self.edge_inputs,
        }
        return metadata, {}

    @classmethod
    def from_parts(cls, contents: Contents) -> SampleEncoder:
        return cls(**cls._entries(contents))

    @staticmethod
    def _entries(contents: Contents) -> Entries:
        widths = {name: contents.entry(name, int, type(None)) for name in ("n_features", "n_edge_features")}
        for name, width in widths.items():
            if width is not None and (isinstance(width, bool) or width < 0):
                raise ModelFileError(f"the metadata entry '{name}' is {width}")
        return {
            "classes": check_classes(contents.entry("labels", list)),
            **widths,
            "intercept": contents.entry("intercept", bool),
            "edge_inputs": contents.entry("edge_inputs", bool),
        }

    # --- inputs

    def _data(self, samples: Sequence[GraphSample], states: Ids | None = None, weights: Tabular = None) -> GraphData:
        data = GraphData.join([self._part(sample, g) for g, sample in enumerate(samples or [self._nothing])])
        if not samples:
            data = data.take([])
        return replace(data, labels=states, weights=weights)

    @property
    def _nothing(self) -> GraphSample:
        """Return a graph without nodes."""
        return GraphSample(None if self.n_features is None else np.zeros((0, self.n_features)), [], None, 0)

    def _part(self, sample: GraphSample, g: int) -> GraphData:
        graph = graph_of(sample, g)
        edge_features = sample.edge_features if self.edge_inputs else None
        for what, given, width in (
            ("features", sample.features, self.n_features),
            ("edge features", edge_features, self.n_edge_features),
        ):
            try:
                found = None if given is None else matrix_width(given, what)
            except DataError as error:
                raise sample_error(DataError, g, f": {error}", self.noun) from None
            if found != width and not (what == "edge features" and not graph.n_edges):
                shown = ["no" if n is None else str(n) for n in (found, width)]
                raise sample_error(DataError, g, f" has {shown[0]} {what}; expected {shown[1]}", self.noun)
        if not graph.n_edges:
            edge_features = None if self.n_edge_features is None else np.zeros((0, self.n_edge_features))
        try:
            return GraphData.make(graph, sample.features, edge_features, intercept=self.intercept)
        except DataError as error:
            raise sample_error(DataError, g, f": {error}", self.noun) from None


def _feature_name(letter: str, feature: int, width: int | None, intercept: bool) -> str:
    if width is None or (intercept and feature == 0):
        return "intercept"
    return f"{letter}{feature - intercept}"
