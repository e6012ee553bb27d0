"""The line searches. See :mod:`crfkit.solvers.line_search` for the contract."""

from crfkit.solvers.line_searches.armijo import Armijo
from crfkit.solvers.line_searches.exact import ExactLineSearch
from crfkit.solvers.line_searches.goldstein import Goldstein
from crfkit.solvers.line_searches.more_thuente import MoreThuente
from crfkit.solvers.line_searches.strong_wolfe import StrongWolfe
from crfkit.solvers.line_searches.unit import UnitStep

__all__ = ["Armijo", "ExactLineSearch", "Goldstein", "MoreThuente", "StrongWolfe", "UnitStep"]
