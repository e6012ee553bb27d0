"""CRF: the estimator of sklearn-crfsuite, trained and tagged by crfkit."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from crfkit._types import Array, Label, Record, Samples, Sequences
from crfkit.chain.model.model import ChainModel
from crfkit.compat import pycrfsuite
from crfkit.compat.sklearn_crfsuite._fileresource import FileResource
from crfkit.compat.sklearn_crfsuite.trainer import LinePerIterationTrainer
from crfkit.errors import DataError, ParameterError

# the parameters of training by their names in CRFsuite
_NAMES: Mapping[str, str] = {
    "feature.minfreq": "min_freq",
    "feature.possible_states": "all_possible_states",
    "feature.possible_transitions": "all_possible_transitions",
    **{
        name: name.replace(".", "_")
        for name in (
            "c1", "c2", "max_iterations", "num_memories", "epsilon", "period", "delta", "linesearch", "max_linesearch",
            "calibration.eta", "calibration.rate", "calibration.samples", "calibration.candidates",
            "calibration.max_trials", "c", "error_sensitive", "averaging", "variance", "gamma",
        )
    },
    "type": "pa_type",
}  # fmt: skip


def _few(X: Sequences) -> bool:
    """Return whether sequences are tagged faster one by one than in bulk, which reads the whole model."""
    try:
        return isinstance(X, (list, tuple)) and len(X) <= 256 and sum(map(len, X)) <= 1500
    except TypeError:  # an iterator
        return False


class CRF(BaseEstimator):  # type: ignore[misc]
    """A linear-chain CRF with CRFsuite's parameters; None means CRFsuite's default.

    Parameters
    ----------
    algorithm : "lbfgs" (the default), "l2sgd", "ap", "pa" or "arow".
    min_freq : features whose values sum up to less are omitted (default 0).
    all_possible_states, all_possible_transitions : make features also of pairs that the data do not have.
    c1, c2 : coefficients of the L1 (default 0; lbfgs) and the L2 penalty (default 1; lbfgs, l2sgd).
    max_iterations : default: unlimited (lbfgs), 1000 (l2sgd), 100 (others).
    num_memories : steps that L-BFGS remembers (default 6).
    epsilon : size of the gradient (lbfgs, default 1e-5) or mean loss (ap, pa, arow, default 0) at which training stops.
    period, delta : training stops when `period` iterations (default 10) improved the loss by less than `delta` of it
        (default 1e-5, l2sgd 1e-6).
    linesearch, max_linesearch : "MoreThuente" (the default), "Backtracking" or "StrongBacktracking"; trials (20).
    calibration_eta, calibration_rate, calibration_samples, calibration_candidates, calibration_max_trials : how l2sgd
        chooses its learning rate (0.1, 2, 1000, 10, 20).
    pa_type, c, error_sensitive, averaging : kind of passive-aggressive updates (1), aggressiveness (1), whether the
        cost counts wrong labels (True), whether weights are averaged (True).
    variance, gamma : initial variance of weights (1) and tradeoff (1) of arow.
    verbose : print a line for each iteration.
    model_filename : the model file; an existing one is used unchanged. By default a temporary file.
    keep_tempfiles : leave temporary model files on disk.
    trainer_cls : the class of trainers, a subclass of `pycrfsuite.Trainer`.
    """

    def __init__(
        self,
        algorithm: str | None = None,
        min_freq: float | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
        num_memories: int | None = None,
        epsilon: float | None = None,
        period: int | None = None,
        delta: float | None = None,
        linesearch: str | None = None,
        max_linesearch: int | None = None,
        calibration_eta: float | None = None,
        calibration_rate: float | None = None,
        calibration_samples: int | None = None,
        calibration_candidates: int | None = None,
        calibration_max_trials: int | None = None,
        pa_type: int | None = None,
        c: float | None = None,
        error_sensitive: bool | None = None,
        averaging: bool | None = None,
        variance: float | None = None,
        gamma: float | None = None,
        verbose: bool = False,
        model_filename: str | None = None,
        keep_tempfiles: bool = False,
        trainer_cls: type[pycrfsuite.BaseTrainer] | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.num_memories = num_memories
        self.epsilon = epsilon
        self.period = period
        self.delta = delta
        self.linesearch = linesearch
        self.max_linesearch = max_linesearch
        self.calibration_eta = calibration_eta
        self.calibration_rate = calibration_rate
        self.calibration_samples = calibration_samples
        self.calibration_candidates = calibration_candidates
        self.calibration_max_trials = calibration_max_trials
        self.pa_type = pa_type
        self.c = c
        self.error_sensitive = error_sensitive
        self.averaging = averaging
        self.variance = variance
        self.gamma = gamma
        self.verbose = verbose
        self.model_filename = model_filename
        self.keep_tempfiles = keep_tempfiles
        self.trainer_cls = trainer_cls
        self.modelfile = FileResource(model_filename, keep_tempfiles, suffix=".crfsuite", prefix="model")
        self.training_log_: Any = None
        self._tagger: pycrfsuite.Tagger | None = None
        self._info_cached: Samples = None

    def fit(
        self, X: Sequences, y: Iterable[Label], X_dev: Sequences | None = None, y_dev: Iterable[Label] | None = None
    ) -> CRF:
        """Train on sequences X (lists of items, which are dicts or lists of attributes) with label lists y.

        After every iteration the model is evaluated on `X_dev`, `y_dev` if they are given; see `training_log_`.
        """
        if (X_dev is None) != (y_dev is None):
            raise ParameterError("Pass both X_dev and y_dev to use the holdout data")
        if self._tagger is not None:
            self._tagger.close()
        self._tagger = self._info_cached = None
        self.modelfile.refresh()
        trainer: Any = self._get_trainer()
        for xseq, yseq in self._pairs(X, y, "loading training data to CRFsuite"):
            trainer.append(xseq, yseq)
        if X_dev is not None and y_dev is not None:
            for xseq, yseq in self._pairs(X_dev, y_dev, "loading dev data to CRFsuite"):
                trainer.append(xseq, yseq, 1)
        trainer.train(self.modelfile.name, holdout=-1 if X_dev is None else 1)
        self.training_log_ = getattr(trainer, "logparser", None)
        return self

    def _pairs(self, X: Sequences, y: Iterable[Label], what: str) -> Iterator[tuple[Any, Label]]:
        """Yield sequences with their labels, with a progress bar on stderr if `verbose`."""
        lengths = [len(rows) for rows in (X, y) if isinstance(rows, Sized)]
        if len(set(lengths)) > 1:
            raise DataError(f"there are {lengths[0]} sequences but {lengths[1]} label sequences")
        pairs: Iterable[tuple[Any, Label]] = zip(X, y, strict=False)
        if self.verbose:
            from rich.console import Console
            from rich.progress import track

            pairs = track(pairs, what, len(X) if isinstance(X, Sized) else None, console=Console(stderr=True))
        yield from pairs
        if self.verbose:
            print("")

    def predict(self, X: Iterable[Any]) -> Array:
        """Return the best labels of each sequence, an array of lists (of rows if all are of one length)."""
        rows = [*map(self._open.tag, X)] if _few(X) else list(self._fitted.predict(X))
        return np.array(rows, dtype=object)

    def predict_single(self, xseq: Iterable[object]) -> list[Label]:
        """Return the best labels of one sequence."""
        return self._open.tag(xseq)

    def predict_marginals(self, X: Iterable[Any]) -> list[list[dict[Label, float]]]:
        """Return the probability of each label at each position: a list of dicts for every sequence."""
        tagger = self._open
        labels = tagger.labels()
        nodes = map(tagger.marginals, X) if _few(X) else self._fitted.predict_marginals(X)
        return [[dict(zip(labels, row, strict=True)) for row in node.tolist()] for node in nodes]

    def predict_marginals_single(self, xseq: Iterable[object]) -> list[dict[Label, float]]:
        """Return the probability of each label at each position of one sequence."""
        return self.predict_marginals([xseq])[0]

    def score(self, X: Sequences, y: Iterable[Label]) -> float:
        """Return the share of labels that are predicted right."""
        from crfkit.compat.sklearn_crfsuite.metrics import flat_accuracy_score

        return flat_accuracy_score(y, self.predict(X))  # type: ignore[no-any-return]

    @property
    def _open(self) -> pycrfsuite.Tagger:
        tagger = self.tagger_
        if tagger is None:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this CRF is not fitted yet; call fit, or name an existing model as model_filename")
        return tagger

    @property
    def _fitted(self) -> ChainModel:
        """The model, for calls on many sequences."""
        return self._open.model

    def __sklearn_is_fitted__(self) -> bool:
        return self.modelfile.name is not None and os.path.exists(self.modelfile.name)

    @property
    def tagger_(self) -> pycrfsuite.Tagger | None:
        """The tagger of the model; None before it is fitted."""
        if self._tagger is None and self.modelfile.name is not None:
            tagger = pycrfsuite.Tagger()
            tagger.open(self.modelfile.name)
            self._tagger, self._info_cached = tagger, None
        return self._tagger

    @property
    def classes_(self) -> list[Label] | None:
        """The labels of the model."""
        return None if self.tagger_ is None else self.tagger_.labels()

    @property
    def size_(self) -> int | None:
        """The size of the model file in bytes."""
        return None if self._info is None else int(self._info.header["size"])

    @property
    def num_attributes_(self) -> int | None:
        """The number of attributes that have weights."""
        return None if self._info is None else int(self._info.header["num_attrs"])

    @property
    def attributes_(self) -> list[str] | None:
        """The attributes that have weights."""
        if self._info is None:
            return None
        return sorted(self._info.attributes, key=lambda name: int(self._info.attributes[name]))

    @property
    def state_features_(self) -> dict[tuple[str, Label], float] | None:
        """The weight of each (attribute, label)."""
        return None if self._info is None else self._info.state_features

    @property
    def transition_features_(self) -> dict[tuple[Any, Label], float] | None:
        """The weight of each (label, next label)."""
        return None if self._info is None else self._info.transitions

    @property
    def _info(self) -> Any:
        if self.tagger_ is None:
            return None
        if self._info_cached is None:
            self._info_cached = self.tagger_.info()
        return self._info_cached

    def _get_trainer(self) -> pycrfsuite.BaseTrainer:
        given = {name: getattr(self, attribute) for name, attribute in _NAMES.items()}
        params = {name: value for name, value in given.items() if value is not None}
        trainer = self.trainer_cls or LinePerIterationTrainer
        return trainer(algorithm=self.algorithm, params=params, verbose=self.verbose)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_tagger": None, "_info_cached": None}

    def __setstate__(self, state: Record) -> None:
        # pickles of earlier versions have fewer parameters
        for name, parameter in inspect.signature(CRF.__init__).parameters.items():
            if parameter.default is not parameter.empty:
                self.__dict__[name] = parameter.default
        self.__dict__.update(training_log_=None, _tagger=None, _info_cached=None)
        self.__dict__.update(state)
