"""Tables (multi-label, multi-output): rows are graphs of the same variables, with weights per variable and edge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfkit._checks import check_features, weights_of
from crfkit._types import Floats, Ids
from crfkit.data.graph import Graph
from crfkit.data.graphs import GraphData
from crfkit.encoders.states import Labels, check_classes, learn_classes, read_labels, to_states
from crfkit.encoders.table_inputs import check_own, split_inputs
from crfkit.errors import DataError, ModelFileError, ParameterError
from crfkit.fields.graph import GraphField
from crfkit.modelfile import Contents
from crfkit.wording import counted

Constant = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class TableEncoder:
    """Rows of features and rows of labels, to and from encoded graphs."""

    classes: list[Labels]  # of each variable
    variables: list[str]
    features: list[str] | None  # None: there are no inputs
    structure: Graph
    intercept: bool = True
    edge_inputs: bool = True  # whether edges see the features
    n_own: int = 0  # features of each variable, besides those of the row

    kind = "table"
    noun = "row"
    node_form = "reference"
    edge_form = "reference"

    @classmethod
    def learn(
        cls, graph: Any, X: Any, Y: Any, intercept: bool, edge_inputs: bool, constant: Constant | None = None
    ) -> tuple[TableEncoder, Ids]:
        """(the encoder for a training set, the states [samples, variables] of its labels).

        A column with one label only is an error, unless the other columns have that label and others: it then has
        their labels, and `constant` is told so.
        """
        names = column_names(Y, "y")
        columns = read_columns(Y, names)
        if not names or not len(columns[0][0]):
            raise DataError("Y has no columns" if not names else "Y has no rows")
        found = [np.unique(values[known]) for values, known in columns]
        classes = [
            _borrowed(found, i, name, constant)
            if constant is not None and len(found[i]) == 1
            else learn_classes(values, known, f"column {name} of Y", minus_one=True)
            for i, (name, (values, known)) in enumerate(zip(names, columns, strict=True))
        ]
        features = None
        if X is not None:
            features = column_names(X, "x")
            if len(features) == 0:
                raise DataError("X has no columns; give X=None for a field without inputs")
            if (rows := X.shape[0] if hasattr(X, "shape") else len(X)) != len(columns[0][0]):
                raise DataError(f"X has {rows} rows, Y has {len(columns[0][0])}")
        made = cls(classes, names, features, make_structure(graph, names), bool(intercept), bool(edge_inputs))
        return made, made.states(Y)

    # --- what the estimators need

    @property
    def named(self) -> bool:
        """Whether the variables had names in the training set; else they are known by their order."""
        return _named(self.variables, "y")

    @property
    def n_states(self) -> list[int]:
        return [len(c) for c in self.classes]

    def field(self, node_form: str, edge_form: str) -> GraphField:
        """A set of weights for every variable and every edge."""
        structure, own = self.structure, self.n_own
        width = len(self.feature_names)
        edge_width = width + own if self.edge_inputs else 1
        states = np.array(self.n_states)
        return GraphField(states, width, edge_width, structure.n_edges, node_form, edge_form, structure.edges)

    def training_data(self, X: Any, states: Ids, weights: Any, rows: str) -> GraphData:
        """`rows`: where there are no inputs, "counts" are the sufficient statistics of all, "distinct" has equal rows
        once, with their number as a weight, "all" keeps them. Labels may be unknown where counts would do: the
        likelihood sums over them."""
        if (states < 0).any():
            if rows == "distinct":
                row, column = np.argwhere(states < 0)[0]
                raise DataError(
                    f"Y has no label at row {row}, column {self.variables[column]}, and this loss needs all labels: "
                    "drop the row, fill it in, or use the likelihood, which sums over labels that are not known"
                )
            rows = "distinct"
        if self.features is None and rows == "counts":
            return GraphData.counts(self.structure, states, max(self.n_states), weights)
        if self.features is None and rows == "distinct":
            each = np.ones(len(states)) if weights is None else weights_of(weights, "row", len(states))
            states, which = np.unique(states, axis=0, return_inverse=True)
            weights = np.bincount(which.ravel(), weights=each)
        return self._data(*self.inputs(X), len(states), states, weights)

    def encode(self, X: Any, observed: Any = None) -> GraphData:
        """Rows to graphs. Without inputs X is None, and there are as many rows as in `observed`, or one."""
        shared, own = self.inputs(X)
        rows = own if own is not None else shared
        if rows is not None:
            return self._data(shared, own, rows.shape[0])
        return self._data(None, None, 1 if observed is None else len(observed))

    def encode_labels(self, Y: Any, data: GraphData, X: Any) -> Ids:
        """[n] states, −1 where unknown."""
        states = self.states(Y)
        if len(states) != len(data):
            raise DataError(f"{len(states)} rows of labels for {len(data)} rows of X")
        return states.ravel()

    def states(self, Y: Any) -> Ids:
        """[samples, variables]"""
        names = column_names(Y, "y")
        if hasattr(Y, "columns") and _named(self.variables, "y"):
            if missing := [name for name in self.variables if name not in names]:
                raise DataError(f"the labels have no column {missing[0]!r}, which the model was trained on")
            Y = Y.to_numpy()[:, [names.index(name) for name in self.variables]]
        elif len(names) != len(self.classes):
            raise DataError(f"{len(names)} columns of labels; the model has {len(self.classes)} variables")
        columns = read_columns(Y, self.variables)
        parts = [
            to_states(values, known, classes, f"column {name} of Y")
            for (values, known), classes, name in zip(columns, self.classes, self.variables, strict=True)
        ]
        return np.stack(parts, axis=1)

    def labels(self, states: Ids, data: GraphData, X: Any) -> Labels:
        """States [..., n] to labels [..., samples, variables]."""
        table = states.reshape(*states.shape[:-1], len(data), len(self.classes))
        columns = [classes[table[..., i]] for i, classes in enumerate(self.classes)]
        mixed = len({c.dtype.kind for c in columns}) > 1
        if mixed:
            columns = [c.astype(object) for c in columns]
        return np.stack(columns, axis=-1)

    def by_node(self, values: Floats, data: GraphData, X: Any) -> list[Floats]:
        """Values [n, K] as an array [samples, states] for each variable."""
        table = values.reshape(len(data), len(self.classes), values.shape[1])
        return [np.ascontiguousarray(table[:, i, :k]) for i, k in enumerate(self.n_states)]

    def by_edge(self, values: Floats, data: GraphData) -> Floats:
        """Values [E, K, K] as an array [samples, edges, K, K]."""
        return values.reshape(len(data), self.structure.n_edges, *values.shape[1:])

    # --- names

    def node_name(self, variable: int, feature: int) -> tuple[Any, ...]:
        return self.variables[variable], self.feature_names[feature]

    def edge_name(self, edge: int, feature: int) -> tuple[Any, ...]:
        i, j = self.structure.edges[edge]
        names = self._shared_names() if self.edge_inputs else ["intercept"]
        names = [*names, *(f"{own} of {self.variables[k]}" for k in (i, j) for own in self._own_names())]
        return (self.variables[i], self.variables[j]), names[feature]

    @property
    def feature_names(self) -> list[str]:
        """Of nodes."""
        return [*self._shared_names(), *self._own_names()]

    def _shared_names(self) -> list[str]:
        if self.features is None:
            return ["intercept"]
        return ["intercept", *self.features] if self.intercept else self.features

    def _own_names(self) -> list[str]:
        return [f"f{k}" for k in range(self.n_own)]

    def node_classes(self, variable: int) -> Labels:
        return self.classes[variable]

    def edge_classes(self, edge: int) -> tuple[Labels, Labels]:
        i, j = self.structure.edges[edge]
        return self.classes[i], self.classes[j]

    # --- the file

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        metadata = {
            "labels": [c.tolist() for c in self.classes],
            "variables": self.variables,
            "features": self.features,
            "intercept": self.intercept,
            "edge_inputs": self.edge_inputs,
            **({"own_features": self.n_own} if self.n_own else {}),
        }
        return metadata, {"structure": self.structure.edges.ravel()}

    @classmethod
    def from_parts(cls, contents: Contents) -> TableEncoder:
        classes = [check_classes(labels) for labels in contents.entry("labels", list)]
        variables = _names(contents.entry("variables", list), "variables")
        features = contents.entry("features", list, type(None))
        if not classes or len(variables) != len(classes):
            raise ModelFileError(f"{len(variables)} variables, but labels of {len(classes)}")
        own = contents.entry("own_features", int) if "own_features" in contents.metadata else 0
        if own < 0 or (own and features is None):
            raise ModelFileError(f"the metadata entry 'own_features' is {own!r}")
        edges = contents.tensor("structure", np.int32)
        if len(edges) % 2:
            raise ModelFileError("the edges are not pairs")
        return cls(
            classes,
            variables,
            None if features is None else _names(features, "features"),
            Graph(len(classes), edges.reshape(-1, 2)),
            contents.entry("intercept", bool),
            contents.entry("edge_inputs", bool),
            own,
        )

    # --- inputs

    def inputs(self, X: Any) -> tuple[Any, Floats | None]:
        """(the matrix of the features of rows, those of variables); None for what the model has not."""
        if self.features is None:
            if X is not None:
                raise DataError("the model has no inputs; X must be None")
            return None, None
        if X is None:
            more = f" and {self.n_own} of each variable" if self.n_own else ""
            raise DataError(f"the model has {len(self.features)} features{more}; X is None")
        if not self.n_own:
            return self._shared(X), None
        shared, own = split_inputs(X)
        if (shared is None) == bool(self.features) or own is None:
            parts = "a tuple ([samples, features], {})" if self.features else "an array {}"
            expected = parts.format(f"[samples, {len(self.classes)}, {self.n_own}]")
            raise DataError(f"the model has features of each variable: X must be {expected}")
        own = check_own(own, len(self.classes), self.n_own)
        if shared is None:
            return np.zeros((len(own), 0)), own
        shared = self._shared(shared)
        if shared.shape[0] != len(own):
            raise DataError(f"X has {shared.shape[0]} rows of features, and {len(own)} of features of variables")
        return shared, own

    def _shared(self, X: Any) -> Any:
        assert self.features is not None
        names = column_names(X, "x")
        named = hasattr(X, "columns") and _named(self.features, "x")
        if named and (missing := [name for name in self.features if name not in names]):
            raise DataError(f"X has no column {missing[0]!r}, which the model was trained on")
        if len(names) != len(self.features) and not named:
            raise DataError(f"X has {len(names)} columns; the model has {len(self.features)} features")
        if named:
            X = X.to_numpy()[:, [names.index(name) for name in self.features]]
        elif hasattr(X, "columns"):
            X = X.to_numpy()
        return check_features(X, "X")

    def _data(
        self, X: Any, own: Floats | None, rows: int, states: Ids | None = None, weights: ArrayLike | None = None
    ) -> GraphData:
        data = GraphData.table(rows, self.structure, X, states, weights, self.intercept, own)
        if self.edge_inputs:
            return data
        none = np.zeros(data.graph.n_edges, dtype=np.int32)
        return replace(data, edge_features=np.ones((1, 1)), edge_rows=none)


def _borrowed(found: list[Labels], i: int, name: str, constant: Constant) -> Labels:
    """The labels of a column that has only one, from columns that have that one and others."""
    label = found[i][0]
    others = [c for c in found if len(c) > 1 and c.dtype.kind == found[i].dtype.kind and label in c]
    if not others:
        raise DataError(
            f"column {name} of Y has only the label {label.item()!r}; at least two different labels are needed: leave "
            "the column out, since there is nothing to learn from it"
        )
    labels = np.unique(np.concatenate(others))
    constant(
        f"column {name} of Y has only the label {label.item()!r} in the training set; its labels are taken to be those "
        f"of the other columns ({', '.join(map(str, labels.tolist()[:10]))}), and predictions of it say little"
    )
    return labels


def make_structure(graph: Any, names: list[str]) -> Graph:
    """The edges between variables: "complete", "none", pairs of column numbers or names, a Graph or networkx's."""
    n = len(names)
    if isinstance(graph, str):
        if graph == "complete":
            return Graph.complete(n)
        if graph == "none":
            return Graph(n, np.empty((0, 2), dtype=np.int32))
        raise ParameterError(f"unknown graph {graph!r}; 'complete', 'none', a list of edges, or a graph")
    if isinstance(graph, Graph):
        if graph.n_graphs != 1 or graph.n_nodes != n:
            raise ParameterError(
                f"the graph has {graph.n_nodes} nodes in {counted(graph.n_graphs, 'graph')}; Y has {n} columns"
            )
        return graph
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):  # networkx
        for node in graph.nodes:
            _place(node, names)
        graph = list(graph.edges())
    try:
        pairs = [(_place(a, names), _place(b, names)) for a, b in graph]
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise ParameterError(f"graph must be 'complete', 'none', pairs of columns or a graph, not {graph!r}") from None
    return Graph(n, np.array(pairs, dtype=np.int32).reshape(-1, 2))


