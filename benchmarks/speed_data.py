"""What the parts of speed.py share: the data, trainings of ours and of CRFsuite, and how figures become one."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import Report, Store, attributes, crfsuite_train, first_below, seconds

from crfkit import ChainCRF, Template, evaluate
from crfkit.chain.encoding.sequences import learn_file
from crfkit.chain.fields.field import ChainField
from crfkit.errors import StopTraining
from crfkit.losses import ChainLikelihood


@dataclass
class Bench:
    """The data, and how often to measure."""

    data: Path
    folder: Path
    rounds: int
    quick: bool
    l1_iterations: int
    resume: bool
    peer_rounds: int  # in which CRFsuite's long runs are made; later rounds use the last of them
    store: Store

    def __post_init__(self) -> None:
        self.template = Template.read(self.data / "chunking.template")
        most = 300 if self.quick else None
        self.train_file = self.data / "train.txt"
        if self.quick:
            self.train_file = self.folder / "train.txt"
            sentences = (self.data / "train.txt").read_text(encoding="utf-8").split("\n\n")[:most]
            self.train_file.write_text("\n\n".join(sentences) + "\n\n", encoding="utf-8")
        self.X, self.y = attributes(self.data / "train.txt", self.template, most)
        self.X_test, self.y_test = attributes(self.data / "test.txt", self.template, most)
        gc.freeze()

    def f1(self, predicted: list[list[str]]) -> float:
        return evaluate(self.y_test, predicted).overall.f1

    def crfsuite(self, iterations: int, algorithm: str = "lbfgs", **options: float) -> Report:
        return crfsuite_train(self.X, self.y, self.folder / "crfsuite", iterations, algorithm, **options)

    def long_run(self, name: str, k: int, make: Callable[[], Report]) -> Report:
        """Return a run of CRFsuite that takes minutes: made in round k, or kept from an earlier one."""
        key = f"crfsuite/{name}/{min(k, self.peer_rounds - 1)}"
        return dict(self.store.part(key, make) if k < self.peer_rounds else self.store.results[key])

    def loss(self, full: bool = False, precision: str = "auto", n_threads: int | None = None) -> ChainLikelihood:
        corpus = learn_file(self.train_file, self.template, 1)
        sizes = len(corpus.classes), len(corpus.vocabulary.attributes)
        field = ChainField.from_data(corpus.data, *sizes, all_states=full, all_transitions=full)
        return ChainLikelihood(corpus.data, field, n_threads=n_threads, precision=precision)


def fitted(bench: Bench, until: float = -np.inf, **options: Any) -> tuple[float, ChainCRF]:
    """Train from lists, to the stop that the options say or to a value of the objective."""
    crf = ChainCRF(**options)

    def reached(iteration: Any) -> None:
        if iteration.row.value <= until:
            raise StopTraining

    return seconds(lambda: crf.fit(bench.X, bench.y, callbacks=[reached])), crf


def evaluator(loss: ChainLikelihood) -> Callable[[], Any]:
    """Return a function that computes a value and gradient; it has been called once."""
    w = np.random.default_rng(0).normal(scale=0.1, size=loss.size)

    def value_and_gradient() -> Any:
        at = loss.at(w)
        return at.value, at.grad

    value_and_gradient()
    return value_and_gradient


def until(taken: float, result: Any, value: float) -> float | None:
    """Return the seconds of a fit up to the iteration that reached a value, encoding included."""
    reached = first_below(((row.seconds, row.value) for row in result.trace), value)
    return None if reached is None else taken - (result.seconds - reached)


def ratio(above: list[Any], below: list[Any]) -> float | None:
    """Return the median of the ratios of rounds; None where a round has no figure."""
    if None in above or None in below:
        return None
    return statistics.median(a / b for a, b in zip(above, below, strict=True))
