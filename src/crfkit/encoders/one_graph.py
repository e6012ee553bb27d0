"""One graph in place of a list of graphs: `fit((features, edges), y)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from crfkit.data.graph import Graph
from crfkit.encoders.graphs import GraphSample, is_sample
from crfkit.errors import DataError


def is_one_graph(X: Any) -> bool:
    """Whether X is a graph by itself: a dict, a networkx graph, a GraphSample or a tuple (features, edges, …).

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


def _are_pairs(edges: Any) -> bool:
    """Whether these are pairs of whole numbers; features of the variables of a table have three axes."""
    try:
        array = np.asarray(edges)
    except ValueError:
        return False
    if array.size == 0:
        return array.ndim <= 2
    return array.ndim == 2 and array.shape[1] == 2 and array.dtype.kind in "iu"


def labels_of_one(Y: Any) -> list[Any] | None:
    """The labels of one graph as a list of one; raises where they are those of a list of graphs."""
    if Y is None:
        return None
    if not isinstance(Y, Mapping):
        try:
            depth = np.ndim(Y)
        except ValueError:
            depth = 2
        if depth != 1:
            raise DataError("X is one graph: Y must be an array with a label per node; or X and Y must be lists")
    return [Y]
