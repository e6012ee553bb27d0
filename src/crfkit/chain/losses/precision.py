"""Losses that evaluate in single floats until a solver sees rounding errors, and then in doubles."""

from __future__ import annotations

from abc import abstractmethod

from crfkit.errors import ParameterError
from crfkit.protocols import Capability
from crfkit.protocols.field_loss import FieldLoss
from crfkit.warn import warn_caller

PRECISIONS = ("auto", "double", "single")
SINGLE, DOUBLE = 2.0**-24, 2.0**-53  # relative rounding errors
TRUSTED = 1e-6  # of the number of positions: measured errors of gradients are a tenth of it


def check_precision(precision: str) -> str:
    """Return the precision, which must be one of PRECISIONS."""
    if precision not in PRECISIONS:
        raise ParameterError(f"precision must be 'auto', 'double' or 'single', not {precision!r}")
    return precision


class RoundedLoss(FieldLoss):
    """A loss that computes scores, messages and gradients in the precision that it is given.

    With "auto" it computes in single precision until a solver sets `tolerance` to DOUBLE. Values, log Z and sums over
    the data are doubles always.
    """

    @property
    @abstractmethod
    def n_terms(self) -> float:
        """The number of positions."""

    def set_precision(self, precision: str, possible: bool = True) -> None:
        """Set the precision; without `possible`, it is double."""
        self.precision = check_precision(precision)
        self._tolerance = self.finest = DOUBLE
        if precision != "double" and possible:
            self._tolerance = SINGLE
            self.finest = SINGLE if precision == "single" else DOUBLE
            self.capabilities = self.capabilities | {Capability.PRECISION}

    @property
    def tolerance(self) -> float:
        """The relative rounding error of evaluations: SINGLE or DOUBLE; a smaller one than SINGLE is DOUBLE."""
        return self._tolerance

    @tolerance.setter
    def tolerance(self, tolerance: float) -> None:
        self._tolerance = SINGLE if tolerance >= SINGLE else DOUBLE

    @property
    def rounding(self) -> float:
        """The relative rounding error of values: that of doubles, unless they must be single floats."""
        return 2.0 * self.finest

    @property
    def trusted(self) -> float:
        """The length of the gradient above which rounding errors of single precision do not matter."""
        return TRUSTED * self.n_terms

    @property
    def used(self) -> str:
        """The precision that evaluations have now, and had before if that was another."""
        if Capability.PRECISION not in self.capabilities:
            return "double"
        return "single" if self.tolerance == SINGLE else "single, then double"

    def fall_back(self) -> None:
        """Evaluate in double precision from now on: single floats cannot hold the scores."""
        if self.finest == SINGLE:
            warn_caller(
                "single precision cannot hold these weights; training continues in double precision", RuntimeWarning
            )
        self._tolerance = self.finest = DOUBLE
