"""Numbers as labels: groups of about equal size, named after their limits."""

from __future__ import annotations

import numbers
from itertools import pairwise

import numpy as np

from crfkit._types import Array, Label, Samples, Tabular
from crfkit.errors import ParameterError
from crfkit.files.tables import Table
from crfkit.graph.encoding.states import Labels
from crfkit.graph.encoding.table_columns import column_names, read_columns
from crfkit.names import check_name
from crfkit.structure.encoding.missing_cells import MISSING_OPTIONS

Cuts = dict[str, list[float]]  # column → limits between its groups, ascending
Bins = int | dict[Label, int] | None  # number of groups: of all columns of many numbers, or by column
LONGEST_SCALE = 11  # steps, as in 0 to 10


def check_table_options(missing: str, bins: Bins) -> None:
    """Raise ParameterError if an option is out of range."""
    check_name("missing", missing, MISSING_OPTIONS)
    for given in bins.values() if isinstance(bins, dict) else [bins]:
        whole = isinstance(given, numbers.Integral) and not isinstance(given, bool)
        if (given is not None or isinstance(bins, dict)) and (not whole or given < 2):  # type: ignore[operator]
            raise ParameterError(f"bins must be None, an integer >= 2, or such integers by column, not {bins!r}")


def bin_numbers(Y: Samples, bins: int | dict[str, int] | None) -> tuple[Tabular, Cuts]:
    """Return Y with columns of many numbers cut into `bins` groups at their quantiles, and where they were cut.

    A single number of groups is for all columns of measurements: numbers with more different values than that, except
    steps of a scale, which are at most 11 different whole numbers (0 to 10). A dict names the columns to cut.

    >>> table, cuts = bin_numbers(np.arange(18.0)[:, None], 3)
    >>> table.values[0].tolist()[::8], cuts
    (['1: < 6', '2: 6 to 12', '3: >= 12'], {'y0': [6.0, 12.0]})
    """
    if bins is None:
        return Y, {}
    names = column_names(Y, "y")
    wanted = bins if isinstance(bins, dict) else dict.fromkeys(names, bins)
    cuts: Cuts = {}
    for name, (values, known) in zip(names, read_columns(Y, names), strict=True):
        chosen = values[known]
        if isinstance(bins, dict) and name in wanted and chosen.dtype.kind not in "iuf":
            raise ParameterError(f"bins names the column {name}, which does not hold numbers")
        if name in wanted and chosen.dtype.kind in "iuf" and (isinstance(bins, dict) or not _is_scale(chosen)):
            groups = wanted[name]
            if len(np.unique(chosen)) > groups:
                shares = np.arange(1, groups) / groups
                limits = np.unique(np.quantile(chosen, shares, method="higher")).astype(float)
                cuts[name] = limits[limits > chosen.min()].tolist() or [float(np.unique(chosen)[1])]
    return apply_cuts(Y, cuts), cuts


def bins_by_name(bins: Bins, names: list[str]) -> int | dict[str, int] | None:
    """Return `bins` with names instead of column numbers; raise ParameterError if there is no such column."""
    if not isinstance(bins, dict):
        return bins
    found = {}
    for column, groups in bins.items():
        number = isinstance(column, numbers.Integral) and not isinstance(column, bool)
        name = names[column] if number and 0 <= column < len(names) else column
        if name not in names:
            shown = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
            raise ParameterError(f"bins names the column {column!r}; the columns are {shown}")
        found[name] = int(groups)
    return found


def _is_scale(values: Labels) -> bool:
    """Return whether these are the steps of a scale: few whole numbers, close to each other."""
    different = np.unique(values)
    if different.size == 0 or not np.isfinite(different).all():
        return False
    return bool((different == np.floor(different)).all() and different[-1] - different[0] < LONGEST_SCALE)


def apply_cuts(Y: Samples, cuts: Cuts) -> Tabular:
    """Return Y with numbers replaced by their groups; columns that already hold names of groups stay unchanged."""
    if not cuts:
        return Y
    names = column_names(Y, "y")
    values: list[Array] = []
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
