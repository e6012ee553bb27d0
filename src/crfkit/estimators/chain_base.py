"""The part of ChainCRF below its options: how it hands over to training, and what it does with a trained model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfkit._types import Floats
from crfkit.checkpoint import Checkpoint
from crfkit.errors import ParameterError
from crfkit.estimators.base import Estimator
from crfkit.models.chain import ChainModel
from crfkit.models.chain_decoding import Labelling
from crfkit.models.chain_spans import Span
from crfkit.ragged import Ragged
from crfkit.result import Result, Status

if TYPE_CHECKING:  # training loads all solvers, which tagging does not need
    from crfkit.training.batches import PartialFit
    from crfkit.training.chain import ChainTraining

Fitted = TypeVar("Fitted", bound="ChainEstimator")


class ChainEstimator(Estimator):
    """Predictions, weights by name, the model file and the checkpoint of a chain."""

    model_: ChainModel
    result_: Result
    _partial: PartialFit | None = None  # what partial_fit continues from
    warm_start: bool

    def predict(self, X: Iterable[Any]) -> list[list[Any]]:
        """Return the most probable labels of each sequence (Viterbi), as a list that converts to an object array."""
        return self._fitted().predict(X)

    def predict_single(self, x: Any) -> list[Any]:
        """Return the most probable labels of one sequence."""
        return self.predict([x])[0]

    def predict_marginals(self, X: Iterable[Any]) -> list[NDArray[np.float64]]:
        """Return p(label | x) of every position: [positions, labels] for each sequence, with columns as in classes_."""
        return self._fitted().predict_marginals(X)

    def predict_edge_marginals(self, X: Iterable[Any]) -> list[NDArray[np.float64]]:
        """Return p(previous label, label | x): [positions, labels, labels] for each sequence, 0 at the beginning."""
        model = self._fitted()
        data = model.encode(X)
        return Ragged(data.split(model.inference.edge_marginals(data)))  # type: ignore[arg-type]

    def predict_nbest(self, X: Iterable[Any], n: int) -> list[list[Labelling]]:
        """Return the n best labellings of each sequence, best first: fewer where no more exist.

        Each has `labels`, `probability` and `score`.

        >>> from crfkit import ChainCRF
        >>> crf = ChainCRF().fit([[["w=the"], ["w=cat"]], [["w=a"], ["w=cat"]]], [["DET", "NOUN"], ["DET", "NOUN"]])
        >>> [(found.labels, round(found.probability, 2)) for found in crf.predict_nbest([[["w=the"]]], 2)[0]]
        [(['DET'], 0.57), (['NOUN'], 0.43)]
        """
        return self._fitted().predict_nbest(X, n)

    def sequence_probability(self, X: Iterable[Any], y: Iterable[Sequence[Any]], log: bool = False) -> Floats:
        """Return the probability of given labels for each sequence; with `log`, its logarithm (it cannot underflow)."""
        return self._fitted().sequence_probability(X, y, log)

    def predict_spans(self, X: Iterable[Any]) -> list[list[Span]]:
        """Return the phrases of the best labelling of each sequence: (start, end, type, probability).

        The probability is exact: that of all labellings which have this phrase, with these ends and this type. Labels
        must mark phrases, in any scheme (see :mod:`crfkit.schemes`).

        >>> from crfkit import ChainCRF
        >>> X = [[["w=in"], ["w=New"], ["w=York"]], [["w=York"], ["w=in"], ["w=rain"]]]
        >>> crf = ChainCRF().fit(X, [["O", "B-LOC", "I-LOC"], ["B-LOC", "O", "O"]])
        >>> [(s.start, s.end, s.type, round(s.probability, 2)) for s in crf.predict_spans(X[:1])[0]]
        [(1, 3, 'LOC', 0.26)]
        """
        return self._fitted().predict_spans(X)

    def score(self, X: Iterable[Any], y: Iterable[Sequence[Any]], sample_weight: ArrayLike | None = None) -> float:
        """Return the share of positions that `predict` labels correctly, weighted by `sample_weight` if it is given."""
        predicted, gold = self.predict(X), list(y)
        if [len(row) for row in predicted] != [len(row) for row in gold]:
            raise ParameterError("y does not have a label for every position of X")
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
        Wapiti: what it is shows in its contents. `encoding` is that of the texts in those.
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
    def state_features_(self) -> Mapping[tuple[str, Any], float]:
        """(attribute, label) → weight."""
        model = self._fitted()
        a, j = model.field.state_ids()
        return self._named("state", a, j, model.vocabulary.attributes.to_list())

    @property
    def transition_features_(self) -> Mapping[tuple[Any, Any], float]:
        """(label, next label) → weight."""
        model = self._fitted()
        i, j = model.field.transition_ids()
        return self._named("transition", i, j, model.class_list)

    def _named(self, block: str, first: Any, second: Any, names: Sequence[Any]) -> dict[tuple[Any, Any], float]:
        model = self._fitted()
        w, labels = model.w[model.field.layout[block]].tolist(), model.class_list
        return {(names[i], labels[k]): x for i, k, x in zip(first.tolist(), second.tolist(), w, strict=True)}

    def _training(self) -> ChainTraining:
        from crfkit.training.chain import ChainTraining
        from crfkit.training.chain_problem import ChainOptions

        named = {item.name: getattr(self, item.name) for item in fields(ChainOptions) if item.name != "seed"}
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
