"""Labelled files as a trained chain reads them, with the texts of their tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from crfkit.errors import DataError, ParameterError
from crfkit.models.chain_explanation import token_text
from crfkit.readers.columns import ColumnFile, ColumnSource, read_columns
from crfkit.readers.crfsuite_data import read_crfsuite

if TYPE_CHECKING:
    from crfkit.models.chain import ChainModel


@dataclass(frozen=True, eq=False)
class Labelled:
    """Sequences in the form that a model takes, their labels, and what to show of each token."""

    X: list[Any]
    y: list[list[str]]
    tokens: list[list[str]]
    name: str


def read_labelled(model: ChainModel, source: ColumnSource) -> Labelled:
    """Read a labelled file for a model: a column file, CoNLL-U, or a data file of CRFsuite.

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
