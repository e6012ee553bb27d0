"""Solvers: each minimises loss + penalty. See :mod:`crfkit.protocols` for the contract."""

from __future__ import annotations

from typing import Any

from crfkit.errors import ParameterError
from crfkit.solvers.lbfgs import LBFGS
from crfkit.solvers.line_search import StrongWolfe
from crfkit.solvers.loop import Iteration
from crfkit.solvers.stopping import AnyOf, GradientNorm, PeriodDecrease, StoppingRule, SuccessiveChanges

SOLVERS: dict[str, type[LBFGS]] = {LBFGS.name: LBFGS}


def make_solver(solver: Any, **options: Any) -> Any:
    """A solver from its name and options; an instance is returned as it is."""
    if not isinstance(solver, str):
        if isinstance(solver, type) or not hasattr(solver, "minimize"):
            raise ParameterError(f"a solver is a name ({', '.join(sorted(SOLVERS))}) or an instance, not {solver!r}")
        return solver
    if solver not in SOLVERS:
        raise ParameterError(f"unknown solver {solver!r}; there are {', '.join(sorted(SOLVERS))}")
    return SOLVERS[solver](**options)


__all__ = [
    "LBFGS",
    "SOLVERS",
    "AnyOf",
    "GradientNorm",
    "Iteration",
    "PeriodDecrease",
    "StoppingRule",
    "StrongWolfe",
    "SuccessiveChanges",
    "make_solver",
]
