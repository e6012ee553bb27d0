"""The encoder that suits X: a table, a list of graphs, or one graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crfkit._types import Ids, Samples, Tabular
from crfkit.errors import ParameterError
from crfkit.graph.encoding.graph_samples import is_one_graph, is_sample, labels_of_one
from crfkit.graph.encoding.graphs import SampleEncoder
from crfkit.graph.encoding.tables import TableEncoder


def learn_encoder(
    X: Samples,
    Y: Samples,
    *,
    graph: object = "complete",
    intercept: bool = True,
    edge_features: bool | None = None,
    tell: Callable[[str], None] | None = None,
) -> tuple[TableEncoder | SampleEncoder, Tabular, Ids]:
    """Return the encoder for a training set, X in the form that it encodes, and the states of the labels.

    `graph` is for tables. `edge_features`: whether edges have features; None means graphs only. `tell` is
    called with a note about columns that have a single label.

    >>> encoder, X, states = learn_encoder(([[0.0], [1.0]], [(0, 1)]), ["a", "b"])
    >>> encoder.kind, len(X), states.tolist()
    ('graphs', 1, [0, 1])
    """
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1:
        X = list(X)
    if is_one_graph(X):
        X, Y = [X], labels_of_one(Y)
    if not (isinstance(X, (list, tuple)) and len(X) and is_sample(X[0])):
        of_table, states = TableEncoder.learn(
            X, Y, graph=graph, intercept=intercept, edge_inputs=bool(edge_features), constant=tell
        )
        return of_table, X, states
    if not isinstance(graph, str) or graph != "complete":
        raise ParameterError("samples that are graphs bring their own edges; `graph` is for tables, leave it out")
    of_graphs, states = SampleEncoder.learn(
        X, Y, intercept=intercept, edge_inputs=True if edge_features is None else edge_features
    )
    return of_graphs, X, states