def _place(node: Any, names: list[str]) -> int:
    """The number of a column from its name or number."""
    if isinstance(node, str):
        if node not in names:
            raise DataError(f"the graph has a node {node!r}; the columns of Y are {', '.join(names[:10])}")
        return names.index(node)
    if isinstance(node, (bool, np.bool_)) or not isinstance(node, (int, np.integer)) or not 0 <= node < len(names):
        raise DataError(f"the graph has a node {node!r}; the columns of Y are numbered 0 … {len(names) - 1}")
    return int(node)


def read_columns(Y: Any, names: list[str]) -> list[tuple[Labels, NDArray[np.bool_]]]:
    """(labels, which are known) of every column; columns may be of different kinds."""
    if hasattr(Y, "to_numpy"):
        Y = Y.to_numpy()
    elif hasattr(Y, "toarray"):
        Y = Y.toarray()
    elif not isinstance(Y, np.ndarray):
        Y = np.array(Y, dtype=object)
    return [read_labels(Y[:, i], f"column {name} of Y") for i, name in enumerate(names)]


def column_names(table: Any, letter: str) -> list[str]:
    """Names of the columns: a data frame's, else x0, x1, …"""
    if hasattr(table, "columns"):
        names = [str(name) for name in table.columns]
        if len(set(names)) != len(names):
            raise DataError("two columns have the same name")
        return names
    what = "X must be [samples, features]" if letter == "x" else "Y must be [samples, variables], a label each"
    try:
        shape = table.shape if hasattr(table, "shape") else np.shape(table)
    except ValueError:
        raise DataError(f"{what}; its rows have different lengths") from None
    if len(shape) != 2:
        hint = "; one variable: Y[:, None]" if letter == "y" and len(shape) == 1 else ""
        raise DataError(f"{what}; got an array of shape {tuple(shape)}{hint}")
    return [f"{letter}{i}" for i in range(shape[1])]


def _named(names: list[str], letter: str) -> bool:
    """Whether the columns of the training set had names; else they are known by their order."""
    return names != [f"{letter}{i}" for i in range(len(names))]


def _names(values: list[Any], what: str) -> list[str]:
    if not all(isinstance(name, str) for name in values) or len(set(values)) != len(values):
        raise ModelFileError(f"the names of the {what} are not different strings")
    return values
