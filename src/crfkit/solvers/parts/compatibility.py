"""Whether a loss, a penalty and a solver can work together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from crfkit.errors import CapabilityError
from crfkit.protocols import Loss, Penalty, Solver

NO_OTHERS: Mapping[str, Any] = MappingProxyType({})


def check_compatible(solver: Solver, loss: Loss, penalty: Penalty, registry: Mapping[str, Any] = NO_OTHERS) -> None:
    """Raise before the first evaluation if the three cannot work together; name those of the registry that can."""

    def which(able: Callable[[Any], bool]) -> str:
        names = [name for name, other in registry.items() if able(other)]
        return f"; these can: {', '.join(names)}" if names else ""

    missing = sorted(solver.needs - loss.capabilities)
    if missing:
        raise CapabilityError(
            f"the solver {solver.name} needs {', '.join(missing)}, which the {loss.name} does not have; "
            f"it has {', '.join(sorted(loss.capabilities))}" + which(lambda other: other.needs <= loss.capabilities)
        )
    smooth, rest = penalty.split()
    handles_smooth = solver.handles_smooth
    takes_none = handles_smooth == frozenset() and not solver.handles_nonsmooth
    ignored = smooth is not None and handles_smooth is not None and not handles_smooth & smooth.kinds
    if ignored or (takes_none and rest is not None):
        taken = " and ".join(sorted(handles_smooth or ())) or "none"
        raise CapabilityError(f"the solver {solver.name} does not support {penalty.name}; supported: {taken}")
    if rest is None:
        return
    kinds = rest.kinds
    if not solver.handles_nonsmooth & kinds:
        limit = (
            f"penalties of kind {', '.join(sorted(solver.handles_nonsmooth))}"
            if solver.handles_nonsmooth
            else "smooth objectives"
        )
        raise CapabilityError(
            f"the solver {solver.name} minimises {limit} only; {penalty.name} is not smooth"
            + which(lambda other: bool(other.handles_nonsmooth & kinds) and other.needs <= loss.capabilities)
        )
