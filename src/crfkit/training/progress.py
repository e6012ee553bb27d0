"""The lines that estimators print when `verbose` is set: per iteration, strength of a path and random half."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crfkit.solvers.parts.loop import Iteration
    from crfkit.training.path import PathPoint


def print_row(iteration: Iteration) -> None:
    """Print a line about an iteration of training."""
    row = iteration.row
    extra = "".join(f"  {name} {value:.5f}" for name, value in row.extra.items())
    print(
        f"iteration {row.iteration:4d}  objective {row.value:.4f}  gradient {row.optimality:.4g}  "
        f"{row.seconds:.2f} s{extra}",
        flush=True,
    )


def print_point(point: PathPoint[object]) -> None:
    """Print one strength of a path."""
    size = f"weights {point.nonzeros}" if point.n_edges is None else f"edges {point.n_edges}"
    scored = "" if point.score is None else f"  score {point.score:.5f}"
    print(f"penalty λ {point.strength:.6g}  {size}{scored}", flush=True)


def print_half(done: int, of: int) -> None:
    """Print how many random halves of stability selection are done."""
    print(f"random half {done} of {of}", flush=True)
