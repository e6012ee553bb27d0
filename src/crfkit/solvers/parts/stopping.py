"""Stopping rules, as parts: each looks at the trace and the current point and says whether to stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from crfkit.arrays import norm
from crfkit.errors import ParameterError
from crfkit.parameters import Parameters
from crfkit.protocols import Vector
from crfkit.result import TraceRow


class StoppingRule(Protocol):
    def satisfied(self, trace: Sequence[TraceRow], w: Vector) -> bool:
        """Return whether to stop at w, the point of the last row."""
        ...


def _check(name: str, value: float) -> None:
    if not value >= 0:
        raise ParameterError(f"{name} must be >= 0, not {value!r}")


@dataclass(frozen=True)
class GradientNorm(Parameters):
    """Stop when ``‖g‖ ≤ eps·max(1, ‖w‖)``: a statement about the point itself."""

    eps: float = 1e-5

    def __post_init__(self) -> None:
        _check("eps", self.eps)

    def satisfied(self, trace: Sequence[TraceRow], w: Vector) -> bool:
        return trace[-1].optimality <= self.eps * max(1.0, norm(w))


@dataclass(frozen=True)
class SuccessiveChanges(Parameters):
    """Stop after `times` successive relative changes of the objective below eta, CRF++'s rule."""

    eta: float = 1e-4
    times: int = 3

    def __post_init__(self) -> None:
        _check("eta", self.eta)
        _check("times", self.times - 1)

    def satisfied(self, trace: Sequence[TraceRow], w: Vector) -> bool:
        if len(trace) <= self.times:
            return False
        values = [row.value for row in trace[-self.times - 1 :]]
        return all(abs(old - new) < self.eta * abs(old) for old, new in pairwise(values))


RISE = 0.01  # of the objective over a period: more is no noise


@dataclass(frozen=True)
class PeriodDecrease(Parameters):
    """Stop when the relative decrease of the objective over `period` iterations is below delta, CRFsuite's rule.

    Stochastic solvers may end a little higher than they were, but an objective that rises has not converged.
    """

    delta: float = 1e-5
    period: int = 10

    def __post_init__(self) -> None:
        _check("delta", self.delta)
        _check("period", self.period - 1)

    def satisfied(self, trace: Sequence[TraceRow], w: Vector) -> bool:
        if len(trace) <= self.period:
            return False
        old, new = trace[-1 - self.period].value, trace[-1].value
        return new <= old + RISE * abs(old) and (old - new < self.delta * abs(new) or old == new)


@dataclass(frozen=True)
class PeriodSpread(PeriodDecrease):
    """Stop when all values of the last `period` iterations are within a relative delta of each other.

    :class:`PeriodDecrease` for values that rise on their way: one that is higher than ten steps ago says nothing there.
    """

    def satisfied(self, trace: Sequence[TraceRow], w: Vector) -> bool:
        if len(trace) <= self.period:
            return False
        values = [row.value for row in trace[-1 - self.period :]]
        spread = max(values) - min(values)
        return spread < self.delta * abs(values[-1]) or spread == 0.0


@dataclass(frozen=True)
class AnyOf(Parameters):
    """Stop when one of the rules says so."""

    rules: tuple[StoppingRule, ...]

    def satisfied(self, trace: Sequence[TraceRow], w: Vector) -> bool:
        return any(rule.satisfied(trace, w) for rule in self.rules)


def for_values_that_rise(rule: StoppingRule) -> StoppingRule:
    """Return the rule for values that rise now and then: spreads in place of decreases."""
    if isinstance(rule, AnyOf):
        return AnyOf(tuple(for_values_that_rise(part) for part in rule.rules))
    return PeriodSpread(rule.delta, rule.period) if isinstance(rule, PeriodDecrease) else rule
