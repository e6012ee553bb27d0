"""Tables that structure is learned from: states of the columns, warnings about unusual columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._types import Entries, Ids, Samples, Tabular
from crfkit.errors import DataError
from crfkit.files import limits
from crfkit.graph.encoding.states import Labels, check_unicode
from crfkit.graph.encoding.table_columns import column_names, read_columns
from crfkit.graph.encoding.table_inputs import check_own, split_inputs
from crfkit.graph.encoding.tables import TableEncoder
from crfkit.graph.graph import Graph
from crfkit.structure.encoding.missing_cells import NAMED_COLUMNS, whole
from crfkit.warn import warn_caller

MAX_NUMERIC_LABELS = 24  # a column with more different numbers is not taken for labels


def learn_table(Y: Samples, X: Samples, edge_inputs: bool) -> tuple[TableEncoder, Ids]:
    """Return an encoder without edges and the states [samples, variables], −1 where a label is missing.

    It warns of constant and equal columns.
    """
    names = column_names(Y, "y")
    columns = read_columns(Y, names)
    if not names or not len(columns[0][0]):
        raise DataError("Y has no columns" if not names else "Y has no rows")
    n = len(columns[0][0])
    pairs_of = f"learning edges between all pairs of {len(names):,} columns"
    limits.check_memory(24 * len(names) ** 2, pairs_of, 8 * n * len(names))
    found: list[Labels] = []
    kinds = _kinds(Y)
    for name, (values, known) in zip(names, columns, strict=True):
        if not known.any():
            raise DataError(f"column {name} has no label in any row: leave it out")
        different = np.unique(values[known])
        classes = in_given_order(different if known.all() else whole(different), kinds.get(name))
        if len(classes) > 2 and (
            2 * len(classes) > n or (len(classes) > MAX_NUMERIC_LABELS and classes.dtype.kind in "iuf")
        ):
            advice = (
                "Give bins=5 (--bins 5) to cut numbers into groups of equal size, make it an input, or leave it out"
                if classes.dtype.kind in "iuf"
                else "Group its values, or leave it out"
            )
            raise DataError(
                f"column {name} has {len(classes)} different values in {n} rows, too many to learn from: is it a "
                f"number or a name? {advice}"
            )
        check_unicode(classes, f"column {name} has the label")
        found.append(classes)
    features, n_own = None, 0
    if X is not None:
        shared, own = split_inputs(X)
        features = [] if shared is None else column_names(shared, "x")
        if not features and own is None:
            raise DataError("X has no columns; give X=None for a field without inputs")
        for part in (shared, own):
            if part is not None and (rows := part.shape[0] if hasattr(part, "shape") else len(part)) != n:
                raise DataError(f"X has {rows} rows, Y has {n}; expected as many rows")
        if own is not None:
            n_own = check_own(own, len(names)).shape[2]
    constant = [i for i, classes in enumerate(found) if len(classes) < 2]
    two = {tuple(c.tolist()) for c in found if len(c) == 2}
    completed = [with_another(classes, two) if len(classes) < 2 else classes for classes in found]
    encoder = TableEncoder(
        classes=completed,
        variables=names,
        features=features,
        structure=Graph(len(names), np.empty((0, 2), dtype=np.int32)),
        edge_inputs=edge_inputs,
        n_own=n_own,
    )
    states = encoder.states(Y)
    if constant:
        warn_caller(
            f"{_columns(constant, names)} constant; nothing can be learned about a constant column: its bias depends "
            "on the penalty alone, and it gets no edges",
            UserWarning,
        )
    if same := equal_columns(states, set(constant)):
        pairs = ", ".join(f"{names[i]} and {names[j]}" for i, j in same[:NAMED_COLUMNS]) + (
            ", …" if len(same) > NAMED_COLUMNS else ""
        )
        warn_caller(
            f"columns that are copies of each other: {pairs}; only penalties limit their coupling, and an edge to one "
            "could as well be to the other",
            UserWarning,
        )
    return encoder, states


def _kinds(Y: Samples) -> Entries:
    """Return the type of each column of a data frame; of other tables nothing is known."""
    kinds = getattr(Y, "dtypes", None)
    if kinds is None or not hasattr(Y, "columns"):
        return {}
    return dict(zip(map(str, Y.columns), kinds, strict=True))


def in_given_order(classes: Labels, kind: Any) -> Labels:
    """Return the labels of a column, in the order of its categories if its type is ordered."""
    if not getattr(kind, "ordered", False):
        return classes
    ranks = {label: k for k, label in enumerate(list(kind.categories))}
    return classes[np.argsort([ranks[label] for label in classes.tolist()], kind="stable")]


def unordered_columns(Y: Tabular, encoder: TableEncoder, binned: set[str]) -> list[str]:
    """Return the columns of more than two labels that have no order: neither numbers nor ordered categories."""
    kinds = getattr(Y, "dtypes", None) if hasattr(Y, "columns") else None
    ordered = set(binned)
    if kinds is not None:
        names = map(str, Y.columns)
        ordered |= {name for name, kind in zip(names, kinds, strict=True) if getattr(kind, "ordered", False)}
    columns = zip(encoder.variables, encoder.classes, strict=True)
    return [
        name for name, labels in columns if len(labels) > 2 and labels.dtype.kind not in "iufb" and name not in ordered
    ]


def with_another(classes: Labels, pairs: set[tuple[object, ...]]) -> Labels:
    """Return a constant column's label and one that it never takes: that of the other columns if they share two.

    `pairs` are the labels of the columns that have two.
    """
    label = classes.tolist()[0]
    if len(pairs) == 1 and label in (pair := next(iter(pairs))) and type(pair[0]) is type(label):
        return np.array(pair)
    if isinstance(label, bool):
        return np.array([False, True])
    if isinstance(label, str):
        return np.sort(np.array([label, f"not {label}"]))
    other = 1 - label if label in (0, 1) else 0
    return np.sort(np.array([label, other], dtype=classes.dtype))


def equal_columns(states: Ids, left_out: set[int]) -> list[tuple[int, int]]:
    """Return pairs of columns that are equal up to the names of labels; each column with the first one like it."""
    seen: dict[bytes, int] = {}
    pairs = []
    for j, column in enumerate(states.T):
        if j in left_out:
            continue
        i = seen.setdefault(label_pattern(column), j)
        if i != j:
            pairs.append((i, j))
    return pairs


def label_pattern(column: Ids) -> bytes:
    """Return bytes that are the same for columns that are equal up to the names of their labels."""
    _, first, which = np.unique(column, return_index=True, return_inverse=True)
    return bytes(first[which.ravel()].tobytes())


def _columns(ids: list[int], names: list[str]) -> str:
    shown = ", ".join(names[i] for i in ids[:NAMED_COLUMNS]) + (
        f" and {len(ids) - NAMED_COLUMNS} more" if len(ids) > NAMED_COLUMNS else ""
    )
    return f"column {shown} is" if len(ids) == 1 else f"columns {shown} are"
