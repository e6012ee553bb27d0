"""Numbers as labels: groups of about equal size, named after their limits."""

from __future__ import annotations

import numbers
from itertools import pairwise
from typing import Any

import numpy as np

from crfkit.encoders.structure_tables import MISSING
from crfkit.encoders.table_columns import column_names, read_columns
from crfkit.errors import ParameterError
from crfkit.names import check_name
from crfkit.readers.tables import Table

Cuts = dict[str, list[float]]  # column → limits between its groups, ascending


def check_table_options(missing: str, bins: int | None) -> None:
    """Raise ParameterError if an option is out of range."""
    check_name("missing", missing, MISSING)
    whole = isinstance(bins, numbers.Integral) and not isinstance(bins, bool)
    if bins is not None and (not whole or bins < 2):
        raise ParameterError(f"bins must be None or an integer >= 2, not {bins!r}")


def bin_numbers(Y: Any, bins: int | None) -> tuple[Any, Cuts]:
    """Return Y with columns of more than `bins` numbers cut at their quantiles, and where they were cut.

    >>> table, cuts = bin_numbers(np.arange(9.0)[:, None], 3)
    >>> table.values[0].tolist()[::4], cuts
    (['1: < 3', '2: 3 to 6', '3: >= 6'], {'y0': [3.0, 6.0]})
    """
    if bins is None:
        return Y, {}
    names = column_names(Y, "y")
    cuts: Cuts = {}
    for name, (values, known) in zip(names, read_columns(Y, names), strict=True):
        chosen = values[known]
        if chosen.dtype.kind in "iuf" and len(np.unique(chosen)) > bins:
            shares = np.arange(1, bins) / bins
            limits = np.unique(np.quantile(chosen, shares, method="higher")).astype(float)
            cuts[name] = limits[limits > chosen.min()].tolist() or [float(np.unique(chosen)[1])]
    return apply_cuts(Y, cuts), cuts


def apply_cuts(Y: Any, cuts: Cuts) -> Any:
    """Return Y with numbers replaced by their groups; columns that already hold names of groups stay as they are."""
    if not cuts:
        return Y
    names = column_names(Y, "y")
    values: list[Any] = []
    for name, (column, known) in zip(names, read_columns(Y, names), strict=True):
        out = column.astype(object)
        if name in cuts and column.dtype.kind in "iuf":
            groups = np.array(group_names(cuts[name]), dtype=object)
            out = groups[np.searchsorted(cuts[name], column, side="right")]
        out[~known] = None
        values.append(out)  # objects, so that numbers and names of groups can be side by side
    return Table(names, values, n_rows=len(values[0]))


def group_names(limits: list[float]) -> list[str]:
    """Return names of the groups that sort in their order."""
    digits = len(str(len(limits) + 1))
    middle = [f"{low:g} to {high:g}" for low, high in pairwise(limits)]
    texts = [f"< {limits[0]:g}", *middle, f">= {limits[-1]:g}"]
    return [f"{k:0{digits}d}: {text}" for k, text in enumerate(texts, start=1)]
