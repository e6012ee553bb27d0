"""Graphs as samples: each brings its nodes, edges and features; the weights are shared by all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Floats, Ids
from crfkit.data.graph import Graph
from crfkit.data.graphs import GraphData
from crfkit.encoders.states import Labels, check_classes, learn_classes, read_labels, to_states
from crfkit.errors import CrfkitError, DataError, ModelFileError
from crfkit.fields.graph import GraphField
from crfkit.modelfile import Contents


class GraphSample(NamedTuple):
    """One graph: features of its nodes [n, d] or None, edges as pairs of node numbers, features of edges [E, g].

    >>> GraphSample(features=[[0.5], [1.5]], edges=[(0, 1)]).n_nodes is None  # as many as rows of features
    True
    """

    features: Any
    edges: Any
    edge_features: Any = None
    n_nodes: int | None = None  # needed where there are no features of nodes


def is_sample(x: Any) -> bool:
    """Whether x is a graph rather than a row of a table."""
    if isinstance(x, Mapping) or _is_networkx(x):
        return True
    return isinstance(x, tuple) and 2 <= len(x) <= 4 and not any(np.isscalar(part) for part in x[:2])


@dataclass(frozen=True, eq=False)
class SampleEncoder:
    """Graphs and their labels, to and from encoded graphs."""

    classes: Labels
    n_features: int | None  # of a node; None: there are none
    n_edge_features: int | None
    intercept: bool = True
    edge_inputs: bool = True  # whether to use features of edges

    kind = "graphs"
    noun = "graph"  # what messages call a sample
    node_form = "full"
    edge_form = "symmetric"

    @classmethod
    def learn(cls, X: Any, Y: Any, intercept: bool, edge_inputs: bool) -> tuple[SampleEncoder, Ids]:
        """(the encoder for a training set, the states [n] of its nodes)."""
        samples = read_samples(X)
        if not samples:
            raise DataError("X has no graphs")
        graphs = [_graph(sample, g) for g, sample in enumerate(samples)]
        width = None if samples[0].features is None else _width(samples[0].features, "graph 0: features")
        of_edges = (s.edge_features for s in samples if s.edge_features is not None) if edge_inputs else ()
        edge_width = next((_width(features, "edge features") for features in of_edges), None)
        values, known = joined_labels(Y, X, [graph.n_nodes for graph in graphs])
        classes = learn_classes(values, known, "Y")
        made = cls(classes, width, edge_width, bool(intercept), bool(edge_inputs))
        return made, to_states(values, known, classes, "Y")

    # --- what the estimators need

    @property
    def n_states(self) -> list[int]:
        return [len(self.classes)]

    def field(self, node_form: str, edge_form: str) -> GraphField:
        """One set of weights for all nodes and one for all edges."""
        nodes, edges = (
            1 if width is None else width + self.intercept for width in (self.n_features, self.n_edge_features)
        )
        return GraphField(np.array(self.n_states), nodes, edges, node_form=node_form, edge_form=edge_form)

    def training_data(self, X: Any, states: Ids, weights: Any, rows: str) -> GraphData:
        return self._data(read_samples(X), states, weights)

    def encode(self, X: Any, observed: Any = None) -> GraphData:
        return self._data(read_samples(X))

    def encode_labels(self, Y: Any, data: GraphData, X: Any) -> Ids:
        """[n] states, −1 where unknown."""
        values, known = joined_labels(Y, X, np.diff(data.graph.node_offsets).tolist(), self.noun)
        return to_states(values, known, self.classes, "Y")

    def labels(self, states: Ids, data: GraphData, X: Any) -> list[Labels]:
        """States [..., n] to an array [..., nodes] of labels for each graph."""
        return [self.classes[part] for part in np.split(states, data.graph.node_offsets[1:-1], axis=-1)][: len(data)]

    def by_node(self, values: Floats, data: GraphData, X: Any) -> list[Floats]:
        """Values [n, K] as an array [nodes, K] for each graph."""
        return np.split(values, data.graph.node_offsets[1:-1])[: len(data)]

    def by_edge(self, values: Floats, data: GraphData) -> list[Floats]:
        """Values [E, K, K] as an array [edges, K, K] for each graph."""
        return np.split(values, data.graph.edge_offsets[1:-1])[: len(data)]

    # --- names

    def node_name(self, variable: int, feature: int) -> tuple[Any, ...]:
        return (_feature_name("x", feature, self.n_features, self.intercept),)

    def edge_name(self, edge: int, feature: int) -> tuple[Any, ...]:
        return (_feature_name("e", feature, self.n_edge_features, self.intercept),)

    def node_classes(self, variable: int) -> Labels:
        return self.classes

    def edge_classes(self, edge: int) -> tuple[Labels, Labels]:
        return self.classes, self.classes

    # --- the file

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
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
    def _entries(contents: Contents) -> dict[str, Any]:
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

    def _data(self, samples: Sequence[GraphSample], states: Ids | None = None, weights: Any = None) -> GraphData:
        data = GraphData.join([self._part(sample, g) for g, sample in enumerate(samples or [self._nothing])])
        if not samples:
            data = data.take([])
        return replace(data, labels=states, weights=weights)

    @property
    def _nothing(self) -> GraphSample:
        """A graph without nodes."""
        return GraphSample(None if self.n_features is None else np.zeros((0, self.n_features)), [], None, 0)

    def _part(self, sample: GraphSample, g: int) -> GraphData:
        graph = _graph(sample, g)
        edge_features = sample.edge_features if self.edge_inputs else None
        for what, given, width in (
            ("features", sample.features, self.n_features),
            ("edge features", edge_features, self.n_edge_features),
        ):
            found = None if given is None else _width(given, f"{self.noun} {g}: {what}")
            if found != width and not (what == "edge features" and not graph.n_edges):
                shown = ["no" if n is None else str(n) for n in (found, width)]
                raise DataError(f"{self.noun} {g} has {shown[0]} {what}; expected {shown[1]}")
        if not graph.n_edges:
            edge_features = None if self.n_edge_features is None else np.zeros((0, self.n_edge_features))
        try:
            return GraphData.make(graph, sample.features, edge_features, intercept=self.intercept)
        except DataError as error:
            raise DataError(f"{self.noun} {g}: {error}") from None


def read_samples(X: Any) -> list[GraphSample]:
    """The samples in one form, from dicts, tuples (features, edges, …) and networkx graphs."""
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1:
        X = list(X)
    if not isinstance(X, (list, tuple)) or isinstance(X, GraphSample):
        raise DataError(f"X must be a list of graphs, not {type(X).__name__}")
    return [_sample(x, g) for g, x in enumerate(X)]


def _sample(x: Any, g: int) -> GraphSample:
    if isinstance(x, Mapping):
        unknown = [key for key in x if key not in GraphSample._fields]
        if unknown or "edges" not in x:
            problem = f"an entry {unknown[0]!r}" if unknown else "no entry 'edges'"
            raise DataError(f"graph {g} has {problem}; its entries are {', '.join(GraphSample._fields)}")
        return GraphSample(**{"features": None, **x})
    if _is_networkx(x):
        return _from_networkx(x, g)
    if not is_sample(x):
        raise DataError(f"graph {g} is a {type(x).__name__}; expected a dict, (features, edges) or a networkx graph")
    return GraphSample(*x)


def _is_networkx(x: Any) -> bool:
    return hasattr(x, "nodes") and hasattr(x, "edges") and hasattr(x, "adjacency")


def _from_networkx(x: Any, g: int) -> GraphSample:
    """Features are the attribute "features" of nodes and, if there, of edges."""
    try:
        graph, names = Graph.from_networkx(x)
    except DataError as error:
        hint = "; edges have no direction here: graph.to_undirected()" if x.is_directed() else ""
        raise DataError(f"graph {g}: {error}{hint}") from None
    features, edge_features = dict(x.nodes(data="features")), [value for *_, value in x.edges(data="features")]
    node_values = [features[name] for name in names]
    matrices = []
    for what, values in (("nodes", node_values), ("edges", edge_features)):
        with_none = sum(value is None for value in values)
        if with_none not in (0, len(values)):
            raise DataError(f"graph {g}: {with_none} of its {len(values)} {what} have no attribute 'features'")
        if any(isinstance(value, Mapping) for value in values):
            raise DataError(
                f"graph {g}: the features of its {what} are dicts; expected vectors of numbers, in the same order "
                "everywhere: [features[name] for name in names]"
            )
        try:
            full = None if with_none or not values else np.array([np.atleast_1d(v) for v in values], dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(
                f"graph {g}: the features of its {what} are not vectors of numbers, all of one length"
            ) from None
        matrices.append(full)
    return GraphSample(matrices[0], graph.edges, matrices[1], graph.n_nodes)


def _graph(sample: GraphSample, g: int) -> Graph:
    n = sample.n_nodes
    if n is None:
        if sample.features is None:
            raise DataError(f"graph {g} has neither features nor n_nodes")
        shape = sample.features.shape if hasattr(sample.features, "shape") else np.shape(sample.features)
        n = shape[0] if shape else 0
    if isinstance(sample.edges, Graph):
        return sample.edges
    try:
        return Graph(n, sample.edges)
    except CrfkitError as error:
        raise DataError(f"graph {g}: {error}") from None


def _width(features: Any, what: str) -> int:
    shape = features.shape if hasattr(features, "shape") else np.shape(features)
    if len(shape) != 2:
        raise DataError(f"{what} must be a matrix with a row each; got shape {tuple(shape)}")
    return int(shape[1])


def joined_labels(Y: Any, X: Any, sizes: Sequence[int], noun: str = "graph") -> tuple[Labels, NDArray[np.bool_]]:
    """(labels, which are known) of all nodes; the labels of a networkx graph may be a dict by node.

    `noun` is what messages call a sample.
    """
    if isinstance(Y, (str, Mapping)) or not hasattr(Y, "__iter__"):
        raise DataError(f"Y must be a list with the labels of each {noun}, not {type(Y).__name__}")
    rows = list(Y)
    if len(rows) != len(sizes):
        raise DataError(f"labels of {len(rows)} {noun}s for {len(sizes)} {noun}s")
    parts = []
    for g, (row, size) in enumerate(zip(rows, sizes, strict=True)):
        if isinstance(row, Mapping):
            if X is None or not _is_networkx(X[g]):
                raise DataError(f"{noun} {g}: labels by name are for networkx graphs")
            if strange := [name for name in row if name not in X[g]]:
                raise DataError(f"{noun} {g} has no node {strange[0]!r}, but a label for it")
            row = np.array([row.get(name) for name in X[g].nodes], dtype=object)
        values, known = read_labels(row, f"{noun} {g}")
        if values.size != size:
            raise DataError(f"{noun} {g} has {size} nodes, but {values.size} labels")
        parts.append((values.ravel(), known.ravel()))
    names = {"U": "strings", "b": "booleans"}
    kinds = sorted({names.get(values.dtype.kind, "numbers") for values, known in parts if known.any()}, reverse=True)
    if len(kinds) > 1:
        raise DataError(f"some {noun}s have {kinds[0]} as labels, others {kinds[1]}")
    text = "strings" in kinds
    all_values = [v if known.any() else np.full(v.shape, "" if text else 0) for v, known in parts]
    empty: list[Any] = [np.zeros(0, dtype="U1" if text else np.int64)] if not parts else []
    return np.concatenate([*all_values, *empty]), np.concatenate([np.zeros(0, dtype=bool), *(k for _, k in parts)])


def _feature_name(letter: str, feature: int, width: int | None, intercept: bool) -> str:
    if width is None or (intercept and feature == 0):
        return "intercept"
    return f"{letter}{feature - intercept}"
