"""The part of `crfkit demo` on structure: which pixels of scikit-learn's digits depend on each other."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import typer

STRENGTH = 100.0
SIDE = 8  # digits are 8 × 8


def show(folder: Path) -> None:
    """Learn the graph of the dark pixels of 1,797 handwritten digits, without telling which pixels are neighbours."""
    import warnings

    import numpy as np
    from sklearn.datasets import load_digits

    from crfkit.estimators.structure import StructureLearner

    Y = (load_digits().data >= 8).astype(int)
    p = Y.shape[1]
    typer.echo(
        f"\nstructure: {p} pixels of {len(Y)} handwritten digits (scikit-learn's), {p * (p - 1) // 2} possible edges"
    )
    begin = time.perf_counter()
    learner = StructureLearner(edge_strength=STRENGTH)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pixels that are never dark
        learner.fit(Y)
    learner.save(folder / "structure.crf")
    typer.echo(
        f"{len(learner.edges_)} edges in {time.perf_counter() - begin:.2f} s, learnt without the positions of the "
        "pixels:"
    )
    places = np.stack(np.divmod(np.arange(p), SIDE), axis=1)
    far = np.array([np.abs(places[i] - places[j]).max() for i, j, _ in learner.edges_])
    sizes = np.array([weight for _, _, weight in learner.edges_])
    for title, chosen in (
        ("touch each other", far == 1),
        ("are 2 pixels apart", far == 2),
        ("are further away", far > 2),
    ):
        size = np.abs(sizes[chosen]).mean() if chosen.any() else 0.0
        typer.echo(f"{chosen.sum():5d} edges {title}, couplings of {size:.2f} on average")
    typer.echo(_draw(learner.edges_))


def _draw(edges: list[Any]) -> str:
    """Return a drawing of the pixels; a line joins neighbours whose edge is in the stronger half of all edges."""
    strong = {(i, j) for i, j, weight in edges[: len(edges) // 2] if weight > 0}
    lines = []
    for row in range(SIDE):
        first = row * SIDE
        lines.append(
            "".join("o" + ("──" if (i, i + 1) in strong else "  ") for i in range(first, first + SIDE - 1)) + "o"
        )
        if row < SIDE - 1:
            lines.append(
                "".join(("│" if (i, i + SIDE) in strong else " ") + "  " for i in range(first, first + SIDE)).rstrip()
            )
    return "\n".join(lines)
