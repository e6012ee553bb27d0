"""Solvers: each minimises loss + penalty. See :mod:`crfkit.protocols` for the contract."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from crfkit.errors import ParameterError
from crfkit.names import check_name
from crfkit.protocols import Solver
from crfkit.solvers.adam import Adam
from crfkit.solvers.admm import ADMM
from crfkit.solvers.auto import Auto
from crfkit.solvers.conjugate_gradient import ConjugateGradient
from crfkit.solvers.dense_quasi_newton import BFGS, DFP
from crfkit.solvers.fista import FISTA
from crfkit.solvers.gauss_seidel import GaussSeidel
from crfkit.solvers.gradient_descent import GradientDescent
from crfkit.solvers.grafting import Grafting, GraftingLight
from crfkit.solvers.iis import IIS
from crfkit.solvers.ista import ISTA
from crfkit.solvers.lbfgs import LBFGS
from crfkit.solvers.mistake_driven import AROW, MIRA, AveragedPerceptron, PassiveAggressive
from crfkit.solvers.newton import Newton
from crfkit.solvers.ogm import OGM
from crfkit.solvers.owlqn import OWLQN
from crfkit.solvers.parts.line_searches import Armijo, ExactLineSearch, Goldstein, MoreThuente, StrongWolfe, UnitStep
from crfkit.solvers.parts.loop import Iteration, IterativeSolver
from crfkit.solvers.parts.stopping import (
    AnyOf,
    GradientNorm,
    PeriodDecrease,
    PeriodSpread,
    StoppingRule,
    SuccessiveChanges,
)
from crfkit.solvers.pqn import PQN
from crfkit.solvers.projected import AGPM, SPG, Zhou
from crfkit.solvers.rda import RDA
from crfkit.solvers.sgd import ASGD, SGD
from crfkit.solvers.smd import SMD
from crfkit.solvers.tron import Tron

SOLVERS: dict[str, Any] = {
    solver.name: solver
    for solver in (
        Auto,
        LBFGS,
        OWLQN,
        BFGS,
        DFP,
        ConjugateGradient,
        GradientDescent,
        Newton,
        Tron,
        IIS,
        ISTA,
        FISTA,
        OGM,
        AGPM,
        SPG,
        Zhou,
        PQN,
        ADMM,
        RDA,
        SGD,
        ASGD,
        AveragedPerceptron,
        PassiveAggressive,
        AROW,
        MIRA,
        SMD,
        Adam,
        GraftingLight,
        Grafting,
        GaussSeidel,
    )
}  # fmt: skip
IterativeSolver.registry = SOLVERS


def make_solver(solver: str | Solver, **options: object) -> Any:
    """Return a solver from its name and options; an instance is returned unchanged.

    Options that are common to many solvers (stopping, max_iterations, seed) are passed to those that have them.
    """
    if not isinstance(solver, str):
        if not isinstance(solver, Solver):
            raise ParameterError(f"a solver is a name ({', '.join(sorted(SOLVERS))}) or an instance, not {solver!r}")
        return solver
    check_name("solver", solver, SOLVERS)
    known = {item.name for item in fields(SOLVERS[solver])}
    for name in ("stopping", "max_iterations", "seed"):
        if name not in known:
            options.pop(name, None)
    return SOLVERS[solver](**options)


__all__ = [
    "ADMM",
    "AGPM",
    "AROW",
    "ASGD",
    "BFGS",
    "DFP",
    "FISTA",
    "IIS",
    "ISTA",
    "LBFGS",
    "MIRA",
    "OGM",
    "OWLQN",
    "PQN",
    "RDA",
    "SGD",
    "SMD",
    "SOLVERS",
    "SPG",
    "Adam",
    "AnyOf",
    "Armijo",
    "Auto",
    "AveragedPerceptron",
    "ConjugateGradient",
    "ExactLineSearch",
    "GaussSeidel",
    "Goldstein",
    "GradientDescent",
    "GradientNorm",
    "Grafting",
    "GraftingLight",
    "Iteration",
    "MoreThuente",
    "Newton",
    "PassiveAggressive",
    "PeriodDecrease",
    "PeriodSpread",
    "StoppingRule",
    "StrongWolfe",
    "SuccessiveChanges",
    "Tron",
    "UnitStep",
    "Zhou",
    "make_solver",
]
