"""Tables (multi-label, multi-output): rows are graphs of the same variables, with weights per variable and edge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from crfkit._checks import check_features, weights_of
from crfkit._types import Array, Entries, Features, Floats, Ids, Label, Samples, Tabular
from crfkit.errors import DataError, ModelFileError
from crfkit.files.modelfile import Contents
from crfkit.graph.data import GraphData
from crfkit.graph.encoding.states import Labels, check_classes, learn_classes, to_states
from crfkit.graph.encoding.table_columns import column_names, have_names, make_structure, read_columns
from crfkit.graph.encoding.table_inputs import check_own, split_inputs
from crfkit.graph.fields.field import GraphField
from crfkit.graph.graph import Graph

Constant = Callable[[str], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class TableEncoder:
    """Encode rows of features and rows of labels, and turn states back into labels."""

    classes: list[Labels]  # the labels of each variable
    variables: list[str]
    features: list[str] | None  # None if there are no inputs
    structure: Graph
    intercept: bool = True
    edge_inputs: bool = True  # whether the features are inputs of edges too
    n_own: int = 0  # features of each variable, besides those of the row

    kind = "table"
    noun = "row"
    node_form = "reference"
    edge_form = "reference"

    @classmethod
    def learn(
        cls,
        X: Tabular,
        Y: Tabular,
        *,
        graph: object = "complete",
        intercept: bool = True,
        edge_inputs: bool = False,
        constant: Constant | None = None,
    ) -> tuple[TableEncoder, Ids]:
        """Return the encoder for a training set, and the states [samples, variables] of its labels.

        A column with a single label is an error, unless other columns have that label and more: the column then gets
        their labels, and `constant` is called with a note about it.
        """
        names = column_names(Y, "y")
        columns = read_columns(Y, names)
        if not names or not len(columns[0][0]):
            raise DataError("Y has no columns" if not names else "Y has no rows")
        found = [np.unique(values[known]) for values, known in columns]
        shared: dict[tuple[str, object], Labels] = {}
        classes = [
            _borrowed(found, i, name, constant, shared)
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
                raise DataError(f"X has {rows} rows, Y has {len(columns[0][0])}; expected as many rows")
        made = cls(
            classes=classes,
            variables=names,
            features=features,
            structure=make_structure(graph, names),
            intercept=bool(intercept),
            edge_inputs=bool(edge_inputs),
        )
        return made, made.states(Y)

    # --- what the estimators need

    def listed(self, X: Samples, Y: Samples) -> tuple[Tabular, Tabular, bool]:
        """Return X and Y unchanged: a table is never a single graph."""
        return X, Y, False

    @cached_property
    def named(self) -> bool:
        """Return whether the variables had names in the training set; otherwise they are known by their order."""
        return have_names(self.variables, "y")

    @property
    def n_states(self) -> list[int]:
        return [len(c) for c in self.classes]

    @property
    def has_inputs(self) -> bool:
        """Return whether there are features, of rows or of variables."""
        return self.features is not None

    @property
    def edges_differ(self) -> bool:
        """Return whether the potentials of an edge differ from row to row."""
        return self.features is not None and self.edge_inputs

    def field(self, node_form: str, edge_form: str) -> GraphField:
        """Return the field: a set of weights for every variable and every edge."""
        structure, own = self.structure, self.n_own
        width = len(self.feature_names)
        edge_width = width + own if self.edge_inputs else 1
        states = np.array(self.n_states)
        return GraphField(states, width, edge_width, structure.n_edges, node_form, edge_form, structure.edges)

    def training_data(self, X: Tabular, states: Ids, weights: Tabular, rows: str) -> GraphData:
        """Return the encoded rows with their states.

        `rows` sets how rows without inputs are kept: "counts" as sufficient statistics, "distinct" as different rows
        weighted by how often each occurs, "all" unchanged. With "counts", labels may be unknown: the likelihood,
        which needs no more than counts, sums over them.
        """
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

    def encode(self, X: Tabular, observed: Tabular = None) -> GraphData:
        """Return encoded rows. Without inputs X is None, and there are as many rows as in `observed`, or one."""
        shared, own = self.inputs(X)
        rows = own if own is not None else shared
        if rows is not None:
            return self._data(shared, own, rows.shape[0])
        return self._data(None, None, 1 if observed is None else len(observed))

    def encode_labels(self, Y: Samples, data: GraphData, X: Samples) -> Ids:
        """Return the states [n] of labels; −1 where a label is unknown."""
        states = self.states(Y)
        if len(states) != len(data):
            raise DataError(f"{len(states)} rows of labels for {len(data)} rows of X; expected as many")
        return states.ravel()

    def states(self, Y: Tabular) -> Ids:
        """Return the states [samples, variables] of labels; −1 where a label is unknown."""
        names = column_names(Y, "y")
        if hasattr(Y, "columns") and have_names(self.variables, "y"):
            places = {name: i for i, name in enumerate(names)}
            if missing := [name for name in self.variables if name not in places]:
                raise DataError(f"the labels have no column {missing[0]!r}, which the model was trained on")
            Y = Y.to_numpy()[:, [places[name] for name in self.variables]]
        elif len(names) != len(self.classes):
            raise DataError(f"{len(names)} columns of labels; the model has {len(self.classes)} variables")
        columns = read_columns(Y, self.variables)
        parts = [
            to_states(values, known, classes, f"column {name} of Y")
            for (values, known), classes, name in zip(columns, self.classes, self.variables, strict=True)
        ]
        return np.stack(parts, axis=1)

    def labels(self, states: Ids, data: GraphData, X: Samples) -> Labels:
        """Return labels [..., samples, variables] from states [..., n]."""
        table = states.reshape(*states.shape[:-1], len(data), len(self.classes))
        if (table.reshape(-1, len(self.classes)).max(axis=0, initial=0) >= [len(c) for c in self.classes]).any():
            raise DataError("the scores of labels are not finite numbers: the features, or the weights, are too large")
        columns = [classes[table[..., i]] for i, classes in enumerate(self.classes)]
        mixed = len({c.dtype.kind for c in columns}) > 1
        if mixed:
            columns = [c.astype(object) for c in columns]
        return np.stack(columns, axis=-1)

    def by_node(self, values: Floats, data: GraphData, X: Samples) -> list[Floats]:
        """Return an array [samples, states] for each variable, from values [n, K]."""
        table = values.reshape(len(data), len(self.classes), values.shape[1])
        return [np.ascontiguousarray(table[:, i, :k]) for i, k in enumerate(self.n_states)]

    def by_edge(self, values: Floats, data: GraphData) -> Floats:
        """Return an array [samples, edges, K, K] from values [E, K, K]."""
        return values.reshape(len(data), self.structure.n_edges, *values.shape[1:])

    # --- names

    def node_name(self, variable: int, feature: int) -> tuple[Label, ...]:
        return self.variables[variable], self.feature_names[feature]

    def edge_name(self, edge: int, feature: int) -> tuple[Label, ...]:
        i, j = self.structure.edges[edge]
        names = self._shared_names() if self.edge_inputs else ["intercept"]
        names = [*names, *(f"{own} of {self.variables[k]}" for k in (i, j) for own in self._own_names())]
        return (self.variables[i], self.variables[j]), names[feature]

    @property
    def feature_names(self) -> list[str]:
        """Return the names of the features of a node."""
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

    def parts(self) -> tuple[Entries, dict[str, Array]]:
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
        if own < 0 or (own and features is None) or own > len(contents.tensor("weights", np.float64)):
            raise ModelFileError(f"the metadata entry 'own_features' is {own!r}")
        edges = contents.tensor("structure", np.int32)
        if len(edges) % 2:
            raise ModelFileError("the edges are not pairs")
        return cls(
            classes=classes,
            variables=variables,
            features=None if features is None else _names(features, "features"),
            structure=Graph(len(classes), edges.reshape(-1, 2)),
            intercept=contents.entry("intercept", bool),
            edge_inputs=contents.entry("edge_inputs", bool),
            n_own=own,
        )

    # --- inputs

    def inputs(self, X: Samples) -> tuple[Tabular, Floats | None]:
        """Return the features of rows and the features of variables; None for what the model does not have."""
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

    def _shared(self, X: Tabular) -> Features:
        assert self.features is not None
        names = column_names(X, "x")
        named = hasattr(X, "columns") and have_names(self.features, "x")
        places = {name: i for i, name in enumerate(names)}
        if named and (missing := [name for name in self.features if name not in places]):
            raise DataError(f"X has no column {missing[0]!r}, which the model was trained on")
        if len(names) != len(self.features) and not named:
            raise DataError(f"X has {len(names)} columns; the model has {len(self.features)} features")
        if named:
            X = X.to_numpy()[:, [places[name] for name in self.features]]
        elif hasattr(X, "columns"):
            X = X.to_numpy()
        return check_features(X, "X")

    def _data(
        self, X: Samples, own: Floats | None, rows: int, states: Ids | None = None, weights: Floats | None = None
    ) -> GraphData:
        data = GraphData.table(rows, self.structure, X, states, weights, self.intercept, own)
        if self.edge_inputs:
            return data
        none = np.zeros(data.graph.n_edges, dtype=np.int32)
        return replace(data, edge_features=np.ones((1, 1)), edge_rows=none)


def _borrowed(
    found: list[Labels], i: int, name: str, constant: Constant, shared: dict[tuple[str, object], Labels]
) -> Labels:
    """Return labels for a column that has only one: those of the columns that have this label and more.

    `shared` remembers them from column to column.
    """
    label = found[i][0]
    key = (found[i].dtype.kind, label.item())
    if key not in shared:
        others = [c for c in found if len(c) > 1 and c.dtype.kind == found[i].dtype.kind and label in c]
        shared[key] = np.unique(np.concatenate(others)) if others else np.array([])
    labels = shared[key]
    if not len(labels):
        raise DataError(
            f"column {name} of Y has only the label {label.item()!r}; at least two different labels are needed: leave "
            "the column out, since there is nothing to learn from it"
        )
    constant(
        f"column {name} of Y has only the label {label.item()!r} in the training set; its labels are taken to be those "
        f"of the other columns ({', '.join(map(str, labels.tolist()[:10]))}), and predictions of it say little"
    )
    return labels


def _names(values: list[Label], what: str) -> list[str]:
    if not all(isinstance(name, str) for name in values) or len(set(values)) != len(values):
        raise ModelFileError(f"the names of the {what} are not different strings")
    return values
