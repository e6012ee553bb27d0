"""What the options of `crfkit segment train` mean."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from crfkit.errors import ParameterError

if TYPE_CHECKING:
    from crfkit.protocols import Penalty


def parse_size(text: str | None) -> tuple[int, int] | None:
    """Return (height, width) from a text such as 80x100."""
    if text is None:
        return None
    found = re.fullmatch(r"([1-9]\d{0,4})[x×]([1-9]\d{0,4})", text.strip().lower())
    if not found:
        raise ParameterError(f"--size must be HEIGHTxWIDTH such as 80x100, not {text!r}")
    return int(found[1]), int(found[2])


def parse_strengths(text: str | None) -> list[float] | None:
    """Return the strengths that --strengths lists."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(f"--strengths must be numbers separated by commas, not {text!r}") from None


def make_solver(name: str, mu: float | None, tolerance: float, max_iterations: int | None, seed: int) -> Any:
    """Return the name of the solver, or the solver with its smoothing width μ if that is given."""
    from dataclasses import fields, replace

    from crfkit.solvers import SOLVERS
    from crfkit.training.options import SolverOptions

    if mu is None or name not in SOLVERS:
        return name
    if "mu" not in {item.name for item in fields(SOLVERS[name])}:
        able = [other for other, kind in SOLVERS.items() if "mu" in {item.name for item in fields(kind)}]
        raise ParameterError(
            f"the solver {name} has no --mu; solvers that smooth the penalty have it: {', '.join(able)}"
        )
    ready = SolverOptions(None, name, tolerance, max_iterations, None, seed).make_solver()
    return replace(ready, mu=mu)


def make_penalty(l1: float | None, l2: float | None, edge_l2: float | None) -> Penalty | None:
    """Return one penalty for all weights or, with `edge_l2`, one for nodes and one for edges; None is the default."""
    from crfkit.cli.options import parsing as options
    from crfkit.penalties import L2, Blockwise

    penalty = options.make_penalty(l1, l2)
    if edge_l2 is None:
        return penalty
    return Blockwise({"node": L2(1.0) if penalty is None else penalty, "edge": L2(edge_l2)})
