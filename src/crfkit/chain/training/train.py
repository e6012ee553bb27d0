"""Training of chains: the options of ChainCRF and of `crfkit train`, without scikit-learn.

Sequences and labels become a corpus, the corpus a :class:`Problem` (data, field, loss, penalty, solver), and the
solver's result a model; :meth:`ChainTraining.path` does the same for a sequence of penalty strengths.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._threads import count_threads, using_threads
from crfkit._types import Floats
from crfkit.chain.data import check_labels
from crfkit.chain.encoding.attribute_files import is_attributes, learn_attribute_files
from crfkit.chain.encoding.label_typos import warn_of_typos
from crfkit.chain.encoding.sequences import TaggedCorpus, label_rows, learn, learn_file
from crfkit.chain.encoding.weak_labels import LabelColumn, Supervision, token_weights
from crfkit.chain.losses.candidates import CandidateChain
from crfkit.chain.losses.merged import merged_likelihood
from crfkit.chain.model.model import ChainModel
from crfkit.chain.model.seen import Seen
from crfkit.chain.training.early_stopping import Dev, Development, TrainingError, best_of
from crfkit.chain.training.problem import ChainOptions, Problem
from crfkit.chain.training.selection import select_start, selected_vocabulary
from crfkit.chain.training.transfer import pruned, transfer
from crfkit.errors import DataError, ParameterError
from crfkit.files.checkpoint import Checkpoint
from crfkit.files.columns import ColumnFile
from crfkit.protocols import GrowingLoss, Loss, Penalty
from crfkit.result import Result
from crfkit.training.options import penalty_record
from crfkit.training.path import PathOptions, PathPoint, gathered

if TYPE_CHECKING:  # solvers take longest to load and are needed by training alone
    from crfkit.solvers.parts.loop import Callback

NEEDS_FEATURES = (
    "training from a column file needs a template (--template FILE) or features (--features ner); a file of CRFsuite "
    "attributes needs none, but its format must be named (--format crfsuite) where it cannot be recognised"
)


@dataclass(frozen=True)
class ChainTraining(ChainOptions):
    """Trains chains; the options are those of :class:`ChainCRF`."""

    # --- from sequences and files

    def fit(
        self,
        X: Iterable[Any],
        y: Iterable[Any],
        sample_weight: ArrayLike | None = None,
        callbacks: Sequence[Callback] = (),
        training_error: bool = False,
        X_dev: Iterable[Any] | None = None,
        y_dev: Iterable[Iterable[Any]] | None = None,
        patience: int = 10,
        start: ChainModel | None = None,
        resume: Checkpoint | None = None,
        token_weight: Iterable[Iterable[float]] | None = None,
    ) -> tuple[ChainModel, Result]:
        """Return a model of sequences X with labels y, and how training went; see :meth:`ChainCRF.fit`."""
        corpus, weights, dev = self._learn(X, y, sample_weight, X_dev, y_dev, patience, token_weight)
        return self.run(corpus, weights, callbacks, training_error, dev, start, resume)

    def fit_file(
        self,
        files: Sequence[ColumnFile],
        callbacks: Sequence[Callback] = (),
        training_error: bool = False,
        start: ChainModel | None = None,
        labels: LabelColumn | None = None,
        resume: Checkpoint | None = None,
    ) -> tuple[ChainModel, Result]:
        """Return a model of column files, and how training went; see :meth:`ChainCRF.fit_file`."""
        self.check()
        corpus, weights = self.learn_files(files, labels)
        return self.run(corpus, weights, callbacks, training_error, start=start, resume=resume)

    def learn_files(
        self, files: Sequence[ColumnFile], labels: LabelColumn | None = None, least_labels: int = 2
    ) -> tuple[TaggedCorpus, list[float] | None]:
        """Return the training set of column files or of CRFsuite's data files, and the weights of its sequences."""
        if labels is not None and labels.partly_known:
            least_labels = 1  # `apply` counts what the labels stand for
        corpus, weights = self._read_files(files, least_labels)
        if labels is None or not labels.partly_known:
            warn_of_typos(corpus.classes, corpus.data, files)
        return (corpus if labels is None else labels.apply(corpus, files)), weights

    def _read_files(self, files: Sequence[ColumnFile], least_labels: int) -> tuple[TaggedCorpus, list[float] | None]:
        inputs = self.make_inputs()
        rules = inputs.kind != "items"
        if is_attributes(files, rules):
            return learn_attribute_files(files, self.min_frequency, inputs)
        if not rules:
            raise ParameterError(NEEDS_FEATURES)
        return learn_file(files, inputs, self.min_frequency, least_labels=least_labels), None

    def path(
        self,
        X: Iterable[Any],
        y: Iterable[Iterable[Any]],
        options: PathOptions,
        sample_weight: ArrayLike | None = None,
        X_dev: Iterable[Any] | None = None,
        y_dev: Iterable[Iterable[Any]] | None = None,
    ) -> tuple[PathPoint[ChainModel], ...]:
        """Return a point with a model for every strength of the penalty; see :meth:`ChainCRF.path`."""
        corpus, weights, dev = self._learn(X, y, sample_weight, X_dev, y_dev)
        penalty = self.options.make_penalty(self.make_solver())
        whole: Any = self.make_problem(corpus, weights) if options.strengths is None else None
        loss: Any = None if whole is None else whole.loss
        grid = options.grid(loss, penalty)
        options = replace(options, strengths=grid)
        if whole is not None and callable(self.loss):  # nothing is screened
            problem = whole
        else:
            problem = self.make_problem(corpus, weights, screen=penalty.at(grid[-1]))
        judge = None if dev is None else self._development(problem, dev).score

        def make(loss: Loss, penalty: Penalty, result: Result) -> ChainModel:
            return self._model(problem, loss, penalty.bind(loss), result)

        with using_threads(count_threads(self.n_threads)):
            path = options.minimise(problem.loss, problem.penalty, problem.solver, make=make, score=judge)
            return tuple(gathered(path)[0])

    def _learn(
        self,
        X: Iterable[Any],
        y: Iterable[Any],
        sample_weight: ArrayLike | None,
        X_dev: Iterable[Any] | None,
        y_dev: Iterable[Iterable[Any]] | None,
        patience: int = 10,
        token_weight: Iterable[Iterable[float]] | None = None,
    ) -> tuple[TaggedCorpus, ArrayLike | None, Dev | None]:
        """Return the training set, the weights of its sequences and the development set, encoded."""
        self.check()
        if (X_dev is None) != (y_dev is None):
            raise ParameterError("X_dev and y_dev go together: give both or neither")
        known = Supervision.of_labels(y)
        least = 1 if known.partial or known.shares is not None else 2  # of the labels that are whole

        def encode(rows: Iterable[Iterable[Any]]) -> TaggedCorpus:
            return learn(X, rows, self.make_inputs(), self.min_frequency, least)

        corpus = known.learn(encode)
        warn_of_typos(corpus.classes, corpus.data)
        weights = known.spread(sample_weight, known.n_sequences)
        if token_weight is not None:
            corpus = replace(
                corpus, data=replace(corpus.data, token_weights=token_weights(token_weight, corpus.data, known.of))
            )
        if X_dev is None or y_dev is None:
            return corpus, weights, None
        if isinstance(X_dev, (str, bytes)):
            raise DataError(f"X_dev must be a list of sequences, not {type(X_dev).__name__}")
        gold = label_rows(y_dev)
        data = corpus.vocabulary.encode(X_dev)
        check_labels(gold, data.lengths)
        return corpus, weights, Dev(data, gold, patience)

    # --- from a corpus

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
        """Return the model and how training went. It begins at the weights of `start`, or where `resume` stopped."""
        problem = self._problem(corpus, sample_weight, start, resume)
        return self.solve(problem, callbacks, training_error, dev, start, resume)

    def solve(
        self,
        problem: Problem,
        callbacks: Sequence[Callback] = (),
        training_error: bool = False,
        dev: Dev | None = None,
        start: ChainModel | None = None,
        resume: Checkpoint | None = None,
    ) -> tuple[ChainModel, Result]:
        """Return the model of a problem and how training went; see :meth:`run`."""
        corpus, field, loss = problem.corpus, problem.field, problem.loss
        development = None
        if training_error:
            callbacks = [TrainingError(problem.data, field, self.n_threads), *callbacks]
        if dev is not None:
            development = self._development(problem, dev)
            callbacks = [development, *callbacks, development.stop]
        w0 = np.zeros(field.size)
        if start is not None:
            w0 = transfer(start, corpus.vocabulary, corpus.classes.tolist(), field, problem.class_names)
        if isinstance(loss, GrowingLoss):
            loss, w0 = select_start(loss, w0, resume)
        elif problem.solver.name == "auto" and not (isinstance(resume, Checkpoint) and resume.w.shape == w0.shape):
            loss = merged_likelihood(loss, problem.penalty)
            w0 = np.zeros(loss.size) if start is None else loss.of_full(w0)
        if resume is not None:
            w0 = _resumed(resume, loss.size)
        penalty = problem.penalty.bind(loss)
        with using_threads(count_threads(self.n_threads)):
            state = resume.state if resume else None
            result = self.placement.minimise(problem.solver, loss, penalty, w0, callbacks, state)
        if development is not None:
            result = best_of(result, development)
        last: Any = loss if result.loss is None else result.loss
        return self._model(problem, last, penalty, result), result

    def _problem(
        self, corpus: TaggedCorpus, sample_weight: ArrayLike | None, start: ChainModel | None, resume: Checkpoint | None
    ) -> Problem:
        """Return the problem without the attributes that L1 holds at zero.

        It has all of them if training begins at weights of another model, which may not be zero, or at a checkpoint of
        all weights.
        """
        if start is not None:
            return self.make_problem(corpus, sample_weight, start.class_list)
        problem = self.make_problem(corpus, sample_weight, screen=self.options.make_penalty(self.make_solver()))
        whole = None if problem.screen is None else problem.screen.whole
        if whole is not None and isinstance(resume, Checkpoint) and resume.w.shape == (whole.size,):
            return self.make_problem(corpus, sample_weight)
        return problem

    def model_of(self, problem: Problem, result: Result) -> ChainModel:
        """Return the model of a result of a problem's solver."""
        last: Any = problem.loss if result.loss is None else result.loss
        return self._model(problem, last, problem.penalty.bind(problem.loss), result)

    def _development(self, problem: Problem, dev: Dev) -> Development:
        classes = problem.corpus.classes.tolist()
        data = dev.data if problem.screen is None else problem.screen.data(dev.data)
        return Development(data, dev.gold, classes, problem.field, dev.patience, self.n_threads, dev.path)

    def _model(self, problem: Problem, loss: Any, penalty: Penalty, result: Result) -> ChainModel:
        """Return the model of a result, with a record of how it was made."""
        from crfkit.training.defaults import chosen_solver

        corpus, vocabulary, field = problem.corpus, problem.corpus.vocabulary, problem.field
        record = {
            "objective": result.objective,
            "penalty": penalty_record(problem.penalty),
            "value": result.value,
            "status": result.status.name,
            "iterations": result.iterations,
            "min_frequency": int(self.min_frequency),
            "solver": problem.solver.name,
            "auto": dict(chosen_solver(problem.solver, loss, penalty, result)),
            **({} if loss.used is None else {"precision": loss.used}),
            **({} if result.convex else {"convex": False}),
            **corpus.record,
        }
        seen = None
        if isinstance(loss, CandidateChain):
            vocabulary, field = selected_vocabulary(loss, vocabulary), loss.field
        else:
            seen = Seen.of(problem.data, field.n_attributes, field.n_pair_attributes)
        w = result.w if isinstance(loss, CandidateChain) else loss.in_full(result.w)
        names = problem.class_names
        model = ChainModel(vocabulary, corpus.classes, field, w, record, self.n_threads, names, seen=seen)
        return model if penalty.split()[1] is None else pruned(model)


def _resumed(checkpoint: Checkpoint, size: int) -> Floats:
    if not isinstance(checkpoint, Checkpoint):
        raise ParameterError(f"resume must be a Checkpoint, not {checkpoint!r}")
    if checkpoint.w.shape != (size,):
        raise ParameterError(
            f"the checkpoint has {len(checkpoint.w)} weights, but this training has {size}: it is of other "
            "data or of other options"
        )
    return np.array(checkpoint.w)
