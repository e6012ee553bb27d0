"""ChainCRF: linear-chain conditional random fields as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from crfkit.data.encode import TaggedCorpus, learn, learn_file
from crfkit.data.sequences import Floats
from crfkit.errors import ParameterError
from crfkit.estimators.chain_model import ChainModel
from crfkit.estimators.chain_training import ChainTraining, TrainingError
from crfkit.features.template import Template
from crfkit.penalties import L2
from crfkit.protocols import Penalty
from crfkit.result import Status
from crfkit.solvers import StoppingRule
from crfkit.solvers.loop import Callback, Iteration


class ChainCRF(BaseEstimator):  # type: ignore[misc]
    """Linear-chain conditional random field.

    Parameters
    ----------
    template : None, a path, a text or a :class:`Template`
        With a CRF++ template, tokens are lists of column strings. Without one, they are lists of attribute strings,
        dicts (``{"w": "the", "cap": True, "x": 0.5, "nested": {...}}``), or each sequence is a matrix
        (NumPy or scipy.sparse) with a row per position.
    penalty : a member of :mod:`crfkit.penalties`
    solver : a name of :data:`crfkit.solvers.SOLVERS`, or a solver
    min_frequency : drop attributes that occur less often than this in the training set
    all_possible_states, all_possible_transitions : give weights to all (attribute, label) and (label, label) pairs,
        as CRF++ does, or (default) to those that occur in the training set, as CRFsuite does
    tolerance : stop when the objective decreases by less than this, relatively, over ten iterations, or when
        ``‖g‖ ≤ tolerance·max(1, ‖w‖)``; or a rule of :mod:`crfkit.solvers.stopping`
    max_iterations : stop after so many
    n_threads : None for all cores
    random_state : for solvers that draw random numbers; lbfgs, the only one so far, draws none and ignores it
    verbose : 1 prints a line per iteration

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
        penalty: Penalty = L2(1.0),  # noqa: B008 - frozen
        solver: Any = "lbfgs",
        min_frequency: int = 1,
        all_possible_states: bool = False,
        all_possible_transitions: bool = False,
        tolerance: float | StoppingRule = 1e-5,
        max_iterations: int = 1000,
        n_threads: int | None = None,
        random_state: int | np.random.Generator | None = None,
        verbose: int = 0,
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

    # --- training

    def fit(
        self,
        X: Iterable[Any],
        y: Iterable[Iterable[Any]],
        sample_weight: ArrayLike | None = None,
        callbacks: Sequence[Callback] = (),
        training_error: bool = False,
    ) -> ChainCRF:
        """Learns from sequences X with labels y; sample_weight counts each sequence so many times.

        Callbacks see every iteration and may add to ``result_.trace``; training_error adds the share of positions and
        of sequences that the current weights decode wrongly. On Ctrl-C the model so far is kept in the estimator and
        KeyboardInterrupt is raised.
        """
        self._training().check()
        corpus = learn(X, y, self._template(), self.min_frequency)
        return self._fit_corpus(corpus, sample_weight, callbacks, training_error)

    def fit_file(self, path: str | Path, callbacks: Sequence[Callback] = (), training_error: bool = False) -> ChainCRF:
        """Learns from a column file whose last column is the label, streaming it. Needs a template."""
        self._training().check()
        template = self._template()
        if template is None:
            raise ParameterError("training from a column file needs a template")
        return self._fit_corpus(learn_file(path, template, self.min_frequency), None, callbacks, training_error)

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
        )

    def _fit_corpus(
        self,
        corpus: TaggedCorpus,
        sample_weight: ArrayLike | None,
        callbacks: Sequence[Callback],
        training_error: bool,
    ) -> ChainCRF:
        if self.verbose:
            callbacks = [*callbacks, _print_row]
        model, result = self._training().run(corpus, sample_weight, callbacks, training_error)
        self._set_model(model)
        self.result_ = result
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt(str(result.status))
        if result.status not in (Status.CONVERGED, Status.STOPPED_BY_CALLBACK):
            warnings.warn(str(result.status), ConvergenceWarning, stacklevel=3)
        return self

    def _template(self) -> Template | None:
        return None if self.template is None else Template.make(self.template)

    # --- prediction

    def predict(self, X: Iterable[Any]) -> list[list[Any]]:
        """The most probable labels of each sequence (Viterbi)."""
        model = self._fitted()
        return model.decode(model.encode(X))

    def predict_single(self, x: Any) -> list[Any]:
        """The labels of one sequence."""
        return self.predict([x])[0]

    def predict_marginals(self, X: Iterable[Any]) -> list[NDArray[np.float64]]:
        """Per sequence, p(label | x) of every position: an array [positions, labels], columns as in classes_."""
        model = self._fitted()
        data = model.encode(X)
        return list(data.split(model.inference.node_marginals(data)))  # type: ignore[arg-type]

    def predict_edge_marginals(self, X: Iterable[Any]) -> list[NDArray[np.float64]]:
        """Per sequence, p(previous label, label | x): [positions, labels, labels]; zero at the first position."""
        model = self._fitted()
        data = model.encode(X)
        return list(data.split(model.inference.edge_marginals(data)))  # type: ignore[arg-type]

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
        )
        crf._set_model(model)
        return crf

    # --- what was learned

    def _set_model(self, model: ChainModel) -> None:
        self.model_ = model
        self.classes_ = model.classes

    def _fitted(self) -> ChainModel:
        check_is_fitted(self, "model_")
        model: ChainModel = self.model_
        return model

    @property
    def coef_(self) -> Floats:
        """All weights: state, transition, pair."""
        return self._fitted().w

    @property
    def n_attributes_(self) -> int:
        return len(self._fitted().vocabulary.attributes)

    @property
    def state_features_(self) -> Mapping[tuple[str, Any], float]:
        """(attribute, label) → weight."""
        model = self._fitted()
        names, labels = model.vocabulary.attributes.to_list(), model.class_list
        a, j = model.field.state_names()
        w = model.w[model.field.layout["state"]].tolist()
        return {(names[i], labels[k]): x for i, k, x in zip(a.tolist(), j.tolist(), w, strict=True)}

    @property
    def transition_features_(self) -> Mapping[tuple[Any, Any], float]:
        """(label, next label) → weight."""
        model = self._fitted()
        i, j = model.field.transition_names()
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
