"""The line searches of CRFsuite's L-BFGS by name, and what the last one found, for the log."""

from __future__ import annotations

from dataclasses import dataclass, field

from crfkit.solvers.parts.line_searches.more_thuente import MoreThuente
from crfkit.solvers.parts.line_searches.trial import LineSearch, LineSearchResult, Phi, Reason, Trial

SHORTER, LONGER = 0.5, 2.1


@dataclass(frozen=True)
class Backtracking:
    """Halve the step while the objective does not fall enough, lengthen it while the slope stays too steep.

    Parameters
    ----------
    strong : whether the slope may not be too steep upwards either (the strong Wolfe condition).
    """

    strong: bool = False
    max_trials: int = 20
    c1: float = 1e-4
    c2: float = 0.9

    def search(self, phi: Phi, start: Trial, step: float) -> LineSearchResult:
        """Search from `start` (step 0), trying `step` first."""
        if not start.slope < 0:
            return LineSearchResult(start, Reason.NOT_DESCENT, 0)
        for trials in range(1, self.max_trials + 1):
            trial = phi(step)
            if not trial.finite or trial.value > start.value + self.c1 * step * start.slope:
                step *= SHORTER
            elif trial.slope < self.c2 * start.slope:
                step *= LONGER
            elif self.strong and trial.slope > -self.c2 * start.slope:
                step *= SHORTER
            else:
                return LineSearchResult(trial, Reason.STRONG_WOLFE, trials)
        return LineSearchResult(start, Reason.NO_DECREASE, self.max_trials)


@dataclass
class Watch:
    """Remember how the last search went."""

    step: float = 0.0
    trials: int = 0


@dataclass(frozen=True)
class WatchedSearch:
    """A line search whose step and number of trials are noted."""

    inner: LineSearch
    watch: Watch = field(default_factory=Watch)

    def search(self, phi: Phi, start: Trial, step: float) -> LineSearchResult:
        found = self.inner.search(phi, start, step)
        self.watch.step, self.watch.trials = found.trial.step, found.trials
        return found


def make_search(name: str, max_trials: int) -> LineSearch:
    """Return the line search that CRFsuite calls by this name."""
    if name == "MoreThuente":
        return MoreThuente(max_trials=max_trials)
    return Backtracking(name == "StrongBacktracking", max_trials)
