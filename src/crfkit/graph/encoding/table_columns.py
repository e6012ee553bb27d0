"""Columns of tables: their names, their labels, and pairs of them that are edges."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from crfkit._checks import sparse_matrix
from crfkit._types import Ids, Tabular
from crfkit.errors import DataError, ParameterError
from crfkit.files import limits
from crfkit.graph.encoding.states import Labels, check_unicode, read_labels
from crfkit.graph.graph import Graph
from crfkit.wording import counted


def read_columns(Y: Tabular, names: list[str]) -> list[tuple[Labels, NDArray[np.bool_]]]:
    """Return the labels of every column, and which of them are known; columns may be of different kinds."""
    if hasattr(Y, "to_numpy"):
        Y = Y.to_numpy()
    elif hasattr(Y, "toarray"):
        Y = sparse_matrix(Y, "Y").toarray()
    elif not isinstance(Y, np.ndarray):
        Y = np.array(Y, dtype=object)
    return [read_labels(Y[:, i], f"column {name} of Y") for i, name in enumerate(names)]


def column_names(table: Tabular, letter: str) -> list[str]:
    """Return the names of the columns: from a data frame, otherwise x0, x1, … (y0, y1, … for labels)."""
    if hasattr(table, "columns"):
        names = [str(name) for name in table.columns]
        check_unicode(names, "the table has the column")
        if len(set(names)) != len(names):
            twice = next(name for name, n in Counter(names).items() if n > 1)
            raise DataError(f"two columns have the same name, {twice!r}; rename one of them")
        return names
    what = "X must be [samples, features]" if letter == "x" else "Y must be [samples, variables] with labels"
    try:
        shape = table.shape if hasattr(table, "shape") else np.shape(table)
    except ValueError:
        raise DataError(f"{what}; its rows have different lengths") from None
    if len(shape) != 2:
        hint = "; for one variable give Y[:, None]" if letter == "y" and len(shape) == 1 else ""
        raise DataError(f"{what}; got an array of shape {tuple(shape)}{hint}")
    return [f"{letter}{i}" for i in range(shape[1])]


def have_names(names: list[str], letter: str) -> bool:
    """Return whether the columns of the training set had names; otherwise they are known by their order."""
    return any(name != f"{letter}{i}" for i, name in enumerate(names))


# --- pairs of columns


def make_structure(graph: object, names: list[str]) -> Graph:
    """Return the edges between variables, from "complete", "none", pairs of column numbers or names, or a graph."""
    n = len(names)
    if isinstance(graph, str):
        if graph == "complete":
            needed = n * (n - 1) // 2 * 16
            limits.check_memory(needed, f"the graph of all pairs of {n:,} columns")
            return Graph.complete(n)
        if graph == "none":
            return Graph(n, np.empty((0, 2), dtype=np.int32))
        raise ParameterError(f"unknown graph {graph!r}; expected 'complete', 'none', a list of edges, or a graph")
    if isinstance(graph, Graph):
        if graph.n_graphs != 1 or graph.n_nodes != n:
            raise ParameterError(
                f"the graph has {graph.n_nodes} nodes in {counted(graph.n_graphs, 'graph')}; Y has {n} columns"
            )
        return graph
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):  # networkx
        places = _places(names)
        for node in graph.nodes:
            _column_number(node, places, "the graph has a node")
        graph = list(graph.edges())
    pairs = _column_pairs(graph, names, "the graph has a node")
    if pairs is None:
        raise ParameterError(f"graph must be 'complete', 'none', pairs of columns or a graph, not {graph!r}")
    return Graph(n, np.array(pairs, dtype=np.int32).reshape(-1, 2))


def candidate_pairs(candidates: object, names: list[str], kept: list[str]) -> Ids | None:
    """Return [M, 2] places among the columns `kept` that may be edges, from pairs of names or numbers of all columns.

    None means all pairs.
    """
    if candidates is None:
        return None
    if hasattr(candidates, "edges") and not isinstance(candidates, np.ndarray):
        candidates = candidates.edges() if callable(candidates.edges) else candidates.edges
    pairs = _column_pairs(candidates, names, "candidates name the column")
    if pairs is None:
        raise ParameterError(f"candidates must be None or pairs of columns, not {candidates!r}")
    for a, b in pairs:
        if a == b:
            raise DataError(f"candidates join the column {names[a]!r} to itself")
    places = _places(kept)
    chosen = [
        tuple(sorted((places[names[a]], places[names[b]]))) for a, b in pairs if {names[a], names[b]} <= set(kept)
    ]
    return np.array(sorted(set(chosen)), dtype=np.int32).reshape(-1, 2)


def _column_pairs(given: Tabular, names: list[str], found: str) -> list[tuple[int, int]] | None:
    """Return pairs of column numbers; None if what was given is not a list of pairs."""
    places = _places(names)
    try:
        return [(_column_number(a, places, found), _column_number(b, places, found)) for a, b in given]
    except DataError:
        raise
    except (TypeError, ValueError):
        return None


def _places(names: list[str]) -> dict[str, int]:
    """Return the number of each column, the first if several have its name."""
    return {name: i for i, name in reversed(list(enumerate(names)))}


def _column_number(column: object, places: dict[str, int], found: str) -> int:
    """Return the number of a column from its name or number; `found` begins the error if there is no such column."""
    if isinstance(column, str):
        if column not in places:
            names = sorted(places, key=places.__getitem__)
            shown = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
            raise DataError(f"{found} {column!r}; the columns of Y are {shown}")
        return places[column]
    if (
        isinstance(column, (bool, np.bool_))
        or not isinstance(column, (int, np.integer))
        or not 0 <= column < len(places)
    ):
        raise DataError(f"{found} {column!r}; the columns of Y are numbered 0 … {len(places) - 1}")
    return int(column)
