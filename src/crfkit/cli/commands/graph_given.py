"""Use a table in `crfkit graph predict` with a model of learnt structure: its cells are observed labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from crfkit.cli.commands.graph_columns import with_missing
from crfkit.errors import DataError
from crfkit.files.tables import Table
from crfkit.graph.encoding.tables import TableEncoder
from crfkit.graph.model import GraphModel
from crfkit.structure.encoding.bins import apply_cuts


def is_structure(model: GraphModel) -> bool:
    """Return whether a model was learnt by `crfkit structure` without inputs: it then predicts from the table."""
    encoder = model.encoder
    return isinstance(encoder, TableEncoder) and encoder.features is None and "structure" in model.training


def given_labels(model: GraphModel, source: Table) -> Table:
    """Return the variables of the model as columns; columns that the table lacks are missing values."""
    encoder: Any = model.encoder
    if not any(name in source.places for name in encoder.variables):
        shown = ", ".join(encoder.variables[:6]) + (", …" if len(encoder.variables) > 6 else "")
        raise DataError(f"the table has none of the model's columns; expected some of {shown}", source.path)
    table = with_missing(source, encoder.variables)
    record: Any = model.training["structure"]
    cut = apply_cuts(table, record.get("bins") or {})
    return replace(table, values=cut.values)
