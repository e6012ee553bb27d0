"""Early stopping: the score on a development set after each iteration, and the weights that scored best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from crfkit._checks import check_count
from crfkit._types import Floats
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.chain.inference import ChainInference
from crfkit.errors import DataError, DataWarning, StopTraining
from crfkit.metrics import evaluate
from crfkit.result import LAST_WEIGHTS, Result, Status, TraceRow
from crfkit.schemes import are_phrases
from crfkit.warn import warn_caller
from crfkit.wording import counted

if TYPE_CHECKING:  # solvers take longest to load and are needed by training alone
    from crfkit.solvers.parts.loop import Iteration


@dataclass(frozen=True)
class Dev:
    """A development set."""

    data: SequenceData
    gold: Iterable[Sequence[Any]]
    patience: int = 10
    path: str | None = None  # of the file that it is from, for messages


class Development:
    """Callback that adds `dev_f1` (if all labels write phrases, "B-…") or `dev_accuracy` to the trace.

    `stop` is a callback to be called after all others. It ends training when the score has not improved for `patience`
    iterations.
    """

    def __init__(
        self,
        data: SequenceData,
        gold: Iterable[Sequence[Any]],
        classes: Sequence[Any],
        field: ChainField,
        patience: int,
        n_threads: int | None,
        path: str | None = None,
    ) -> None:
        check_count(patience=patience)
        if len(data) == 0 or data.n_positions == 0:
            raise DataError("the development set has no sequences" if len(data) == 0 else "all its sequences are empty")
        self.best_w: Floats | None = None
        self.best_row: TraceRow | None = None  # the iteration that had it
        self.best_loss: Any = None  # that best_w belongs to
        self.stopped = False
        self._data, self._field, self._threads = data, field, n_threads
        self._gold = [row.tolist() if isinstance(row, np.ndarray) else list(row) for row in gold]
        self._names = list(classes)
        self._check_labels(path)
        self._patience = patience
        self._best, self._since = -1.0, 0
        labels = {*self._names, *(label for row in self._gold for label in row)}
        self.name = "dev_f1" if are_phrases(labels) else "dev_accuracy"

    def _check_labels(self, path: str | None) -> None:
        counts = Counter(label for row in self._gold for label in row)
        unseen = sorted(set(counts).difference(self._names), key=str)
        if not unseen:
            return
        named = ", ".join(map(repr, unseen[:5])) + (" …" if len(unseen) > 5 else "")
        if len(unseen) == len(counts):
            known = ", ".join(map(repr, sorted(self._names, key=str)[:5])) + (" …" if len(self._names) > 5 else "")
            raise DataError(
                f"no label of the development set occurs in the training set: it has {named}, the training set has "
                f"{known}; check that the label is in the same column and of the same scheme in both",
                path,
            )
        share = sum(counts[label] for label in unseen) / sum(counts.values())
        where = f"{path}: " if path else ""
        warn_caller(
            f"{where}{counted(len(unseen), 'label')} of the development set ({named}; {share:.1%} of its positions) "
            f"{'does' if len(unseen) == 1 else 'do'} not occur in the training set and can never be predicted",
            DataWarning,
        )

    def score(self, w: Floats) -> float:
        """Return the F1 of phrases, or the share of positions that are labelled correctly."""
        best, _ = ChainInference(self._field, w, self._threads).decode(self._data)
        predicted = [[self._names[j] for j in row] for row in self._data.split(best)]
        found = evaluate(self._gold, predicted)
        return found.overall.f1 if self.name == "dev_f1" else found.accuracy

    def __call__(self, iteration: Iteration) -> Mapping[str, float]:
        score = self.score(all_weights(iteration))
        # While nothing at all is right there is nothing to lose: the last weights are kept, and patience has not begun.
        if score > self._best or score == self._best == 0.0:
            self._best, self._since, self.best_w, self.best_row = score, 0, iteration.w.copy(), iteration.row
            self.best_loss = iteration.loss
        else:
            self._since += 1
        return {self.name: score}

    def stop(self, iteration: Iteration) -> None:
        if self._since >= self._patience:
            self.stopped = True
            raise StopTraining


def all_weights(iteration: Iteration) -> Floats:
    """Return the weights of the whole field, also where the loss has only those of selected attributes."""
    w: Floats = iteration.loss.in_full(iteration.w)
    return w


def best_of(result: Result, development: Development) -> Result:
    """Return the result at the weights that scored best on the development set."""
    w, row = development.best_w, development.best_row
    if w is None or row is None:
        return result
    status = Status.NO_IMPROVEMENT if development.stopped else result.status
    if np.array_equal(w, result.w):
        return replace(result, status=status)
    state = {LAST_WEIGHTS: result.w, **result.state}  # to which the state belongs
    loss = development.best_loss if result.loss is not None else None
    return replace(result, w=w, value=row.value, optimality=row.optimality, status=status, state=state, loss=loss)


class TrainingError:
    """Callback that adds the share of positions and of sequences that are decoded wrongly, as CRF++ prints them."""

    def __init__(self, data: SequenceData, field: ChainField, n_threads: int | None = None) -> None:
        self._data, self._field = data, field
        self._n_threads = n_threads

    def __call__(self, iteration: Iteration) -> Mapping[str, float]:
        inference = ChainInference(self._field, all_weights(iteration), self._n_threads)
        tokens, sequences = inference.errors(self._data)
        return {"token_error": tokens, "sequence_error": sequences}
