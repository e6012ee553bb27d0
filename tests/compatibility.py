"""Which solvers take which losses and penalties, from what they declare: what the loop must agree with."""

from __future__ import annotations


def compatible(solver, loss, penalty) -> bool:
    smooth, rest = penalty.bind(loss).split()
    takes = solver.handles_smooth
    return (
        solver.needs <= loss.capabilities
        and (smooth is None or takes is None or bool(takes & smooth.kinds))
        and (rest is None or bool(solver.handles_nonsmooth & rest.kinds))
    )
