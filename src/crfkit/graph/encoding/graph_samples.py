"""Graphs as people give them: dicts, tuples, networkx graphs, with their labels; read into one form.

One graph may be given without a list: `fit((features, edges), y)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Features, Ids, Label, Tabular
from crfkit.errors import CrfkitError, DataError
from crfkit.graph.encoding.states import Labels, read_labels
from crfkit.graph.graph import Graph


class GraphSample(NamedTuple):
    """Describe one graph: features [n, d] of nodes or None, edges as pairs of node numbers, features [E, g] of edges.

    >>> GraphSample(features=[[0.5], [1.5]], edges=[(0, 1)]).n_nodes is None  # as many as rows of features
    True
    """

    features: Features
    edges: Tabular
    edge_features: object = None
    n_nodes: int | None = None  # needed where there are no features of nodes


def is_sample(x: object) -> bool:
    """Return whether x is a graph rather than a row of a table."""
    if isinstance(x, Mapping) or _is_networkx(x):
        return True
    return isinstance(x, tuple) and 2 <= len(x) <= 4 and not any(np.isscalar(part) for part in x[:2])


def is_one_graph(X: object) -> bool:
    """Return whether X is a graph by itself: a dict, a networkx graph, a GraphSample or a tuple (features, edges, …).

    >>> features, edges = np.zeros((3, 2)), [(0, 1), (1, 2)]
    >>> is_one_graph((features, edges)), is_one_graph([(features, edges)]), is_one_graph(features)
    (True, False, False)
    """
    if isinstance(X, (GraphSample, Mapping)):
        return True
    if not isinstance(X, tuple):
        return is_sample(X)
    if not is_sample(X) or len(X) < 2 or is_sample(X[0]) or is_sample(X[1]):
        return False
    return isinstance(X[1], Graph) or _are_pairs(X[1])


def _are_pairs(edges: Ids) -> bool:
    """Return whether these are pairs of whole numbers; features of the variables of a table have three axes."""
    try:
        array = np.asarray(edges)
    except ValueError:
        return False
    if array.size == 0:
        return array.ndim <= 2
    return array.ndim == 2 and array.shape[1] == 2 and array.dtype.kind in "iu"


def labels_of_one(Y: Tabular) -> list[Label] | None:
    """Return the labels of one graph as a list of one; raise if they are the labels of a list of graphs."""
    if Y is None:
        return None
    if not isinstance(Y, Mapping):
        try:
            depth = np.ndim(Y)
        except ValueError:
            depth = 2
        if depth != 1:
            raise DataError(
                "X is one graph, so Y must be an array with a label per node; for several graphs, give X and Y as lists"
            )
    return [Y]


def read_samples(X: object) -> list[GraphSample]:
    """Return graphs in one form, from dicts, tuples (features, edges, …) and networkx graphs."""
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1:
        X = list(X)
    if not isinstance(X, (list, tuple)) or isinstance(X, GraphSample):
        raise DataError(f"X must be a list of graphs, not {type(X).__name__}")
    return [_sample(x, g) for g, x in enumerate(X)]


def _sample(x: Tabular, g: int) -> GraphSample:
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


def _is_networkx(x: object) -> bool:
    return hasattr(x, "nodes") and hasattr(x, "edges") and hasattr(x, "adjacency")


def _from_networkx(x: Tabular, g: int) -> GraphSample:
    """Read the attribute "features" of nodes and, if it is there, of edges."""
    try:
        graph, names = Graph.from_networkx(x)
    except DataError as error:
        hint = "; edges have no direction here: give graph.to_undirected()" if x.is_directed() else ""
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


def graph_of(sample: GraphSample, g: int) -> Graph:
    n = sample.n_nodes
    if n is None:
        if sample.features is None:
            raise DataError(f"graph {g} has neither features nor n_nodes; give one of them")
        shape = sample.features.shape if hasattr(sample.features, "shape") else np.shape(sample.features)
        n = shape[0] if shape else 0
    if isinstance(sample.edges, Graph):
        return sample.edges
    try:
        return Graph(n, sample.edges)
    except CrfkitError as error:
        raise DataError(f"graph {g}: {error}") from None


def matrix_width(features: Features, what: str) -> int:
    shape = features.shape if hasattr(features, "shape") else np.shape(features)
    if len(shape) != 2:
        raise DataError(f"{what} must be a matrix with a row each; got shape {tuple(shape)}")
    return int(shape[1])


def joined_labels(Y: object, X: Tabular, sizes: Sequence[int], noun: str = "graph") -> tuple[Labels, NDArray[np.bool_]]:
    """Return the labels of all nodes, and which of them are known; those of a networkx graph may be a dict by node.

    `noun` is what messages call a sample.
    """
    if isinstance(Y, (str, Mapping)) or not hasattr(Y, "__iter__"):
        raise DataError(f"Y must be a list with the labels of each {noun}, not {type(Y).__name__}")
    rows = list(Y)
    if len(rows) != len(sizes):
        raise DataError(f"labels of {len(rows)} {noun}s for {len(sizes)} {noun}s; expected labels for each {noun}")
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
        raise DataError(f"some {noun}s have {kinds[0]} as labels, others have {kinds[1]}; use one kind")
    text = "strings" in kinds
    all_values = [v if known.any() else np.full(v.shape, "" if text else 0) for v, known in parts]
    empty: list[object] = [np.zeros(0, dtype="U1" if text else np.int64)] if not parts else []
    return np.concatenate([*all_values, *empty]), np.concatenate([np.zeros(0, dtype=bool), *(k for _, k in parts)])
