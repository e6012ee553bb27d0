"""From the options of a chain to its training problem: field, loss, penalty and solver for a training set."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import Ids
from crfkit.chain.data import SequenceData
from crfkit.chain.encoding.sequences import TaggedCorpus, Vocabulary
from crfkit.chain.encoding.vocabulary import Inputs, check_hash_bits
from crfkit.chain.fields.constraints import ConstraintError, check_allowed, check_possible, make_constraints, nearest
from crfkit.chain.fields.field import ChainField
from crfkit.chain.fields.part import FieldPart
from crfkit.chain.fields.screened import screened
from crfkit.chain.losses.precision import check_precision
from crfkit.chain.training.position_weights import check_class_weight, weighted
from crfkit.chain.training.screening import l1_strengths, taken
from crfkit.errors import DataError, ParameterError, option_error
from crfkit.files.tagged import find_line, source_name
from crfkit.losses import LOSSES
from crfkit.protocols import Capability, Loss, LossOptions, Penalty
from crfkit.solvers.parts.working_set import TakesBatches
from crfkit.text.template import Template
from crfkit.text.words import TextFeatures
from crfkit.training.options import SolverOptions
from crfkit.training.placement import HERE, Placement
from crfkit.warn import warn_caller

if TYPE_CHECKING:  # solvers take longest to load and are needed by training alone
    from crfkit.solvers import StoppingRule

LossMaker = Callable[[SequenceData, ChainField], Loss]


@dataclass(frozen=True, eq=False)
class Problem:
    """A training set with the field, loss, penalty and solver that the options name."""

    corpus: TaggedCorpus
    data: SequenceData
    field: ChainField
    class_names: tuple[str, ...]  # of the field's classes of labels
    loss: Any  # a ChainLoss, or the Loss that a function made
    penalty: Penalty
    solver: Any
    screen: FieldPart | None = None  # which attributes of the training set these are, if some were left out


FEW_POSITIONS = 1 << 15


@dataclass(frozen=True)
class ChainOptions:
    """The options of training; the names are those of :class:`ChainCRF`."""

    penalty: Penalty | None = None
    solver: Any = "auto"
    min_frequency: int = 1
    all_possible_states: bool = False
    all_possible_transitions: bool = False
    tolerance: float | StoppingRule = 1e-5
    max_iterations: int | None = None
    n_threads: int | None = None
    seed: int = 0
    loss: str | LossMaker = "likelihood"
    cost: ArrayLike | None = None
    order: int = 1
    constraints: str | Collection[tuple[Any, Any]] | None = None
    label_classes: Mapping[Any, str] | None = None
    template: Template | str | Path | None = None
    class_weight: Mapping[Any, float] | str | None = None
    features: TextFeatures | str | None = None
    hash_bits: int | None = None
    precision: str = "auto"

    placement: Placement = HERE

    def check(self) -> None:
        """Raise ParameterError if an option is out of range."""
        if not isinstance(self.min_frequency, numbers.Integral) or self.min_frequency < 1:
            raise option_error("min_frequency", f" must be an integer >= 1, not {self.min_frequency!r}")
        self.options.check()
        check_hash_bits(self.hash_bits)
        check_precision(self.precision)
        if self.features is not None and self.template is not None:
            raise ParameterError("features and a template cannot be combined; give one of them")
        if not callable(self.loss):
            kind = LOSSES.by_option("chain", self.loss)
            if self.cost is not None and not kind.takes_cost:
                raise ParameterError(f"the {self.loss} has no cost; use the loss 'softmax-margin' or 'hinge'")
            if self.precision == "single" and not kind.has_single:
                raise ParameterError(
                    f"the loss {self.loss!r} has no single precision; use precision='auto' or 'double'"
                )
        elif self.cost is not None:
            raise ParameterError("a function as loss takes no cost; give it to the loss that the function makes")
        if isinstance(self.order, bool) or not isinstance(self.order, (int, np.integer)) or self.order not in (1, 2):
            raise option_error("order", f" must be 1 or 2, not {self.order!r}")
        if self.label_classes is not None and not isinstance(self.label_classes, Mapping):
            raise ParameterError(f"label_classes must be a mapping from labels to names, not {self.label_classes!r}")
        check_class_weight(self.class_weight)

    @property
    def options(self) -> SolverOptions:
        """The options that do not depend on what is trained."""
        return SolverOptions(self.penalty, self.solver, self.tolerance, self.max_iterations, self.n_threads, self.seed)

    def make_problem(
        self,
        corpus: TaggedCorpus,
        sample_weight: ArrayLike | None = None,
        known_labels: Sequence[Any] = (),
        screen: Penalty | None = None,
    ) -> Problem:
        """Return field, loss, penalty and solver for a training set.

        `known_labels` are labels of an earlier model, which `label_classes` may name though these data lack them. Under
        the penalty `screen`, or one with a larger L1 part, and from zero weights: attributes that cannot have weights
        then are left out (:mod:`crfkit.chain.fields.screened`).
        """
        data = corpus.data.with_weights(sample_weight)
        classes = corpus.classes.tolist()
        data = weighted(data, self.class_weight, classes)
        if data.weights is not None and not data.weights.any():
            raise ParameterError("every sequence has weight 0")
        self.check_label_classes([*classes, *known_labels])
        try:
            field, names = self.make_field(data, corpus.vocabulary, classes)
        except ConstraintError as error:
            raise _with_line(error, corpus.sources) from None
        if field.size == 0:
            raise ParameterError("no attribute is left and there are no transitions; lower min_frequency")
        solver = self.make_solver()
        if isinstance(solver, TakesBatches) and solver.batches:
            raise ParameterError(
                f"the model would have no names for the attributes of {solver.name}'s batches: give all attributes as "
                "data, or minimise a CandidateChain with the solver itself"
            )
        needed = None
        candidates = Capability.CANDIDATES in solver.needs
        # candidates on a cluster are numbered there, which needs all of them
        suits = not callable(self.loss) and (self.placement.here or not candidates)
        if screen is not None and suits and LOSSES.by_option("chain", str(self.loss)).screenable:
            needed = screened(data, field, l1_strengths(screen, field.layout))
        if needed is not None:
            data, field = needed.data(data), needed.field
            corpus = taken(corpus, needed, data)
        loss = self.placement.chain_loss(self, data, field, candidates=candidates, screen=needed)
        return Problem(corpus, data, field, names, loss, self.options.make_penalty(solver), solver, needed)

    def make_field(
        self, data: SequenceData, vocabulary: Vocabulary, classes: Sequence[Any]
    ) -> tuple[ChainField, tuple[str, ...]]:
        """Return the field for a training set and the names of its classes of labels."""
        names, label_classes = self.classes_of(classes)
        masks = make_constraints(self.constraints, classes, data)
        check_allowed(masks, self.constraints, classes, data)
        check_possible(masks, data)
        field = ChainField.from_data(
            data,
            len(classes),
            len(vocabulary.attributes),
            len(vocabulary.pair_attributes),
            all_states=self.all_possible_states,
            all_transitions=self.all_possible_transitions,
            transitions=vocabulary.has_transitions,
            order=int(self.order),
            allowed=masks.allowed,
            allowed_start=masks.allowed_start,
            allowed_end=masks.allowed_end,
            label_classes=label_classes,
        )
        return field, names

    def check_label_classes(self, labels: Sequence[Any]) -> None:
        """Raise if label_classes names a label that is probably misspelt; warn if a label does not occur."""
        names = self.label_classes or {}
        absent = [name for name in names if name not in labels]
        for name in absent:
            hint = nearest(name, [label for label in labels if label not in names])
            what = f"label_classes names {name!r}, which is not a label of the training data"
            if hint or len(absent) == len(names):
                raise ParameterError(f"{what}{hint or f'; the labels are {labels!r}'}")
            warn_caller(f"{what} and has no effect; the labels are {labels!r}", UserWarning)

    def make_loss(
        self,
        data: SequenceData,
        field: ChainField,
        candidates: bool = False,
        screen: FieldPart | None = None,
        precision: str | None = None,
    ) -> Loss:
        """Return the loss; with `candidates`, one that selects attributes as it is trained.

        `screen` says which attributes of the training set those of the field are, if they are not all; `precision` is
        that of a larger data set, of which these are a part.
        """
        precision = self.precision_for(data) if precision is None else precision
        if callable(self.loss):
            made = self.loss(data, field)
            if not isinstance(made, Loss):
                raise ParameterError(f"the function `loss` returned {made!r}; expected a loss (crfkit.protocols.Loss)")
            return made
        kind = LOSSES.by_option("chain", self.loss)
        if data.weak:
            kind = self._partial_form(kind, data, candidates)
        elif candidates and kind.growing_form is not None:
            kind = LOSSES[kind.growing_form]
        options = LossOptions(
            name=self.loss,
            n_threads=self.n_threads,
            cost=self.cost,
            precision=precision,
            attributes=None if screen is None else screen.names,
        )
        return kind.make(data, field, options)

    def _partial_form(self, kind: type[Loss], data: SequenceData, candidates: bool) -> type[Loss]:
        """Return the loss of labels that are known in part, or of positions with weights."""
        what = "labels that are known in part" if data.targets is not None else "weights of classes or tokens"
        if kind.partial_form is None:
            raise ParameterError(f"{what} need the loss 'likelihood', not {self.loss!r}")
        if candidates:
            raise ParameterError(
                f"{what} do not go with solvers that select attributes ({self.make_solver().name}); with an L1 "
                "penalty, the solver 'owlqn' has the same optimum"
            )
        return LOSSES[kind.partial_form]

    def precision_for(self, data: SequenceData) -> str:
        """Return the precision; "auto" is double where the data are few, as training takes no time there."""
        return self.precision_of(data.n_positions)

    def precision_of(self, n_positions: int) -> str:
        """Return the precision for so many positions."""
        return "double" if self.precision == "auto" and n_positions < FEW_POSITIONS else self.precision

    def classes_of(self, labels: Sequence[Any]) -> tuple[tuple[str, ...], Ids | None]:
        """Return the names of the classes and the class of each label; labels that are not mentioned are their own."""
        if self.label_classes is None:
            return (), None
        of_label = [str(self.label_classes.get(label, label)) for label in labels]
        names = sorted(set(of_label))
        return tuple(names), np.array([names.index(name) for name in of_label], dtype=np.int32)

    def make_solver(self, **options: Any) -> Any:
        """Return the solver with the options of training."""
        return self.options.make_solver(**options)

    def make_template(self) -> Template | None:
        return None if self.template is None else Template.make(self.template)

    def make_inputs(self) -> Inputs:
        """Return how sequences are read: with the template, as plain words, or as attributes."""
        features = None if self.features is None else TextFeatures.make(self.features)
        return Inputs(self.make_template(), features, None if self.hash_bits is None else int(self.hash_bits))


def _with_line(error: ConstraintError, sources: Sequence[Any]) -> DataError:
    """Return the error with the file and the line of the label, where there is one."""
    try:
        found = find_line(sources, error.position)
    except DataError:
        found = None
    if found is None or found[2] != error.label:  # not to name a line that does not hold the label
        return DataError(str(error), source_name(sources[0]) if len(sources) == 1 else None)
    return DataError(str(error), found[0], found[1])
