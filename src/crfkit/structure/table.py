"""From the table that a person has to what structure is learned from: rows without gaps, groups, states, pairs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from crfkit._types import Entries, Floats, Ids, Ints, Samples, Tabular
from crfkit.errors import ParameterError
from crfkit.graph.encoding.table_columns import candidate_pairs, column_names
from crfkit.graph.encoding.tables import TableEncoder
from crfkit.structure.encoding.bins import Cuts, bin_numbers, bins_by_name
from crfkit.structure.encoding.drawn_labels import DrawnLabels
from crfkit.structure.encoding.input_scaling import InputScaling
from crfkit.structure.encoding.missing_cells import complete_rows, labelled_rows
from crfkit.structure.encoding.tables import learn_table, unordered_columns
from crfkit.structure.encoding.unusual_columns import warn_of_codes, without_identifiers
from crfkit.structure.observations import Observations
from crfkit.structure.options import StructureOptions


def read_structure(Y: Samples, inputs: Samples, options: StructureOptions) -> StructureData:
    """Return the table Y with its inputs, encoded; warn of unusual columns and missing cells."""
    names = column_names(Y, "y")
    bins = bins_by_name(options.bins, names)
    Y = without_identifiers(Y, bins if isinstance(bins, dict) else ())
    warn_of_codes(Y)
    if options.missing == "impute":
        Y, inputs = labelled_rows(Y, inputs)
    else:
        Y, inputs = complete_rows(Y, inputs, options.missing)
    Y, cuts = bin_numbers(Y, bins)
    encoder, states = learn_table(Y, inputs, bool(options.edge_features))
    unordered = unordered_columns(Y, encoder, set(cuts))
    if options.form == "ordinal":
        _check_order(encoder, unordered)
    if not options.node_strength > 0:
        _check_varying(encoder, states)
    pairs = candidate_pairs(options.candidates, names, encoder.variables)
    return StructureData(
        encoder=encoder,
        inputs=inputs,
        states=states,
        pairs=pairs,
        form=options.form,
        cuts=cuts,
        unordered=tuple(unordered),
    )


def _check_order(encoder: TableEncoder, unordered: Collection[str]) -> None:
    """Raise ParameterError if no column of more than two labels has an order."""
    columns = zip(encoder.variables, encoder.n_states, strict=True)
    if unordered and all(k == 2 or name in unordered for name, k in columns):
        raise ParameterError(
            "form='ordinal' needs a column of more than two labels with an order: numbers or ordered categories "
            f"of pandas; these have none: {', '.join(unordered)}. Number their labels, or use form='full'"
        )


def _check_varying(encoder: TableEncoder, states: Ids) -> None:
    """Raise ParameterError if a column is constant, as biases have no penalty."""
    for name, column in zip(encoder.variables, states.T, strict=True):
        if len(np.unique(column[column >= 0])) < 2:
            raise ParameterError(
                f"column {name} is constant, and its bias is infinite without a penalty: set node_strength > 0 or drop "
                "the column"
            )


@dataclass(frozen=True, eq=False)
class StructureData:
    """A table as structure learning needs it."""

    encoder: TableEncoder  # without edges
    inputs: Tabular  # as they were given, or None
    states: Ids  # [rows, variables]; −1 where a label is missing
    pairs: Ids | None  # [M, 2] the pairs that may become edges; None for all
    form: str = "auto"
    cuts: Cuts = field(default_factory=dict)  # where numbers were cut into groups
    unordered: tuple[str, ...] = ()  # columns of more than two labels without an order
    drawn: DrawnLabels | None = None  # instead of missing labels

    @property
    def has_pairs(self) -> bool:
        """Return whether there are pairs to choose from."""
        return len(self.encoder.variables) > 1 and (self.pairs is None or len(self.pairs) > 0)

    @cached_property
    def dense(self) -> tuple[Floats | None, Floats | None]:
        """Return the features of rows as a dense matrix, and the features of variables; None where there are none."""
        inputs, own = self.encoder.inputs(self.inputs)
        return inputs if inputs is None or isinstance(inputs, np.ndarray) else inputs.toarray(), own

    @cached_property
    def scaling(self) -> InputScaling | None:
        """Return the scaling of the inputs; None without inputs."""
        inputs, own = self.dense
        return None if inputs is None else InputScaling.of(inputs, own)

    def tables(self) -> TableRows:
        """Return a function from row numbers (None for all) to the table of these rows."""
        encoder, states, n_states = self.encoder, self.states, np.array(self.encoder.n_states)
        if self.form == "ising" and (n_states != 2).any():
            i = int((n_states != 2).argmax())
            raise ParameterError(
                f"form='ising' is for two labels; column {encoder.variables[i]} has {n_states[i]}: use form='full'"
            )
        inputs, own = self.dense
        if inputs is not None and self.scaling is not None:
            inputs, own = self.scaling.apply(inputs, own)
            assert inputs is not None
            inputs = np.hstack([np.ones((len(inputs), 1)), inputs])
        scored = np.array([name not in self.unordered for name in encoder.variables])
        source, weights = np.arange(len(states)), np.ones(len(states))
        if self.drawn is not None:
            states, source, weights = self.drawn.expanded(states)
            inputs = None if inputs is None else inputs[source]
            own = None if own is None else own[source]
        ordinal = self.form == "ordinal"
        form = {
            "ising": bool((n_states == 2).all()) and self.form in ("auto", "ising"),
            "edge_inputs": encoder.edge_inputs,
            "ordinal": ordinal,
            "reference": self.form == "reference",
            "scored": scored if ordinal and not scored.all() else None,
        }
        return TableRows(
            states=states, n_states=n_states, inputs=inputs, own=own, source=source, weights=weights, form=form
        )


@dataclass(frozen=True, eq=False)
class TableRows:
    """A function from row numbers (None for all) to the table of these rows.

    A row with missing labels has several lines, each with other labels drawn for them.
    """

    states: Ids  # [lines, variables]
    n_states: Ids  # [variables]
    inputs: Floats | None  # [lines, features], which begin with ones
    own: Floats | None  # [lines, variables, features]
    source: Ints  # [lines] the row of each line
    weights: Floats  # [lines]
    form: Entries  # the form of nodes and edges, as fields of Observations

    def lines(self, chosen: Ints | slice, states: Ids) -> Observations:
        """Return the table of some lines in their order, with other states; equal lines are not merged."""
        inputs, own = self._features(chosen)
        return Observations(states, self.n_states, inputs, self.weights[chosen], own=own, **self.form)

    def __call__(self, rows: Ints | None = None) -> Observations:
        chosen: Ints | slice = slice(None) if rows is None else self._lines(rows)
        inputs, own = self._features(chosen)
        return Observations.of(self.states[chosen], self.n_states, inputs, self.weights[chosen], own=own, **self.form)

    def _features(self, chosen: Ints | slice) -> tuple[Floats | None, Floats | None]:
        """Return the features of rows and of variables for some lines."""
        return None if self.inputs is None else self.inputs[chosen], None if self.own is None else self.own[chosen]

    def _lines(self, rows: Ints) -> Ints:
        if len(self.source) == int(self.source[-1]) + 1:  # every row has one line
            return rows
        return np.flatnonzero(np.isin(self.source, rows))
