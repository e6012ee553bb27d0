"""The options of training that do not depend on what is trained: penalty, solver, when to stop, threads, seed."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crfkit._checks import check_optional_count
from crfkit._checks import make_seed as make_seed
from crfkit._values import Record
from crfkit.errors import ParameterError, option_error
from crfkit.protocols import Penalty, Solver
from crfkit.wording import quoted

if TYPE_CHECKING:  # solvers take longest to load and are needed by training alone
    from crfkit.solvers import StoppingRule


@dataclass(frozen=True)
class SolverOptions:
    """Options of the solver and the penalty; the names are as in the estimators."""

    penalty: Penalty | None = None
    solver: str | Solver = "auto"
    tolerance: float | StoppingRule = 1e-5
    max_iterations: int | None = None
    n_threads: int | None = None
    seed: int = 0

    def check(self) -> None:
        """Raise ParameterError if an option is out of range."""
        check_optional_count(max_iterations=self.max_iterations, n_threads=self.n_threads)
        if isinstance(self.tolerance, (int, float)) and not self.tolerance >= 0:
            raise option_error("tolerance", f" must be >= 0, not {self.tolerance!r}")
        if not isinstance(self.tolerance, numbers.Real) and not hasattr(self.tolerance, "satisfied"):
            raise option_error("tolerance", f" must be a number or a stopping rule, not {quoted(self.tolerance)}")
        if self.penalty is not None and (isinstance(self.penalty, type) or not isinstance(self.penalty, Penalty)):
            raise ParameterError(
                f"penalty must be a member of crfkit.penalties such as L2(1.0), not {quoted(self.penalty)}"
            )
        self.make_solver()

    def make_solver(self, **options: object) -> Any:
        """Return the solver with these options; those given here take precedence, except over max_iterations."""
        from crfkit.solvers import AnyOf, GradientNorm, PeriodDecrease, make_solver

        rule: object = self.tolerance
        if isinstance(rule, numbers.Real):
            rule = AnyOf((PeriodDecrease(float(rule)), GradientNorm(float(rule))))
        options = {"stopping": rule, "seed": self.seed, **options}
        if self.max_iterations is not None:
            options["max_iterations"] = int(self.max_iterations)
        return make_solver(self.solver, **options)

    def make_penalty(self, solver: Solver) -> Penalty:
        """Return the penalty of the options, or the one that None means."""
        from crfkit.training.defaults import default_penalty

        return self.penalty if self.penalty is not None else default_penalty(solver)


def penalty_record(penalty: Penalty) -> dict[str, float] | None:
    """Return the strengths of L1 and L2 for the record of a model; None for other penalties.

    >>> from crfkit.penalties import L2
    >>> penalty_record(L2(0.5))
    {'l1': 0.0, 'l2': 0.5}
    """
    from crfkit.penalties import L1, L2, ElasticNet, NoPenalty

    if isinstance(penalty, NoPenalty):
        return {"l1": 0.0, "l2": 0.0}
    if isinstance(penalty, L1):
        return {"l1": float(penalty.strength), "l2": 0.0}
    if isinstance(penalty, L2):
        return {"l1": 0.0, "l2": float(penalty.strength)}
    if isinstance(penalty, ElasticNet):
        return {"l1": float(penalty.l1), "l2": float(penalty.l2)}
    return None


def recorded_penalty(record: Record) -> Penalty | None:
    """Return the penalty that the record of a model names; None if it names none.

    >>> recorded_penalty({"penalty": {"l1": 0.0, "l2": 0.5}})
    L2(strength=0.5)
    """
    strengths = record.get("penalty")
    if strengths is None:
        return None
    from crfkit.penalties import L1, L2, ElasticNet, NoPenalty

    l1, l2 = strengths["l1"], strengths["l2"]
    if not l1:
        return L2(l2) if l2 else NoPenalty()
    return ElasticNet(l1, l2) if l2 else L1(l1)
