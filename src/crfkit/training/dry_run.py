"""What a training would take: its sizes, and the memory and time of a pass over the data, measured."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crfkit._threads import count_threads, using_threads
from crfkit.encoders.sequences import TaggedCorpus
from crfkit.limits import size_text
from crfkit.wording import counted

if TYPE_CHECKING:
    from crfkit.training.chain import ChainTraining

USUAL = (30, 150)  # passes over the data that most trainings take, counting those of a stochastic start
VECTORS = 18  # as long as the weights: two for each of six curvature pairs, and the points of a line search


@dataclass(frozen=True)
class Estimate:
    """How large a training is and what it would take."""

    n_sequences: int
    n_tokens: int
    n_labels: int
    n_attributes: int
    n_weights: int
    seconds: float  # of one pass over the data: the value of the objective and its gradient
    passes: tuple[int, int]  # that training usually takes
    memory: int | None  # bytes at the peak; None where the system does not say

    @classmethod
    def of(cls, training: ChainTraining, corpus: TaggedCorpus, weights: Any = None) -> Estimate:
        """Evaluate the objective of a training twice, and measure the second time."""
        from crfkit.solvers import SOLVERS
        from crfkit.solvers.parts.compatibility import check_compatible

        problem = training.make_problem(corpus, weights)
        check_compatible(problem.solver, problem.loss, problem.penalty.bind(problem.loss), SOLVERS)
        size = problem.loss.size
        most = problem.solver.max_iterations
        with using_threads(count_threads(training.n_threads)):
            for scale in (0.0, 1e-3):
                start = time.perf_counter()
                at = problem.loss.at(np.full(size, scale))
                _ = at.value, at.grad
                seconds = time.perf_counter() - start
        peak = peak_memory()
        return cls(
            len(corpus.data),
            corpus.data.n_positions,
            len(corpus.classes),
            len(corpus.vocabulary.attributes),
            problem.field.size,
            seconds,
            (min(USUAL[0], most), min(USUAL[1], most)),
            None if peak is None else peak + VECTORS * 8 * size,
        )

    def __str__(self) -> str:
        low, high = (n * self.seconds for n in self.passes)
        lines = [
            f"{counted(self.n_sequences, 'sequence')}, {counted(self.n_tokens, 'token')}, "
            f"{counted(self.n_labels, 'label')}, {counted(self.n_attributes, 'attribute')}",
            f"{counted(self.n_weights, 'weight')}, which take {size_text(8 * self.n_weights)} in the model file",
            f"one pass over the data takes {seconds_text(self.seconds)}; most trainings take {self.passes[0]} to "
            f"{self.passes[1]} passes, which is {seconds_text(low)} to {seconds_text(high)}",
        ]
        if self.memory is not None:
            lines.append(f"memory at the peak: about {size_text(self.memory)}")
        return "\n".join(lines)


def peak_memory() -> int | None:
    """Return the most memory that this process has had so far, in bytes; None where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def seconds_text(seconds: float) -> str:
    """Return a duration for people.

    >>> seconds_text(0.0123), seconds_text(75), seconds_text(7200)
    ('0.012 s', '75 s', '2 h')
    """
    if seconds < 100:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.2g} h"
