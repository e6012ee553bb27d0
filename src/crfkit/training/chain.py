"""Training of chains: the options of ChainCRF and of `crfkit train`, without scikit-learn."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._threads import count_threads, using_threads
from crfkit._types import Floats, Ids
from crfkit.checkpoint import LAST_WEIGHTS, Checkpoint
from crfkit.data.sequences import SequenceData
from crfkit.encoders.sequences import TaggedCorpus, Vocabulary
from crfkit.errors import DataError, ParameterError
from crfkit.fields.chain import ChainField
from crfkit.fields.constraints import ConstraintError, check_allowed, make_constraints, nearest
from crfkit.inference.chain import ChainInference
from crfkit.losses.chain import ChainLikelihood, ChainLoss, SoftmaxMargin, StructuredHinge
from crfkit.losses.chain_candidates import CandidateChain
from crfkit.models.chain import ChainModel
from crfkit.names import check_name
from crfkit.protocols import Capability, Penalty
from crfkit.readers.tagged import find_line, source_name
from crfkit.result import Result, Status
from crfkit.training.early_stopping import Development, all_weights
from crfkit.training.options import SolverOptions
from crfkit.training.transfer import pruned, transfer

if TYPE_CHECKING:  # solvers take longest to load and are needed by training alone
    from crfkit.solvers import StoppingRule
    from crfkit.solvers.parts.loop import Callback, Iteration

LOSSES: Mapping[str, type[ChainLoss]] = {
    "likelihood": ChainLikelihood,
    "softmax-margin": SoftmaxMargin,
    "hinge": StructuredHinge,
}


@dataclass(frozen=True)
class Dev:
    """A development set."""

    data: SequenceData
    gold: Iterable[Sequence[Any]]
    patience: int = 10
    path: str | None = None  # of the file that it is from, for messages


@dataclass(frozen=True)
class ChainTraining:
    """How to train; the names are those of :class:`ChainCRF`."""

    penalty: Penalty | None = None
    solver: Any = "auto"
    min_frequency: int = 1
    all_possible_states: bool = False
    all_possible_transitions: bool = False
    tolerance: float | StoppingRule = 1e-5
    max_iterations: int | None = None
    n_threads: int | None = None
    seed: int = 0
    loss: str = "likelihood"
    cost: ArrayLike | None = None
    order: int = 1
    constraints: str | Collection[tuple[Any, Any]] | None = None
    label_classes: Mapping[Any, str] | None = None

    def check(self) -> None:
        """Raises ParameterError where an option is out of range."""
        if not isinstance(self.min_frequency, numbers.Integral) or self.min_frequency < 1:
            raise ParameterError(f"min_frequency must be an integer >= 1, not {self.min_frequency!r}")
        self.options.check()
        check_name("loss", self.loss, LOSSES)
        if self.cost is not None and self.loss == "likelihood":
            raise ParameterError("the likelihood has no cost; use the loss 'softmax-margin' or 'hinge'")
        if isinstance(self.order, bool) or not isinstance(self.order, (int, np.integer)) or self.order not in (1, 2):
            raise ParameterError(f"order must be 1 or 2, not {self.order!r}")
        if self.label_classes is not None and not isinstance(self.label_classes, Mapping):
            raise ParameterError(f"label_classes must map labels to names, not be {self.label_classes!r}")

    @property
    def options(self) -> SolverOptions:
        """Those that do not depend on what is trained."""
        return SolverOptions(self.penalty, self.solver, self.tolerance, self.max_iterations, self.n_threads, self.seed)

    def run(
        self,
        corpus: TaggedCorpus,
        sample_weight: ArrayLike | None = None,
        callbacks: Sequence[Callback] = (),
        training_error: bool = False,
        dev: Dev | None = None,
        start: ChainModel | None = None,
        resume: Checkpoint | None = None,
    ) -> tuple[ChainModel, Result]:
        """The model and how training went. Begins at the weights of `start`, or where `resume` was left."""
        vocabulary = corpus.vocabulary
        data = corpus.data.with_weights(sample_weight)
        if data.weights is not None and not data.weights.any():
            raise ParameterError("every sequence has weight 0")
        classes = corpus.classes.tolist()
        self._check_label_classes([*classes, *(start.class_list if start is not None else ())])
        try:
            field, names = self.make_field(data, vocabulary, classes)
        except ConstraintError as error:
            raise _with_line(error, corpus.sources) from None
        if field.size == 0:
            raise ParameterError("no attribute is left and there are no transitions; lower min_frequency")
        solver = self.make_solver()
        if getattr(solver, "batches", ()):
            raise ParameterError(
                f"the model would have no names for the attributes of {solver.name}'s batches: give all attributes as "
                "data, or minimise a CandidateChain with the solver itself"
            )
        loss = self.make_loss(data, field, Capability.CANDIDATES in solver.needs)
        development = None
        if training_error:
            callbacks = [TrainingError(data, field, self.n_threads), *callbacks]
        if dev is not None:
            development = Development(dev.data, dev.gold, classes, field, dev.patience, self.n_threads, dev.path)
            callbacks = [development, *callbacks, development.stop]
        w0 = np.zeros(field.size) if start is None else transfer(start, vocabulary, classes, field, names)
        if isinstance(loss, CandidateChain):
            loss, w0 = _selected(loss, w0, resume)
        if resume is not None:
            w0 = self._resumed(resume, loss.size)
        penalty = self.options.make_penalty(solver).bind(loss)
        with using_threads(count_threads(self.n_threads)):
            result = solver.minimize(loss, penalty, w0, callbacks, resume.state if resume else None)
        if development is not None:
            result = _best_of(result, development)
        record = {
            "objective": result.objective,
            "value": result.value,
            "status": result.status.name,
            "iterations": result.iterations,
            "min_frequency": int(self.min_frequency),
            "solver": solver.name,
            **corpus.record,
        }
        if isinstance(loss, CandidateChain):
            last: CandidateChain = result.loss if result.loss is not None else loss
            vocabulary, field = _vocabulary_of(last, vocabulary), last.field
        model = ChainModel(vocabulary, corpus.classes, field, result.w, record, self.n_threads, names)
        return (model if penalty.split()[1] is None else pruned(model)), result

    def _resumed(self, checkpoint: Checkpoint, size: int) -> Floats:
        if not isinstance(checkpoint, Checkpoint):
            raise ParameterError(f"resume must be a Checkpoint, not {checkpoint!r}")
        if checkpoint.w.shape != (size,):
            raise ParameterError(
                f"the checkpoint has {len(checkpoint.w)} weights, but this training has {size}: it is of other "
                "data or of other options"
            )
        return np.array(checkpoint.w)

    def make_field(
        self, data: SequenceData, vocabulary: Vocabulary, classes: Sequence[Any]
    ) -> tuple[ChainField, tuple[str, ...]]:
        """(the field for a training set, the names of its classes of labels)."""
        names, label_classes = self._classes(classes)
        masks = make_constraints(self.constraints, classes, data)
        check_allowed(masks, self.constraints, classes, data)
        field = ChainField.from_data(
            data,
            len(classes),
            len(vocabulary.attributes),
            len(vocabulary.pair_attributes),
            all_states=self.all_possible_states,
            all_transitions=self.all_possible_transitions,
            transitions=vocabulary.template is None or vocabulary.template.transitions,
            order=int(self.order),
            allowed=masks.allowed,
            allowed_start=masks.allowed_start,
            allowed_end=masks.allowed_end,
            label_classes=label_classes,
        )
        return field, names

    def _check_label_classes(self, labels: Sequence[Any]) -> None:
        """Raise where label_classes names a label that is probably misspelt; warn where it does not occur."""
        names = self.label_classes or {}
        absent = [name for name in names if name not in labels]
        for name in absent:
            hint = nearest(name, [label for label in labels if label not in names])
            what = f"label_classes names {name!r}, which is not a label of the training data"
            if hint or len(absent) == len(names):
                raise ParameterError(f"{what}{hint or f'; the labels are {labels!r}'}")
            warnings.warn(f"{what} and has no effect; the labels are {labels!r}", stacklevel=4)

    def make_loss(self, data: SequenceData, field: ChainField, candidates: bool = False) -> ChainLoss:
        """With `candidates`, one that selects attributes as it is trained."""
        kind: Any = LOSSES[self.loss]
        if candidates and self.loss == "likelihood":
            return CandidateChain(data, field, self.n_threads)
        if self.loss == "likelihood":
            return ChainLikelihood(data, field, self.n_threads)
        loss: ChainLoss = kind(data, field, self.cost, self.n_threads)
        return loss

    def _classes(self, labels: Sequence[Any]) -> tuple[tuple[str, ...], Ids | None]:
        """(names of the classes, class of each label); a label that is not mentioned is a class of its own."""
        if self.label_classes is None:
            return (), None
        of_label = [str(self.label_classes.get(label, label)) for label in labels]
        names = sorted(set(of_label))
        return tuple(names), np.array([names.index(name) for name in of_label], dtype=np.int32)

    def make_solver(self, **options: Any) -> Any:
        return self.options.make_solver(**options)


def _with_line(error: ConstraintError, sources: Sequence[Any]) -> DataError:
    """Return the error with the file and the line of the label, where there is one."""
    try:
        found = find_line(sources, error.position)
    except DataError:
        found = None
    if found is None or found[2] != error.label:  # not to name a line that does not hold the label
        return DataError(str(error), source_name(sources[0]) if len(sources) == 1 else None)
    return DataError(str(error), found[0], found[1])


def _best_of(result: Result, development: Development) -> Result:
    """The result at the weights that scored best on the development set."""
    w, row = development.best_w, development.best_row
    if w is None or row is None:
        return result
    status = Status.NO_IMPROVEMENT if development.stopped else result.status
    if np.array_equal(w, result.w):
        return replace(result, status=status)
    state = {**result.state, LAST_WEIGHTS: result.w}  # to which the state belongs
    loss = development.best_loss if result.loss is not None else None
    return replace(result, w=w, value=row.value, optimality=row.optimality, status=status, state=state, loss=loss)


def _selected(loss: CandidateChain, w0: Floats, resume: Checkpoint | None) -> tuple[CandidateChain, Floats]:
    """The loss with the attributes that a start has weights for or that a checkpoint had selected, and its start."""
    if isinstance(resume, Checkpoint) and "active" in resume.state:
        try:
            return loss.activate(resume.state["active"])[0], w0
        except ParameterError:
            raise ParameterError("the checkpoint selects attributes that these data do not have") from None
    used = loss.used_ids(w0)
    loss = loss.activate(used)[0] if len(used) else loss
    return loss, w0[loss.full_places]


def _vocabulary_of(loss: CandidateChain, vocabulary: Vocabulary) -> Vocabulary:
    """The selected attributes only."""
    return replace(
        vocabulary,
        attributes=vocabulary.attributes.take(loss.active["state"]),
        pair_attributes=vocabulary.pair_attributes.take(loss.active["pair"]),
    )


class TrainingError:
    """Callback: adds the share of positions and of sequences that decoding gets wrong, as CRF++ prints them."""

    def __init__(self, data: SequenceData, field: ChainField, n_threads: int | None = None) -> None:
        self._data, self._field = data, field
        self._n_threads = n_threads

    def __call__(self, iteration: Iteration) -> Mapping[str, float]:
        inference = ChainInference(self._field, all_weights(iteration), self._n_threads)
        tokens, sequences = inference.errors(self._data)
        return {"token_error": tokens, "sequence_error": sequences}
