"""Log-likelihood of held-out rows of nltcs and plants: weights by pseudo-likelihood against weights by likelihood.

The edges are those of the default rule on the training rows; only their weights differ. Scores are exact where the
graph allows it, else estimates by annealed particles with their standard errors. "bound" is what tree-reweighted
inference says of the pseudo-likelihood weights.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from crfkit import StructureLearner

REFITS = {"pl": "pseudo-likelihood", "auto": "likelihood"}


def rows(folder: Path, name: str, part: str = "test") -> dict[str, Any]:
    """Return the scores of a table; `part` is "test" or "valid", the rows that are scored."""
    train, held_out = read(folder, name, "train"), read(folder, name, part)
    found: dict[str, Any] = {
        "rows": len(train),
        "variables": train.shape[1],
        "part": part,
        "independent": independent(train, held_out),
    }
    for refit, what in REFITS.items():
        begin = time.process_time()
        learner = StructureLearner(refit=refit, n_threads=1).fit(train)
        seconds = time.process_time() - begin
        score = learner.score(held_out)
        marginals = np.array([p[0, -1] for p in learner.predict_marginals()])
        found[what] = {
            "by": (learner.refit_ or {}).get("by"),
            "edges": len(learner.edges_),
            "score": float(score),
            "error": learner.score_error_,
            "mismatch": float(np.abs(marginals - train.mean(axis=0)).max()),
            "seconds": seconds,
        }
        if refit == "pl" and learner.score_error_ is not None:
            found["bound"] = float(learner.set_params(inference="trw").score(held_out))
    return found


def read(folder: Path, name: str, part: str) -> np.ndarray:
    return np.loadtxt(folder / name / f"{name}.{part}.data.gz", delimiter=",", dtype=np.int32)


def independent(train: np.ndarray, test: np.ndarray) -> float:
    q = (train.sum(axis=0) + 0.5) / (len(train) + 1)
    return float((test * np.log(q) + (1 - test) * np.log(1 - q)).sum(axis=1).mean())
