"""Estimate a training: its sizes, its memory, and the measured time of a pass over the data."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crfkit._threads import count_threads, using_threads
from crfkit.arrays import row_type
from crfkit.chain.encoding.sequences import TaggedCorpus
from crfkit.files.limits import size_text
from crfkit.protocols import Capability
from crfkit.training.resources import available_memory, peak_memory, seconds_text
from crfkit.wording import counted

if TYPE_CHECKING:
    from crfkit.chain.training.problem import Problem
    from crfkit.chain.training.train import ChainTraining

USUAL = (30, 150)  # passes over the data that most trainings take, counting those of a stochastic start

# Vectors of doubles as long as the weights, measured at the peak of trainings with 0.4 to 7 million weights:
EVALUATION_VECTORS = 4  # the weights, the gradient, and those of the threads
DESCENT_VECTORS = 4  # of L-BFGS without its curvature pairs and its direction: points and gradients
L1_VECTORS = 20  # of OWL-QN with its pairs, which hold the weights that are not zero
OTHER_VECTORS = 18
DENSE = ("bfgs", "dfp")  # keep a matrix of all pairs of weights


@dataclass(frozen=True)
class Estimate:
    """How large a training is and what it would take."""

    n_sequences: int
    n_tokens: int
    n_labels: int
    n_attributes: int
    n_weights: int
    seconds: float | None  # of one pass over the data: value and gradient; None where even that does not fit
    passes: tuple[int, int]  # that training usually takes
    memory: int | None  # bytes at the peak; None where the system does not say
    available: int | None = None  # bytes that the system can still give; None where it does not say

    @classmethod
    def of(cls, training: ChainTraining, corpus: TaggedCorpus, weights: Any = None) -> Estimate:
        """Estimate the memory of a training. Then evaluate its objective twice, and measure the second time.

        Nothing is evaluated if the estimate is more than the system has.
        """
        from crfkit.solvers import SOLVERS
        from crfkit.solvers.parts.compatibility import check_compatible

        problem = training.make_problem(corpus, weights)
        check_compatible(problem.solver, problem.loss, problem.penalty.bind(problem.loss), SOLVERS)
        later, peak, available = _solver_bytes(problem), peak_memory(), available_memory()
        memory = None if peak is None else peak + 8 * EVALUATION_VECTORS * problem.loss.size + later
        seconds = None
        if memory is None or available is None or memory - (peak or 0) <= available:
            with using_threads(count_threads(training.n_threads)):
                seconds = _seconds_of_a_pass(problem)
                peak = peak_memory()
                if _has_epochs(problem):
                    # what stochastic epochs need is freed before the rest begins
                    _ = problem.loss.epochs() if problem.solver.name == "auto" else problem.loss.online()
            memory = None if peak is None else max(peak + later, peak_memory() or 0)
        most = problem.solver.max_iterations
        return cls(
            len(corpus.data),
            corpus.data.n_positions,
            len(corpus.classes),
            len(corpus.vocabulary.attributes),
            problem.field.size,
            seconds,
            (min(USUAL[0], most), min(USUAL[1], most)),
            memory,
            available,
        )

    def __str__(self) -> str:
        lines = [
            f"{counted(self.n_sequences, 'sequence')}, {counted(self.n_tokens, 'token')}, "
            f"{counted(self.n_labels, 'label')}, {counted(self.n_attributes, 'attribute')}",
            f"{counted(self.n_weights, 'weight')}, which take {size_text(8 * self.n_weights)} in the model file",
        ]
        if self.seconds is not None:
            low, high = (seconds_text(n * self.seconds) for n in self.passes)
            lines.append(
                f"one pass over the data takes {seconds_text(self.seconds)}; most trainings take {self.passes[0]} to "
                f"{self.passes[1]} passes, which is {low} to {high}"
            )
        if self.memory is not None:
            lines.append(f"memory at the peak: about {size_text(self.memory)}")
        if self.seconds is None and self.available is not None:
            lines.append(
                f"this machine has only {size_text(self.available)} left, so that nothing was timed; to need less, "
                "train on the pairs of attribute and label that occur (--observed-states), leave out rare attributes "
                "(--min-frequency), or train from disk (--out-of-core)"
            )
        return "\n".join(lines)


def _solver_bytes(problem: Problem) -> int:
    """Return the memory that a solver takes beyond that of evaluations."""
    solver, size = problem.solver, int(problem.loss.size)
    if solver.name in DENSE:
        return 8 * size * (size + OTHER_VECTORS)
    if problem.penalty.split()[1] is not None:
        return 8 * size * L1_VECTORS
    if solver.name in ("auto", "lbfgs"):
        number = np.dtype(row_type(np.zeros(min(size, 1 << 20))))
        return size * ((2 * int(solver.memory) + 1) * int(number.itemsize) + 8 * DESCENT_VECTORS)
    return 8 * size * OTHER_VECTORS


def _seconds_of_a_pass(problem: Problem) -> float:
    """Evaluate twice; return the seconds of the second time."""
    loss = problem.loss
    for scale in (0.0, 1e-3):
        start = time.perf_counter()
        at = loss.at(np.full(loss.size, scale))
        _ = at.value, at.grad
        seconds = time.perf_counter() - start
        del at, _
    return seconds


def _has_epochs(problem: Problem) -> bool:
    """Return whether training goes through the sequences one by one, at its start or throughout."""
    if problem.solver.name != "auto":
        return Capability.ONLINE in problem.solver.needs
    few = len(problem.data) < problem.solver.least_sequences
    return Capability.ONLINE in problem.loss.capabilities and problem.penalty.split()[1] is None and not few
