"""Labelled files as a trained chain reads them, with the texts of their tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from crfkit._values import Label
from crfkit.chain.encoding.sequences import label_rows
from crfkit.chain.model.token_text import token_text
from crfkit.errors import DataError, ParameterError
from crfkit.files.columns import ColumnFile, ColumnSource, read_columns
from crfkit.files.crfsuite_data import read_crfsuite

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel


@dataclass(frozen=True, eq=False)
class Labelled:
    """Sequences in the form that a model takes, their labels, and what to show of each token."""

    X: list[Any]
    y: list[list[str]]
    tokens: list[list[str]]
    name: str


def trained_model(model: Any) -> ChainModel:
    """Return the model of a fitted estimator, or the model itself."""
    from crfkit.chain.model.model import ChainModel

    found = getattr(model, "model_", model)
    if isinstance(found, ChainModel):
        return found
    if hasattr(model, "fit"):
        from crfkit.training.estimator import not_fitted  # which loads scikit-learn, as this estimator has

        raise not_fitted(model)
    raise ParameterError(f"the model must be a fitted ChainCRF or a ChainModel, not {type(model).__name__}")


def given_labels(y: Iterable[Iterable[Label]]) -> list[list[Label]]:
    """Return label sequences as lists; raise DataError where a label is unknown or one of several."""
    rows = [list(row) for row in label_rows(y)]
    for n, row in enumerate(rows):
        for t, label in enumerate(row):
            if label is None or isinstance(label, (set, frozenset)):
                raise DataError(
                    f"sequence {n}, position {t}: the label is {label!r}; only certain labels can be judged, so leave "
                    "out sequences with unknown labels"
                )
    return rows


def read_labelled(model: ChainModel, source: ColumnSource) -> Labelled:
    """Read a labelled file for a model: a column file, CoNLL-U, or a CRFsuite data file.

    Raises DataError if the file has no sequences or none of the model's labels.
    """
    file, kind = ColumnFile.of(source), model.vocabulary.kind
    if kind in ("matrix", "observations"):
        raise ParameterError(f"a model whose inputs are of kind '{kind}' cannot read labelled files")
    X: list[Any]
    if kind == "items":
        X, y, _ = read_crfsuite(replace(file, format="crfsuite"))
    else:
        column = model.training.get("label_column")
        if file.label_column is None and isinstance(column, int):
            file = replace(file, label_column=column)
        X, y = read_columns(file)
    if not X:
        raise DataError("the file has no sequences", file.name)
    known, seen = {str(label) for label in model.class_list}, {label for row in y for label in row}
    if not known & seen:
        some = [", ".join(map(repr, sorted(labels)[:3])) for labels in (seen, known)]
        raise DataError(
            f"the {'first' if kind == 'items' else 'last'} column ({some[0]}) has none of the model's labels "
            f"({some[1]}); it must be the true label",
            file.name,
        )
    tokens = [[token_text(x, t) for t in range(len(x))] for x in X]
    return Labelled(X, y, tokens, file.name)


def read_unlabelled(model: ChainModel, source: ColumnSource) -> Labelled:
    """Read sequences without labels, as `crfkit tag` does; `y` has the last column where there is one more than needed.

    Labels of a CRFsuite data file are kept as well.
    """
    file, kind = ColumnFile.of(source), model.vocabulary.kind
    if kind in ("matrix", "observations"):
        raise ParameterError(f"a model whose inputs are of kind '{kind}' cannot read files")
    X: list[Any]
    if kind == "items":
        X, y, _ = read_crfsuite(replace(file, format="crfsuite"))
    else:
        X, y = read_columns(file, label=False)
        known = model.vocabulary.n_features
        if known and X and len(X[0][0]) == known + 1:
            y = [[row[-1] for row in x] for x in X]
            X = [[row[:-1] for row in x] for x in X]
    if not X:
        raise DataError("the file has no sequences", file.name)
    return Labelled(X, y, [[token_text(x, t) for t in range(len(x))] for x in X], file.name)


def token_lines(source: ColumnSource) -> list[list[int]] | None:
    """Return the line of each token of a column file, by sequences; None if the file cannot be read again."""
    file = ColumnFile.of(source)
    if hasattr(file.source, "read"):
        return None
    blocks = file.chunks(labelled=True) if file.format != "crfsuite" else file.text_blocks()
    rows: list[list[int]] = [[]]
    for number, line in enumerate(b"".join(blocks).split(b"\n"), start=1):
        if line.strip():
            if not line.startswith(b"@weight") or file.format != "crfsuite":
                rows[-1].append(number if file.format == "crfsuite" else file.line(number))
        elif rows[-1]:
            rows.append([])
    return rows if rows[-1] else rows[:-1]
