"""The part of `crfkit demo` on structure: which pixels of scikit-learn's digits depend on each other."""

from __future__ import annotations

import time
from itertools import combinations
from pathlib import Path

from crfkit._values import Entries
from crfkit.cli.demo.screen import Screen, can_show

STRENGTH = 200.0
SIDE = 8  # digits are 8 × 8
RARE = 0.02  # pixels that are dark or light less often are omitted
SHOWN = 50  # strongest edges


def run(folder: Path, screen: Screen) -> Entries:
    """Learn the graph of the dark pixels of 1,797 digits, without telling which are neighbours; return the figures."""
    import numpy as np
    from sklearn.datasets import load_digits

    from crfkit.structure.estimator.structure_learner import StructureLearner

    Y = (load_digits().data >= 8).astype(int)
    used = np.flatnonzero((Y.mean(axis=0) > RARE) & (Y.mean(axis=0) < 1 - RARE))
    screen.step(5, "Which things depend on each other?")
    screen.say(
        f"{len(Y):,} handwritten digits, as a table: a row for each digit, a column for each of {len(used)} pixels, "
        "dark or light. The table does not say where a pixel is. Which pixels depend on each other?"
    )
    begin = time.perf_counter()
    with screen.working("learning which pixels depend on each other"):
        learner = StructureLearner(edge_strength=STRENGTH).fit(Y[:, used])
    seconds = time.perf_counter() - begin
    learner.save(folder / "structure.crf")

    pixels = [(int(used[i]), int(used[j]), weight) for i, j, weight in learner.edges_]
    n_pairs = len(used) * (len(used) - 1) // 2
    touching = sum(_touch(i, j) for i, j in combinations(used.tolist(), 2))
    near = sum(_touch(i, j) for i, j, _ in pixels[:SHOWN])
    chance = SHOWN * touching / n_pairs
    screen.lines(_draw(pixels[:SHOWN], set(used.tolist())))
    screen.say(
        f"Of the {SHOWN} strongest of {len(pixels)} edges, {near} join pixels that touch each other; by chance it "
        f"would be {chance:.0f}. The picture puts the pixels in their places, and the lines are edges between "
        "neighbours. The learner found them from the table alone."
    )
    return {
        "pairs": n_pairs,
        "edges": len(pixels),
        "shown": SHOWN,
        "touching": near,
        "touching_by_chance": chance,
        "seconds": seconds,
    }


def _touch(i: int, j: int) -> bool:
    return max(abs(i // SIDE - j // SIDE), abs(i % SIDE - j % SIDE)) == 1


def _draw(edges: list[tuple[int, int, float]], used: set[int]) -> str:
    """Return the pixels in their places, with lines between neighbours that an edge joins."""
    joined = {(i, j) for i, j, weight in edges if weight > 0}
    across, down, dot = ("──", "│", "·") if can_show("─│·") else ("--", "|", ".")
    lines = []
    for row in range(SIDE):
        here = range(row * SIDE, (row + 1) * SIDE)
        lines.append("".join(("o" if i in used else dot) + (across if (i, i + 1) in joined else "  ") for i in here))
        if row < SIDE - 1:
            lines.append("".join((down if (i, i + SIDE) in joined else " ") + "  " for i in here))
    return "\n".join(line.rstrip() for line in lines)
