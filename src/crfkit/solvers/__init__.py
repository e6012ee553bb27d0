"""Solvers: each minimises loss + penalty. See :mod:`crfkit.protocols` for the contract."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from crfkit.errors import ParameterError
from crfkit.solvers.lbfgs import LBFGS
from crfkit.solvers.line_search import StrongWolfe
from crfkit.solvers.loop import Iteration
from crfkit.solvers.stopping import AnyOf, GradientNorm, PeriodDecrease, StoppingRule, SuccessiveChanges

SOLVERS: dict[str, Any] = {
    solver.name: solver
    for solver in (
        LBFGS,
    )
}  # fmt: skip


def make_solver(solver: Any, **options: Any) -> Any:
    """A solver from its name and options; an instance is returned as it is.

    Options that are common to many solvers (stopping, max_iterations, seed) are passed to those that have them.
    """
    if not isinstance(solver, str):
        if isinstance(solver, type) or not hasattr(solver, "minimize"):
            raise ParameterError(f"a solver is a name ({', '.join(sorted(SOLVERS))}) or an instance, not {solver!r}")
        return solver
    if solver not in SOLVERS:
        raise ParameterError(f"unknown solver {solver!r}; there are {', '.join(sorted(SOLVERS))}")
    known = {item.name for item in fields(SOLVERS[solver])}
    for name in ("stopping", "max_iterations", "seed"):
        if name not in known:
            options.pop(name, None)
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
