"""The lines that estimators print when `verbose` is set: for each strength of a path, for each random half."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crfkit.training.path import PathPoint


def print_point(point: PathPoint[Any]) -> None:
    """Print one strength of a path."""
    size = f"weights {point.nonzeros}" if point.n_edges is None else f"edges {point.n_edges}"
    scored = "" if point.score is None else f"  score {point.score:.5f}"
    print(f"penalty λ {point.strength:.6g}  {size}{scored}", flush=True)


def print_half(done: int, of: int) -> None:
    """Print how many random halves of stability selection are done."""
    print(f"random half {done} of {of}", flush=True)
