"""No search at all: the step as it is given. Pure Newton steps are of length 1."""

from __future__ import annotations

from dataclasses import dataclass

from crfkit.solvers.parts.line_searches.trial import LineSearchResult, Phi, Reason, Trial


@dataclass(frozen=True)
class UnitStep:
    def search(self, phi: Phi, start: Trial, step: float) -> LineSearchResult:
        """Take `step`, unless the function is not finite there; it may rise."""
        if not start.slope < 0:
            return LineSearchResult(start, Reason.NOT_DESCENT, 0)
        trial = phi(step)
        if not trial.finite:
            return LineSearchResult(start, Reason.NO_DECREASE, 1)
        return LineSearchResult(trial, Reason.UNTESTED, 1)
