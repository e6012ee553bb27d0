"""The choice of the SIFT cell, which all trials share: on the reserved images alone, before any trial.

The reserved images are divided into three folds by a seed. Logistic regression block by block (the field without edges)
is trained on two of them with each strength of L1 and tested on the third; the cell with the fewest wrong blocks at its
best strength is chosen.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from protocol import FEATURES, Pair, grids, logistic_regression, read_pair, reserved

from crfkit.penalties import L1

CELLS = (4, 6, 8)
STRENGTHS = (300.0, 100.0, 30.0)
FOLDS = 3


def choose(pairs: list[Pair], cache: Path, cells: tuple[int, ...] = CELLS, count: int | None = None) -> dict[str, Any]:
    """Return the errors of each cell by strength and fold, and the chosen cell."""
    begin = time.process_time()
    those = reserved(pairs)[:count]
    folds = np.array_split(np.random.default_rng(0).permutation(len(those)), FOLDS)
    errors: dict[str, Any] = {}
    for cell in cells:
        read = [read_pair(pair, replace(FEATURES, sift_cell=cell), cache) for pair in those]
        by_fold = []
        for fold in folds:
            rest = [k for k in range(len(those)) if k not in set(fold.tolist())]
            rows = np.concatenate([read[k][0].reshape(-1, len(FEATURES.names)) for k in rest])
            mean, scale = rows.mean(axis=0), rows.std(axis=0)
            scale[scale == 0] = 1.0
            sets = [
                grids([(read[k][0] - mean) / scale for k in part], [read[k][1] for k in part], False)
                for part in (rest, fold)
            ]
            found, _ = logistic_regression(sets, [L1(s) for s in STRENGTHS])
            by_fold.append([row["errors"][0] for row in found])
        errors[str(cell)] = {f"{s:g}": [fold[k] for fold in by_fold] for k, s in enumerate(STRENGTHS)}
        print(f"  cell {cell}: {errors[str(cell)]}", flush=True)
    least = {cell: min(float(np.mean(of)) for of in those.values()) for cell, those in errors.items()}
    return {
        "images": len(those),
        "folds": FOLDS,
        "errors": errors,
        "least": least,
        "chosen": int(min(least, key=lambda cell: least[cell])),
        "cpu_seconds": time.process_time() - begin,
    }
