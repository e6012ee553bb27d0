"""CRFsuite's five training algorithms: a solver, what it prints before it begins, after an iteration and at its end."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from crfkit._values import Entries
from crfkit.arrays import count_nonzero, norm
from crfkit.compat.pycrfsuite._epochs import L2SGD, Arow, Calibration, PassiveAggressive, Perceptron, Say
from crfkit.compat.pycrfsuite._errors import OVERFLOW, CRFSuiteError
from crfkit.compat.pycrfsuite._orthants import OrthantWise
from crfkit.compat.pycrfsuite._parameters import UNLIMITED, Parameters
from crfkit.compat.pycrfsuite._searches import Watch, WatchedSearch, make_search
from crfkit.penalties import L2, ElasticNet, NoPenalty
from crfkit.protocols import Penalty, Solver, Vector
from crfkit.result import Result, Status, TraceRow
from crfkit.solvers.lbfgs import LBFGS
from crfkit.solvers.parts.stopping import AnyOf, GradientNorm, PeriodDecrease, StoppingRule

NOTHING_TO_DO, ALREADY_MINIMAL, ROUNDING, NO_STEP = -1020, 2, -1001, -998  # codes of CRFsuite's L-BFGS


@dataclass
class Algorithm(ABC):
    """A training algorithm with its parameters."""

    given: Parameters
    say: Say

    title: ClassVar[str]
    shown: ClassVar[tuple[str, ...]]  # parameters that the log shows, in this order
    heading: ClassVar[str] = "Iteration"

    def penalty(self) -> Penalty:
        return NoPenalty()

    @abstractmethod
    def solver(self, n_sequences: int) -> Solver:
        """Return the solver."""

    def introduction(self, n_sequences: int) -> Iterator[str]:
        """Yield the lines before training."""
        yield f"{self.title}\n"
        for name in self.shown:
            yield f"{name}: {_text(self.given[name])}\n"
        yield "\n"

    @abstractmethod
    def progress(self, row: TraceRow, w: Vector) -> Iterator[str]:
        """Yield the lines of an iteration, without its time."""

    def end(self, result: Result) -> Iterator[str]:
        """Yield the lines after the last iteration."""
        return iter(())

    def weights(self, result: Result) -> Vector:
        """Return the weights of the model."""
        if result.status in (Status.DIVERGED, Status.NON_FINITE) or not np.isfinite(result.w).all():
            raise CRFSuiteError(OVERFLOW)
        return result.w


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return f"{value:f}" if isinstance(value, float) else str(value)


@dataclass
class LBFGSAlgorithm(Algorithm):
    """L-BFGS; OWL-QN with an L1 penalty."""

    watch: Watch = field(default_factory=Watch)

    title: ClassVar[str] = "L-BFGS optimization"
    shown: ClassVar[tuple[str, ...]] = (
        "c1", "c2", "num_memories", "max_iterations", "epsilon", "period", "delta", "linesearch", "max_linesearch",
    )  # fmt: skip

    def introduction(self, n_sequences: int) -> Iterator[str]:
        other = {"period:": "stop:", "max_linesearch:": "linesearch.max_iterations:"}
        for line in super().introduction(n_sequences):
            name, *rest = line.split(" ", 1)
            yield " ".join([other.get(name, name), *rest])

    def penalty(self) -> Penalty:
        c1, c2 = self.given["c1"], self.given["c2"]
        return ElasticNet.from_crfsuite(c1, c2) if c1 > 0 else L2.from_crfsuite(c2)

    def solver(self, n_sequences: int) -> Solver:
        given = self.given
        rules: list[StoppingRule] = [GradientNorm(given["epsilon"])]
        if given["period"] > 0:
            rules.append(PeriodDecrease(given["delta"], given["period"]))
        options = {
            "memory": given["num_memories"],
            "stopping": AnyOf(tuple(rules)),
            "max_iterations": given["max_iterations"] or UNLIMITED,
        }
        if given["c1"] > 0:
            return OrthantWise(**options, max_trials=given["max_linesearch"], watch=self.watch)
        search = make_search(given["linesearch"], given["max_linesearch"])
        return LBFGS(**options, line_search=WatchedSearch(search, self.watch), double=True)

    def progress(self, row: TraceRow, w: Vector) -> Iterator[str]:
        yield f"Loss: {row.value:f}\n"
        yield f"Feature norm: {norm(w):f}\n"
        yield f"Error norm: {row.optimality:f}\n"
        yield f"Active features: {count_nonzero(w)}\n"
        yield f"Line search trials: {self.watch.trials}\n"
        yield f"Line search step: {self.watch.step:f}\n"

    def end(self, result: Result) -> Iterator[str]:
        status = result.status
        if status is Status.CONVERGED and result.iterations > 0:
            small = GradientNorm(self.given["epsilon"]).satisfied(result.trace, result.w)
            yield f"L-BFGS {'resulted in convergence' if small else 'terminated with the stopping criteria'}\n"
        elif status is Status.MAX_ITERATIONS:
            yield "L-BFGS terminated with the maximum number of iterations\n"
        else:
            codes = {Status.CONVERGED: ALREADY_MINIMAL, Status.ROUNDING: ROUNDING}
            yield f"L-BFGS terminated with error code ({codes.get(status, NO_STEP)})\n"

    def weights(self, result: Result) -> Vector:
        if not np.isfinite(result.w).all():
            raise CRFSuiteError(OVERFLOW)
        return result.w  # of the last iteration, whatever ended the run


@dataclass
class SGDAlgorithm(Algorithm):
    losses: list[float] = field(default_factory=list)
    begun: float = 0.0

    title: ClassVar[str] = "Stochastic Gradient Descent (SGD)"
    shown: ClassVar[tuple[str, ...]] = ("c2", "max_iterations", "period", "delta")
    heading: ClassVar[str] = "Epoch"

    def penalty(self) -> Penalty:
        return L2.from_crfsuite(self.given["c2"])

    def introduction(self, n_sequences: int) -> Iterator[str]:
        yield from super().introduction(n_sequences)
        self.begun = time.perf_counter()
        yield "Calibrating the learning rate (eta)\n"
        for name in ("eta", "rate", "samples", "candidates", "max_trials"):
            value = self.given[f"calibration.{name}"]
            yield f"calibration.{name}: {_text(min(n_sequences, value) if name == 'samples' else value)}\n"

    def solver(self, n_sequences: int) -> Solver:
        given = self.given
        names = ("eta", "rate", "samples", "candidates", "max_trials")
        calibration = Calibration(**{name: given[f"calibration.{name}"] for name in names})
        return L2SGD(
            max_iterations=given["max_iterations"],
            period=given["period"],
            delta=given["delta"],
            calibration=calibration,
            say=self.say,
        )

    def progress(self, row: TraceRow, w: Vector) -> Iterator[str]:
        self.losses.append(row.value)
        period = self.given["period"]
        yield f"Loss: {row.value:f}\n"
        if len(self.losses) > period:
            yield f"Improvement ratio: {(self.losses[-1 - period] - row.value) / row.value:f}\n"
        yield f"Feature L2-norm: {row.extra['norm']:f}\n"
        yield f"Learning rate (eta): {row.extra['eta']:f}\n"
        yield f"Total number of feature updates: {row.extra['updates']:.0f}\n"

    def end(self, result: Result) -> Iterator[str]:
        if result.iterations < self.given["max_iterations"]:
            yield "SGD terminated with the stopping criteria\n"
        else:
            yield "SGD terminated with the maximum number of iterations\n"
        yield f"Loss: {min(self.losses, default=0.0):f}\n"

    def weights(self, result: Result) -> Vector:
        super().weights(result)
        return result.state.get("w", result.w)  # of the best epoch


class EpochAlgorithm(Algorithm):
    """Base of the learners that are driven by mistakes."""

    def progress(self, row: TraceRow, w: Vector) -> Iterator[str]:
        yield f"Loss: {row.value:f}\n"
        yield f"Feature norm: {row.extra['norm']:f}\n"

    def end(self, result: Result) -> Iterator[str]:
        if result.status is Status.CONVERGED:
            yield "Terminated with the stopping criterion\n"
            yield "\n"

    @property
    def epochs(self) -> Entries:
        return {"max_iterations": self.given["max_iterations"], "epsilon": self.given["epsilon"]}


class PerceptronAlgorithm(EpochAlgorithm):
    title = "Averaged perceptron"
    shown = ("max_iterations", "epsilon")

    def solver(self, n_sequences: int) -> Solver:
        return Perceptron(**self.epochs)


class PassiveAggressiveAlgorithm(EpochAlgorithm):
    title = "Passive Aggressive"
    shown = ("type", "c", "error_sensitive", "averaging", "max_iterations", "epsilon")

    def solver(self, n_sequences: int) -> Solver:
        given = self.given
        return PassiveAggressive(
            **self.epochs,
            kind=given["type"],
            c=given["c"],
            error_sensitive=given["error_sensitive"],
            averaging=given["averaging"],
        )


class ArowAlgorithm(EpochAlgorithm):
    title = "Adaptive Regularization of Weights (AROW)"
    shown = ("variance", "gamma", "max_iterations", "epsilon")

    def solver(self, n_sequences: int) -> Solver:
        return Arow(**self.epochs, variance=self.given["variance"], gamma=self.given["gamma"])


MAKERS: dict[str, type[Algorithm]] = {
    "lbfgs": LBFGSAlgorithm,
    "l2sgd": SGDAlgorithm,
    "averaged-perceptron": PerceptronAlgorithm,
    "passive-aggressive": PassiveAggressiveAlgorithm,
    "arow": ArowAlgorithm,
}
