"""From the tables that a person has to what structure is learnt from: rows without gaps, groups, states, pairs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from crfkit._types import Flags, Floats, Ids, Ints
from crfkit.errors import ParameterError
from crfkit.graph.encoding.table_columns import candidate_pairs, column_names
from crfkit.graph.encoding.tables import TableEncoder
from crfkit.structure.encoding.bins import Bins, Cuts, bin_numbers, bins_by_name, check_table_options
from crfkit.structure.encoding.missing_cells import complete_rows, labelled_rows
from crfkit.structure.encoding.tables import learn_table, unordered_columns
from crfkit.structure.encoding.unusual_columns import warn_of_codes, without_identifiers
from crfkit.structure.observations import Observations
from crfkit.structure.training.inputs import InputScaling
from crfkit.structure.training.missing import Draws

FORMS = ("auto", "ising", "full", "reference", "ordinal")


@dataclass(frozen=True)
class TableOptions:
    """How to read a table; the names are those of StructureLearner."""

    form: str = "auto"
    candidates: Any = None
    edge_features: bool = True
    missing: str = "impute"
    bins: Bins = None

    def check(self) -> None:
        """Raise ParameterError if an option is out of range."""
        check_table_options(self.missing, self.bins)

    def read(self, Y: Any, inputs: Any, biased: bool = True) -> StructureData:
        """Return the table Y with its inputs, encoded.

        `biased` says whether the biases of nodes have a penalty, without which a constant column has an infinite one.
        """
        names = column_names(Y, "y")
        bins = bins_by_name(self.bins, names)
        Y = without_identifiers(Y, bins if isinstance(bins, dict) else ())
        warn_of_codes(Y)
        if self.missing == "impute":
            Y, inputs = labelled_rows(Y, inputs)
        else:
            Y, inputs = complete_rows(Y, inputs, self.missing)
        Y, cuts = bin_numbers(Y, bins)
        encoder, states = learn_table(Y, inputs, bool(self.edge_features))
        unordered = unordered_columns(Y, encoder, set(cuts))
        if (
            self.form == "ordinal"
            and unordered
            and all(k == 2 or name in unordered for name, k in zip(encoder.variables, encoder.n_states, strict=True))
        ):
            raise ParameterError(
                "form='ordinal' needs a column of more than two labels with an order: numbers or ordered categories "
                f"of pandas; these have none: {', '.join(unordered)}. Number their labels, or use form='full'"
            )
        constant = [
            name
            for name, column in zip(encoder.variables, states.T, strict=True)
            if len(np.unique(column[column >= 0])) < 2
        ]
        if constant and not biased:
            name = constant[0]
            raise ParameterError(
                f"column {name} is constant: its bias is infinite without a penalty; node_strength > 0"
            )
        pairs = candidate_pairs(self.candidates, names, encoder.variables)
        return StructureData(encoder, inputs, states, pairs, self.form, cuts, tuple(unordered))


@dataclass(frozen=True, eq=False)
class StructureData:
    """A table as structure learning needs it."""

    encoder: TableEncoder  # without edges
    inputs: Any  # as they were given, or None
    states: Ids  # [rows, variables]; −1 where a label is missing
    pairs: Ids | None  # [M, 2] the pairs that may become edges; None for all
    form: str = "auto"
    cuts: Cuts = field(default_factory=dict)  # where numbers were cut into groups
    unordered: tuple[str, ...] = ()  # columns of more than two labels without an order
    draws: Draws | None = None  # of the labels that are missing

    @property
    def has_pairs(self) -> bool:
        """Whether there are pairs to choose from."""
        return len(self.encoder.variables) > 1 and (self.pairs is None or len(self.pairs) > 0)

    @cached_property
    def dense(self) -> tuple[Floats | None, Floats | None]:
        """(the features of rows as a dense matrix, those of variables); None where there are none."""
        inputs, own = self.encoder.inputs(self.inputs)
        return inputs if inputs is None or isinstance(inputs, np.ndarray) else inputs.toarray(), own

    @cached_property
    def scaling(self) -> InputScaling | None:
        """The scales of the inputs; None without inputs."""
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
        ising = bool((n_states == 2).all()) and self.form in ("auto", "ising")
        ordinal = self.form == "ordinal"
        inputs, own = self.dense
        if inputs is not None and self.scaling is not None:
            inputs, own = self.scaling.apply(inputs, own)
            assert inputs is not None
            inputs = np.hstack([np.ones((len(inputs), 1)), inputs])
        reference = self.form == "reference"
        scored = np.array([name not in self.unordered for name in encoder.variables])
        scores = scored if ordinal and not scored.all() else None
        source, weights = np.arange(len(states)), np.ones(len(states))
        if self.draws is not None:
            states, source, weights = self.draws.expanded(states)
            inputs = None if inputs is None else inputs[source]
            own = None if own is None else own[source]
        forms = Forms(ising, encoder.edge_inputs, ordinal, reference, scores)
        return TableRows(states, n_states, inputs, own, source, weights, forms)


@dataclass(frozen=True, eq=False)
class Forms:
    """The forms of a table; the names are those of :class:`Observations`."""

    ising: bool
    edge_inputs: bool
    ordinal: bool
    reference: bool = False
    scored: Flags | None = None


@dataclass(frozen=True, eq=False)
class TableRows:
    """A function from row numbers (None for all) to the table of these rows.

    A row with missing labels stands here several times, with the labels that were drawn for them.
    """

    states: Ids  # [lines, variables]
    n_states: Ids  # [variables]
    inputs: Floats | None  # [lines, features], which begin with ones
    own: Floats | None  # [lines, variables, features]
    source: Ints  # [lines] the row that each line is of
    weights: Floats  # [lines]
    forms: Forms

    def lines(self, chosen: Ints, states: Ids) -> Observations:
        """Return the table of some lines in their order, with other states."""
        inputs = None if self.inputs is None else self.inputs[chosen]
        own = None if self.own is None else self.own[chosen]
        forms = self.forms
        return Observations(
            states,
            self.n_states,
            inputs,
            self.weights[chosen],
            forms.ising,
            forms.edge_inputs,
            own,
            forms.ordinal,
            forms.reference,
            forms.scored,
        )

    def __call__(self, rows: Ints | None = None) -> Observations:
        chosen: Any = slice(None) if rows is None else self._lines(rows)
        inputs = None if self.inputs is None else self.inputs[chosen]
        own = None if self.own is None else self.own[chosen]
        forms = self.forms
        return Observations.of(
            self.states[chosen],
            self.n_states,
            inputs,
            self.weights[chosen],
            forms.ising,
            forms.edge_inputs,
            own,
            forms.ordinal,
            forms.reference,
            forms.scored,
        )

    def _lines(self, rows: Ints) -> Ints:
        if len(self.source) == int(self.source[-1]) + 1:  # no row stands here twice
            return rows
        return np.flatnonzero(np.isin(self.source, rows))
