"""Runs that end as soon as they have shown what a test asserts: that a solver comes near enough to the optimum."""

from __future__ import annotations

from crfkit.errors import StopTraining
from crfkit.result import Result


def reach(solver, loss, penalty, start, best: float, gap: float, below: float = 1e-8) -> Result:
    """Run the solver until its value is within a gap of the best one, and require that it gets there.

    A value that is lower than the best by more than `below` is no success either: then one of both is wrong. Gaps are
    relative to the best value, or absolute if that is smaller than 1.
    """
    scale = max(1.0, abs(best))

    def near(iteration):
        if iteration.row.value - best < gap * scale:
            raise StopTraining

    result = solver.minimize(loss, penalty, start, [near])
    assert -below * scale < result.value - best < gap * scale, result
    known = result.loss if result.loss is not None else loss
    value = known.at(result.w).value + penalty.bind(known).value(result.w)
    assert abs(result.value - value) < 1e-9 * abs(value), result
    return result
