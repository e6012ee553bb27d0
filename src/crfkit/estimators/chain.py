"""ChainCRF: linear-chain conditional random fields as a scikit-learn estimator."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfkit._types import Floats
from crfkit.checkpoint import Checkpoint
from crfkit.data.sequences import check_labels
from crfkit.encoders.sequences import TaggedCorpus, label_rows, learn, learn_file
from crfkit.errors import DataError, ParameterError
from crfkit.estimators.base import Estimator, not_fitted
from crfkit.estimators.tags import StructuredInputs
from crfkit.features.template import Template
from crfkit.models.chain import ChainModel
from crfkit.protocols import Capability, Penalty
from crfkit.ragged import Ragged
from crfkit.readers.columns import ColumnSource, column_files
from crfkit.result import Status
from crfkit.training.batches import PartialFit, partial_fit
from crfkit.training.chain import ChainTraining, Dev, TrainingError

if TYPE_CHECKING:  # solvers take longest to load and are needed by training alone
    from crfkit.solvers import StoppingRule
    from crfkit.solvers.parts.loop import Callback, Iteration


class ChainCRF(StructuredInputs, Estimator):
    """Linear-chain conditional random field.

    Parameters
    ----------
    template : None, a path, a text or a :class:`Template`
        With a CRF++ template, tokens are lists of column strings. Without one, they are lists of attribute strings,
        dicts (``{"w": "the", "cap": True, "x": 0.5, "nested": {...}}``), or each sequence is a matrix
        (NumPy or scipy.sparse) with a row per position.
    penalty : a member of :mod:`crfkit.penalties`; None for L2(1), but L1(1) with solvers that select attributes
        (grafting-light, grafting, gauss-seidel), and no penalty with solvers that take none (averaged-perceptron,
        passive-aggressive, arow, mira)
    solver : a name of :data:`crfkit.solvers.SOLVERS`, or a solver, which keeps its own stopping rule, limit and seed
        whatever is said below; docs/choose_a_solver.md says which for what
    min_frequency : drop attributes that occur less often than this in the training set
    all_possible_states, all_possible_transitions : give weights to all (attribute, label) and (label, label) pairs,
        as CRF++ does, or (default, as in ``crfkit train``) to those that occur in the training set, as CRFsuite does:
        about as accurate with a fraction of the time and memory (docs/math.md has figures)
    tolerance : stop when the objective decreases by less than this, relatively, over ten iterations, or when
        ``‖g‖ ≤ tolerance·max(1, ‖w‖)``; or a rule of :mod:`crfkit.solvers.parts.stopping`
    max_iterations : stop after so many; None for the solver's own limit. An online solver's iteration is an epoch
    n_threads : None for all cores
    random_state : the seed of solvers that shuffle the sequences; None is 0, so that runs can be repeated
    verbose : 1 prints a line per iteration
    loss : "likelihood", "softmax-margin" or "hinge"
    cost : of the margin losses: a matrix [true label, label] in the order of the sorted labels; None counts mistakes
    order : 1, or 2 for weights on label triples
    constraints : a tagging scheme ("iob1", "iob2", "ioe1", "ioe2", "iobes", "bilou"), "observed" or a collection of
        (label, next label) pairs that may not occur: what is forbidden has probability 0, in training and in prediction
    label_classes : a mapping from labels to class names, so that attributes also score classes of labels, e.g.
        ``{"B-PER": "PER", "I-PER": "PER"}``
    warm_start : begin at the weights of the last fit, as far as they have the same names

    Attributes
    ----------
    classes_ : the labels, sorted
    result_ : how training went (:class:`crfkit.result.Result`)
    n_attributes_ : number of attributes that have weights
    state_features_, transition_features_ : weights by name

    Examples
    --------
    >>> from crfkit import ChainCRF
    >>> X = [[["w=the"], ["w=cat"], ["w=sleeps"]], [["w=a"], ["w=dog"], ["w=barks"]]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]]
    >>> crf = ChainCRF().fit(X, y)
    >>> crf.predict([[["w=the"], ["w=dog"], ["w=sleeps"]]])
    [['DET', 'NOUN', 'VERB']]
    """

    def __init__(
        self,
        template: Template | str | Path | None = None,
        penalty: Penalty | None = None,
        solver: Any = "auto",
        min_frequency: int = 1,
        all_possible_states: bool = False,
        all_possible_transitions: bool = False,
        tolerance: float | StoppingRule = 1e-5,
        max_iterations: int | None = None,
        n_threads: int | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        verbose: int = 0,
        loss: str = "likelihood",
        cost: ArrayLike | None = None,
        order: int = 1,
        constraints: str | Collection[tuple[Any, Any]] | None = None,
        label_classes: Mapping[Any, str] | None = None,
        warm_start: bool = False,
    ) -> None:
        self.template = template
        self.penalty = penalty
        self.solver = solver
        self.min_frequency = min_frequency
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose
        self.loss = loss
        self.cost = cost
        self.order = order
        self.constraints = constraints
        self.label_classes = label_classes
        self.warm_start = warm_start

    # --- training

    def fit(
        self,
        X: Iterable[Any],
        y: Iterable[Iterable[Any]],
        sample_weight: ArrayLike | None = None,
        callbacks: Sequence[Callback] = (),
        training_error: bool = False,
        X_dev: Iterable[Any] | None = None,
        y_dev: Iterable[Iterable[Any]] | None = None,
        patience: int = 10,
        resume: Checkpoint | None = None,
    ) -> ChainCRF:
        """Learns from sequences X with labels y; sample_weight counts each sequence so many times.

        With a development set X_dev, y_dev, training ends when its score (F1 of phrases, or accuracy) has not improved
        for `patience` iterations, and the best weights are kept. `resume` goes on from a checkpoint
        (:meth:`checkpoint`) of a run on the same data. Callbacks see every iteration and may add to
        ``result_.trace``; training_error adds the share of positions and of sequences that the current weights decode
        wrongly. On Ctrl-C the model so far is kept in the estimator and KeyboardInterrupt is raised.
        """
        training = self._training()
        training.check()
        if (X_dev is None) != (y_dev is None):
            raise ParameterError("X_dev and y_dev go together")
        corpus = learn(X, y, self._template(), self.min_frequency)
        dev = None
        if X_dev is not None and y_dev is not None:
            if isinstance(X_dev, (str, bytes)):
                raise DataError(f"X_dev must be a list of sequences, not {type(X_dev).__name__}")
            gold = label_rows(y_dev)
            data = corpus.vocabulary.encode(X_dev)
            check_labels(gold, data.lengths)
            dev = Dev(data, gold, patience)
        return self._fit_corpus(training, corpus, sample_weight, callbacks, training_error, dev, resume)

    def fit_file(
        self,
        path: ColumnSource | Sequence[ColumnSource],
        callbacks: Sequence[Callback] = (),
        training_error: bool = False,
        encoding: str = "utf-8",
        format: str = "auto",
        label_column: str | int | None = None,
    ) -> ChainCRF:
        """Learns from a column file (or several) whose last column is the label, streaming it. Needs a template.

        `encoding`, `format` ("auto", "columns" or "conllu") and `label_column` of CoNLL-U files are those of
        :class:`crfkit.readers.ColumnFile`. The model is that of ``crfkit train`` on the same files.
        """
        training = self._training()
        training.check()
        template = self._template()
        if template is None:
            raise ParameterError("training from a column file needs a template")
        corpus = learn_file(column_files(path, encoding, format, label_column), template, self.min_frequency)
        return self._fit_corpus(training, corpus, None, callbacks, training_error)

    def partial_fit(
        self,
        X: Iterable[Any],
        y: Iterable[Iterable[Any]],
        classes: Iterable[Any] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> ChainCRF:
        """One epoch of an online solver over these sequences, from the current weights.

        Attributes and labels that are new are added. `classes` names labels that may come later, so that constraints
        and all-pairs parameter sets know them from the start.
        """
        training = self._training()
        training.check()
        solver = training.make_solver(max_iterations=1)
        if Capability.ONLINE not in solver.needs:
            from crfkit.solvers import SOLVERS

            online = sorted(name for name, other in SOLVERS.items() if Capability.ONLINE in other.needs)
            raise ParameterError(f"partial_fit needs an online solver ({', '.join(online)}), not {solver.name!r}")
        corpus = learn(X, y, self._template(), self.min_frequency, least_labels=1)
        before: PartialFit | None = getattr(self, "_partial", None)
        if before is None and hasattr(self, "model_"):
            before = PartialFit.after(self.model_)
        model, result, after = partial_fit(training, corpus, before, list(classes or ()), sample_weight)
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt(str(result.status))
        if result.status in (Status.DIVERGED, Status.NON_FINITE):
            from sklearn.exceptions import ConvergenceWarning

            warnings.warn(f"{result.status}; the batch is left out", ConvergenceWarning, stacklevel=2)
            if before is None:
                before = PartialFit.after(replace(model, w=np.zeros(len(model.w))))
            model, after = before.mean, before
        self._partial: PartialFit | None = after
        self._set_model(model)
        self.result_ = result
        return self

    def checkpoint(self) -> Checkpoint:
        """The state of the solver after the last fit: `save` it, and give it to `fit(resume=…)` to go on."""
        self._fitted()
        if not hasattr(self, "result_"):
            raise ParameterError("a model that was loaded has no checkpoint; only fit leaves one")
        return Checkpoint.of(self.result_)

    def _training(self) -> ChainTraining:
        return ChainTraining(
            self.penalty,
            self.solver,
            self.min_frequency,
            self.all_possible_states,
            self.all_possible_transitions,
            self.tolerance,
            self.max_iterations,
            self.n_threads,
            self._seed(),
            self.loss,
            self.cost,
            self.order,
            self.constraints,
            self.label_classes,
        )

    def _seed(self) -> int:
        if self.random_state is None or isinstance(self.random_state, numbers.Integral):
            return int(self.random_state or 0)
        if isinstance(self.random_state, np.random.Generator):
            return int(self.random_state.integers(2**31))
        if isinstance(self.random_state, np.random.RandomState):
            return int(self.random_state.randint(2**31 - 1))
        raise ParameterError(f"random_state must be an integer, a generator or None, not {self.random_state!r}")

    def _fit_corpus(
        self,
        training: ChainTraining,
        corpus: TaggedCorpus,
        sample_weight: ArrayLike | None,
        callbacks: Sequence[Callback],
        training_error: bool,
        dev: Dev | None = None,
        resume: Checkpoint | None = None,
    ) -> ChainCRF:
        if self.verbose:
            callbacks = [*callbacks, _print_row]
        start = self.model_ if self.warm_start and hasattr(self, "model_") else None
        model, result = training.run(corpus, sample_weight, callbacks, training_error, dev, start, resume)
        self._partial = None
        self._set_model(model)
        self.result_ = result
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt(str(result.status))
        if not (result.status.converged or result.status in (Status.STOPPED_BY_CALLBACK, Status.NO_IMPROVEMENT)):
            from sklearn.exceptions import ConvergenceWarning

            warnings.warn(result.message, ConvergenceWarning, stacklevel=3)
        return self

    def _template(self) -> Template | None:
        return None if self.template is None else Template.make(self.template)

    # --- prediction

    def predict(self, X: Iterable[Any]) -> list[list[Any]]:
        """The most probable labels of each sequence (Viterbi): a list, as an array one of objects."""
        return self._fitted().predict(X)

    def predict_single(self, x: Any) -> list[Any]:
        """The labels of one sequence."""
        return self.predict([x])[0]

    def predict_marginals(self, X: Iterable[Any]) -> list[NDArray[np.float64]]:
        """Per sequence, p(label | x) of every position: an array [positions, labels], columns as in classes_."""
        return self._fitted().predict_marginals(X)

    def predict_edge_marginals(self, X: Iterable[Any]) -> list[NDArray[np.float64]]:
        """Per sequence, p(previous label, label | x): [positions, labels, labels]; zero at the first position."""
        model = self._fitted()
        data = model.encode(X)
        return Ragged(data.split(model.inference.edge_marginals(data)))  # type: ignore[arg-type]

    def score(self, X: Iterable[Any], y: Iterable[Sequence[Any]], sample_weight: ArrayLike | None = None) -> float:
        """Share of positions that `predict` labels correctly; with sample_weight, a weighted one."""
        predicted, gold = self.predict(X), list(y)
        if [len(row) for row in predicted] != [len(row) for row in gold]:
            raise ParameterError("y does not have a label for every position of X")
        weights = np.ones(len(gold)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        hits = np.array([sum(a == b for a, b in zip(p, g, strict=True)) for p, g in zip(predicted, gold, strict=True)])
        total = float(weights @ np.array([len(row) for row in gold], dtype=np.float64))
        return float(weights @ hits) / total if total else 0.0

    # --- files

    def save(self, path: str | Path) -> None:
        """Writes a model file (.crf), atomically."""
        self._fitted().save(path)

    @classmethod
    def load(cls, path: str | Path, n_threads: int | None = None) -> ChainCRF:
        """Opens a model file. The estimator can predict; its options are those that the file records."""
        model = ChainModel.load(path, n_threads)
        crf = cls(
            template=model.vocabulary.template,
            min_frequency=int(model.training.get("min_frequency", 1)),
            all_possible_states=model.field.state_offsets is None,
            all_possible_transitions=model.field.transition_codes is None,
            n_threads=n_threads,
            order=model.field.order,
        )
        crf._set_model(model)
        return crf

    # --- what was learned

    def _set_model(self, model: ChainModel) -> None:
        self.model_ = model
        self.classes_ = model.classes

    def _fitted(self) -> ChainModel:
        if not hasattr(self, "model_"):
            raise not_fitted(self)
        model: ChainModel = self.model_
        return model

    @property
    def coef_(self) -> Floats:
        """All weights: state, transition, pair, triple, class; without zeros after an L1 penalty."""
        return self._fitted().w

    @property
    def n_attributes_(self) -> int:
        return len(self._fitted().vocabulary.attributes)

    @property
    def state_features_(self) -> Mapping[tuple[str, Any], float]:
        """(attribute, label) → weight."""
        model = self._fitted()
        names, labels = model.vocabulary.attributes.to_list(), model.class_list
        a, j = model.field.state_ids()
        w = model.w[model.field.layout["state"]].tolist()
        return {(names[i], labels[k]): x for i, k, x in zip(a.tolist(), j.tolist(), w, strict=True)}

    @property
    def transition_features_(self) -> Mapping[tuple[Any, Any], float]:
        """(label, next label) → weight."""
        model = self._fitted()
        i, j = model.field.transition_ids()
        w = model.w[model.field.layout["transition"]].tolist()
        labels = model.class_list
        return {(labels[a], labels[b]): x for a, b, x in zip(i.tolist(), j.tolist(), w, strict=True)}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


def _print_row(iteration: Iteration) -> None:
    row = iteration.row
    extra = "".join(f"  {name} {value:.5f}" for name, value in row.extra.items())
    print(
        f"iteration {row.iteration:4d}  objective {row.value:.4f}  gradient {row.optimality:.4g}  "
        f"{row.seconds:.2f} s{extra}",
        flush=True,
    )


__all__ = ["ChainCRF", "TrainingError"]
