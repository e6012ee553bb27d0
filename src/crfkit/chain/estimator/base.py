"""The part of ChainCRF below its options: how it hands over to training, and what it does with a trained model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfkit._checks import unmasked
from crfkit._types import Array, Floats, Label, Sequences
from crfkit.chain.model.answers import ChainAnswers
from crfkit.chain.model.calibration import Calibration, Objective
from crfkit.chain.model.model import ChainModel
from crfkit.errors import ParameterError
from crfkit.files.checkpoint import Checkpoint
from crfkit.ragged import Ragged
from crfkit.result import Result, Status
from crfkit.training.estimator import Estimator

if TYPE_CHECKING:  # training loads all solvers, which tagging does not need
    from crfkit.chain.training.batches import PartialFit
    from crfkit.chain.training.train import ChainTraining

Fitted = TypeVar("Fitted", bound="ChainEstimator")

NOT_OPTIONS = ("seed", "placement")  # of training, that estimators have in other forms: random_state, cluster


class ChainEstimator(ChainAnswers, Estimator):
    """Predictions, weights by name, the model file and the checkpoint of a chain."""

    model_: ChainModel
    result_: Result
    _partial: PartialFit | None = None  # what partial_fit continues from
    warm_start: bool

    def predict(self, X: Sequences) -> list[list[Label]]:
        """Return the most probable labels of each sequence (Viterbi), as a list that converts to an object array."""
        return self._fitted().predict(X)

    def predict_single(self, x: object) -> list[Label]:
        """Return the most probable labels of one sequence."""
        return self.predict([x])[0]

    def predict_marginals(self, X: Sequences) -> list[NDArray[np.float64]]:
        """Return p(label | x) of every position: [positions, labels] for each sequence, with columns as in classes_."""
        return self._fitted().predict_marginals(X)

    def predict_edge_marginals(self, X: Sequences) -> list[NDArray[np.float64]]:
        """Return p(previous label, label | x): [positions, labels, labels] for each sequence, 0 at the beginning."""
        model = self._fitted()
        data = model.encode(X)
        return Ragged(data.split(model.inference.edge_marginals(data)))  # type: ignore[arg-type]

    def trained_model(self) -> ChainModel:
        """Return the trained model, which predicts without scikit-learn."""
        return self._fitted()

    def calibrate(
        self: Fitted,
        X: Sequences,
        y: Iterable[Sequence[Label]],
        precision: float | None = None,
        coverage: float | Iterable[float] = (),
        objective: Objective = "auto",
        min_spans: int = 10,
    ) -> Fitted:
        """Fit the probabilities to labelled sequences that were not used in training; best labels stay the same.

        The weights are divided by a temperature that minimises a loss. `calibration_` has what was found, and the
        model file keeps it.

        precision: also find, for each type of phrase, the threshold at which this share of the phrases is right; use it
        with `predict_spans(X, min_probability="calibrated")`.

        coverage: also prepare sets of labellings which hold the true one with this probability (one or several
        numbers); see `predict_sets`.

        objective: the loss. "spans": log-loss of predicted phrases, the default if labels mark phrases. "tokens":
        log-loss of predicted labels, the default otherwise. "sequences": likelihood of whole labellings. "none": keep
        the temperature.

        min_spans: minimum number of phrases of a type above a threshold; with fewer, their precision means little.

        >>> from crfkit import ChainCRF
        >>> X = [[["w=in"], ["w=Rome"]], [["w=Rome"], ["w=in"], ["w=rain"]]]
        >>> y = [["O", "B-LOC"], ["B-LOC", "O", "O"]]
        >>> crf = ChainCRF().fit(X, y)
        >>> dev = [X[0]] * 9 + [X[1]], [["O", "B-LOC"]] * 8 + [["O", "O"], ["B-LOC", "O", "O"]]
        >>> round(crf.predict_spans(X)[0][0].probability, 2)
        0.65
        >>> round(crf.calibrate(*dev).predict_spans(X)[0][0].probability, 2)
        0.9
        """
        self.model_ = self._fitted().calibrate(X, y, precision, coverage, objective, min_spans)
        return self

    @property
    def calibration_(self) -> Calibration | None:
        """Return the result of `calibrate`, or None."""
        return self._fitted().calibration

    def score(self, X: Sequences, y: Iterable[Sequence[Label]], sample_weight: ArrayLike | None = None) -> float:
        """Return the share of positions that `predict` labels correctly, weighted by `sample_weight` if it is given."""
        predicted, gold = self.predict(X), list(y)
        if [len(row) for row in predicted] != [len(row) for row in gold]:
            raise ParameterError("y does not have a label for every position of X")
        sample_weight = unmasked(sample_weight, "sample_weight")
        weights = np.ones(len(gold)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        hits = np.array([sum(a == b for a, b in zip(p, g, strict=True)) for p, g in zip(predicted, gold, strict=True)])
        total = float(weights @ np.array([len(row) for row in gold], dtype=np.float64))
        return float(weights @ hits) / total if total else 0.0

    def checkpoint(self) -> Checkpoint:
        """Return the state of the solver after the last fit; `save` it, and pass it to `fit(resume=…)` to continue."""
        self._fitted()
        if not hasattr(self, "result_"):
            raise ParameterError("a model that was loaded has no checkpoint; only fit leaves one")
        return Checkpoint.of(self.result_)

    @classmethod
    def load(cls: type[Fitted], path: str | Path, n_threads: int | None = None, encoding: str = "utf-8") -> Fitted:
        """Return an estimator that predicts with the model of a file; its options are those that the file records.

        The file may be crfkit's own, or a model of CRFsuite (also inside a pickled sklearn_crfsuite.CRF), CRF++ or
        Wapiti, which is recognised from its contents. `encoding` is the encoding of the texts in those.
        """
        from crfkit.convert import load

        model = load(path, n_threads, encoding)
        crf = cls(
            template=model.vocabulary.template,
            features=model.vocabulary.text,
            hash_bits=model.vocabulary.hash_bits,
            min_frequency=int(model.training.get("min_frequency", 1)),
            all_possible_states=model.field.state_offsets is None,
            all_possible_transitions=model.field.transition_codes is None,
            n_threads=n_threads,
            order=model.field.order,
        )
        crf._set_model(model)
        return crf

    # --- what was learned

    @property
    def coef_(self) -> Floats:
        """All weights: state, transition, pair, triple, class; without zeros after an L1 penalty."""
        return self._fitted().w

    @property
    def n_attributes_(self) -> int:
        """Number of attributes that have weights."""
        return len(self._fitted().vocabulary.attributes)

    @property
    def state_features_(self) -> Mapping[tuple[str, Label], float]:
        """(attribute, label) → weight."""
        model = self._fitted()
        a, j = model.field.state_ids()
        return self._named("state", a, j, model.vocabulary.attributes.to_list())

    @property
    def transition_features_(self) -> Mapping[tuple[Label, Label], float]:
        """(label, next label) → weight."""
        model = self._fitted()
        i, j = model.field.transition_ids()
        return self._named("transition", i, j, model.class_list)

    def _named(self, block: str, first: Array, second: Array, names: list[Label]) -> dict[tuple[Label, Label], float]:
        model = self._fitted()
        w, labels = model.w[model.field.layout[block]].tolist(), model.class_list
        return {(names[i], labels[k]): x for i, k, x in zip(first.tolist(), second.tolist(), w, strict=True)}

    def _training(self) -> ChainTraining:
        from crfkit.chain.training.problem import ChainOptions
        from crfkit.chain.training.train import ChainTraining

        named = {item.name: getattr(self, item.name) for item in fields(ChainOptions) if item.name not in NOT_OPTIONS}
        return ChainTraining(**named, seed=self._seed())

    def _fitted(self) -> ChainModel:
        model: ChainModel = super()._fitted()
        return model

    def _start(self) -> ChainModel | None:
        return self.model_ if self.warm_start and hasattr(self, "model_") else None

    def _done(self: Fitted, model: ChainModel, result: Result) -> Fitted:
        """Keep the outcome of a fit; raise KeyboardInterrupt if Ctrl-C ended it, warn if it did not converge."""
        self._partial = None
        ended = result.status.converged or result.status in (Status.STOPPED_BY_CALLBACK, Status.NO_IMPROVEMENT)
        self._keep(model, result, [] if ended else [result.message])
        return self
