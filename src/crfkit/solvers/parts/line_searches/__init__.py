"""The line searches. See :mod:`crfkit.solvers.parts.line_searches.trial` for the contract."""

from crfkit.solvers.parts.line_searches.armijo import Armijo
from crfkit.solvers.parts.line_searches.exact import ExactLineSearch
from crfkit.solvers.parts.line_searches.goldstein import Goldstein
from crfkit.solvers.parts.line_searches.more_thuente import MoreThuente
from crfkit.solvers.parts.line_searches.strong_wolfe import StrongWolfe
from crfkit.solvers.parts.line_searches.unit import UnitStep

__all__ = ["Armijo", "ExactLineSearch", "Goldstein", "MoreThuente", "StrongWolfe", "UnitStep"]
