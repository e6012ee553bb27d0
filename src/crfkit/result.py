"""The result of a solver: weights, status and trace."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from crfkit._values import Entries, Record, Vector
from crfkit.wording import Naming, in_python

if TYPE_CHECKING:
    from crfkit.protocols import Loss

LAST_WEIGHTS = "last_weights"  # in a state: the weights that it belongs to, if the result has others


class Status(Enum):
    """The reason why a solver stopped. As a text it is a sentence with the cause and the remedy."""

    CONVERGED = "converged: the stopping rule is satisfied"
    ROUNDING = (
        "converged to rounding: no step decreases the objective by more than its rounding error; the weights are as "
        "good as double precision allows"
    )
    MAX_ITERATIONS = "not converged: the iteration limit was reached; raise {max_iterations} or {tolerance}"
    LINE_SEARCH_FAILED = (
        "not converged: no step along the search direction decreases the objective, although its gradient is not "
        "small; either the gradient is wrong, or values and gradients are noisy (loosen {tolerance})"
    )
    NON_FINITE = (
        "not converged: the objective or its gradient is not finite at the start; check the data for extreme values "
        "and the start vector"
    )
    DIVERGED = (
        "not converged: the objective fell without bound or the weights overflowed; add a penalty, or lower the step "
        "size of a stochastic solver"
    )
    INTERRUPTED = "not converged: interrupted; the weights reached so far are kept"
    STOPPED_BY_CALLBACK = "stopped by a callback"
    TIME_LIMIT = "stopped: the time limit was reached; the weights are from the last whole iteration"
    NO_IMPROVEMENT = "stopped early: the score on the development set no longer improves; its best weights are kept"

    @property
    def converged(self) -> bool:
        """Return whether the weights are an optimum, by the stopping rule or to rounding."""
        return self in (Status.CONVERGED, Status.ROUNDING)

    def text(self, naming: Naming = in_python) -> str:
        """Return the sentence, with options written as `naming` writes them."""
        return self.value.format(max_iterations=naming("max_iterations"), tolerance=naming("tolerance"))

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True)
class TraceRow:
    """One iteration. `extra` holds what callbacks returned (e.g. token_error, sequence_error)."""

    iteration: int
    value: float  # of the whole objective, loss + penalty
    optimality: float  # norm of the gradient (smooth) or of the least sub-gradient, at the point of this row
    evaluations: int  # of value and gradient, in total
    seconds: float  # in total, without the time spent in callbacks
    nonzeros: int  # weights that are not zero; all of them under a smooth penalty
    products: int = 0  # Hessian-vector products, in total
    extra: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> Entries:
        row = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "extra"}
        return row | dict(self.extra)


@dataclass(frozen=True)
class Result:
    """The outcome of `minimize`. `optimality` and `value` belong to `w`, the point returned."""

    w: Vector
    value: float
    optimality: float
    status: Status
    trace: tuple[TraceRow, ...]
    state: Record  # serialisable; a later run can resume from it
    objective: str  # what was minimised, e.g. "chain likelihood + L2(1.0)"
    evaluations: int  # of value and gradient, including a last step that failed
    seconds: float  # without the time spent in callbacks
    products: int = 0  # Hessian-vector products
    passes: int = 0  # over the candidates of a loss that grows
    loss: Loss | None = None  # the loss that `w` belongs to, if the solver has grown it
    convex: bool = True  # whether the loss is known to be convex: if not, another start may end elsewhere

    @property
    def iterations(self) -> int:
        return self.trace[-1].iteration if self.trace else 0

    @property
    def last_change(self) -> float:
        """Return the change of the objective in the last iteration, relative to its value; NaN before the first."""
        if len(self.trace) < 2:
            return math.nan
        before, after = self.trace[-2].value, self.trace[-1].value
        return abs(before - after) / max(abs(after), 1e-300)

    @property
    def message(self) -> str:
        """Return the status with the last change of the objective and the norm of the gradient, for warnings."""
        change = (
            ""
            if math.isnan(self.last_change)
            else (f"; the last iteration changed the objective by {self.last_change:.1e} of its value")
        )
        return f"{self.outcome}{change}; ‖gradient‖ = {self.optimality:.2g}"

    @property
    def outcome(self) -> str:
        """Return the status as a sentence, which mentions an objective that is not convex."""
        return self.describe()

    def describe(self, naming: Naming = in_python) -> str:
        """Return the outcome, with options written as `naming` writes them."""
        text = self.status.text(naming)
        if self.convex:
            return text
        return f"{text}; the objective is not convex, so another start may end at other weights"

    def __str__(self) -> str:
        return (
            f"{self.outcome} ({self.objective} = {self.value:.6g}, ‖gradient‖ = {self.optimality:.3g}; "
            f"{self.iterations} iterations, {self.evaluations} evaluations, {self.seconds:.2f} s)"
        )
