"""Which combinations of loss, penalty and solver the suites expect to work."""


def compatible(solver, loss, penalty) -> bool:
    """Return whether the declarations of the three agree; the loop has to raise exactly where they do not."""
    smooth, rest = penalty.split()
    takes = solver.handles_smooth  # None: any
    return (
        solver.needs <= loss.capabilities
        and (smooth is None or takes is None or bool(takes & smooth.kinds))
        and (rest is None or bool(solver.handles_rest & rest.kinds))
    )
