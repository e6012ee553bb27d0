"""Early stopping: the score on a development set after each iteration, and the weights that scored best."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from crfkit.data.sequences import Floats, SequenceData
from crfkit.errors import DataError, ParameterError, StopTraining
from crfkit.fields.chain import ChainField
from crfkit.inference.chain import ChainInference
from crfkit.metrics import evaluate
from crfkit.schemes import are_phrases
from crfkit.solvers.loop import Iteration


class Development:
    """Callback: adds `dev_f1` (where all labels write phrases, "B-…") or `dev_accuracy` to the trace. `stop`, a
    callback to be called after all others, ends training when it has not improved for `patience` iterations."""

    def __init__(
        self,
        data: SequenceData,
        gold: Iterable[Sequence[Any]],
        classes: Sequence[Any],
        field: ChainField,
        patience: int,
        n_threads: int | None,
    ) -> None:
        if isinstance(patience, bool) or not isinstance(patience, (int, np.integer)) or patience < 1:
            raise ParameterError(f"patience must be an integer >= 1, not {patience!r}")
        if len(data) == 0 or data.n_positions == 0:
            raise DataError("the development set has no sequences" if len(data) == 0 else "all its sequences are empty")
        self.best_w: Floats | None = None
        self.best_loss: Any = None  # that best_w belongs to
        self.stopped = False
        self._data, self._field, self._threads = data, field, n_threads
        self._gold = [row.tolist() if isinstance(row, np.ndarray) else list(row) for row in gold]
        self._names = list(classes)
        self._patience = patience
        self._best, self._since = -1.0, 0
        labels = {*self._names, *(label for row in self._gold for label in row)}
        self.name = "dev_f1" if are_phrases(labels) else "dev_accuracy"

    def score(self, w: Floats) -> float:
        """F1 of phrases, or the share of positions that are right."""
        best, _ = ChainInference(self._field, w, self._threads).decode(self._data)
        predicted = [[self._names[j] for j in row] for row in self._data.split(best)]
        found = evaluate(self._gold, predicted)
        return found.overall.f1 if self.name == "dev_f1" else found.accuracy

    def __call__(self, iteration: Iteration) -> Mapping[str, float]:
        score = self.score(all_weights(iteration))
        if score > self._best:
            self._best, self._since, self.best_w = score, 0, iteration.w.copy()
            self.best_loss = iteration.loss
        else:
            self._since += 1
        return {self.name: score}

    def stop(self, iteration: Iteration) -> None:
        if self._since >= self._patience:
            self.stopped = True
            raise StopTraining


def all_weights(iteration: Iteration) -> Floats:
    """The weights of the whole field, where the loss has those of selected attributes."""
    w: Floats = iteration.loss.in_full(iteration.w) if hasattr(iteration.loss, "in_full") else iteration.w
    return w
