"""Seconds of StructureLearner's default on large binary tables.

    python benchmarks/structure.py [--sizes 300x10000,1000x1000] [--threads N] [--output FILE]

Random fields of 1.5 edges per column with couplings of ±.25 to .6, drawn by a Gibbs sampler. Prints wall and CPU
seconds of `fit`, the numbers of edges and how many are right, and the largest difference of a weight from a refit to
the optimum. On a busy machine CPU seconds say more.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "experiments" / "structure"))

from common import write_results
from fields import gibbs

from crfkit import StructureLearner
from crfkit.structure.losses.pseudo import StructurePseudoLikelihood
from crfkit.structure.observations import Observations


def table(p: int, n: int, seed: int = 5) -> tuple[Any, set[tuple[int, int]]]:
    rng = np.random.default_rng(seed)
    rows, columns = np.triu_indices(p, 1)
    chosen = np.sort(rng.choice(len(rows), round(1.5 * p), replace=False))
    edges = [(int(rows[k]), int(columns[k])) for k in chosen]
    couplings = rng.uniform(0.25, 0.6, len(edges)) * rng.choice([-1.0, 1.0], len(edges))
    return gibbs(n, p, edges, couplings, rng, sweeps=40), set(edges)


def slope(learner: StructureLearner, Y: Any) -> float:
    """The largest step that Newton's method would still make at the weights of the model, by pseudo-likelihood."""
    p = Y.shape[1]
    ends = learner.model_.encoder.structure.edges
    loss = StructurePseudoLikelihood(
        Observations.of(Y, 2, ising=True), None, ends[:, 0].astype(np.int64) * p + ends[:, 1]
    )
    w = np.asarray(learner.model_.w)
    penalty = np.where(loss.block_index < 0, 1.0, 1e-2)
    at = loss.at(w)
    step = np.linalg.solve(at.hessian() + np.diag(penalty), at.grad + penalty * w)
    return float(np.abs(step).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="300x10000,1000x1000")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {}
    for size in options.sizes.split(","):
        p, n = (int(number) for number in size.split("x"))
        Y, true = table(p, n)
        wall, cpu = time.perf_counter(), time.process_time()
        learner = StructureLearner(n_threads=options.threads).fit(Y)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        edges = {(i, j) for i, j, _ in learner.edges_}
        found[size] = {
            "wall": wall,
            "cpu": cpu,
            "strengths": len(learner.strength_path_),
            "true": len(true),
            "edges": len(edges),
            "right": len(edges & true),
            "step": slope(learner, Y),
        }
        print(size, json.dumps(found[size]), flush=True)
    if options.output is not None:
        write_results(options.output, found)


if __name__ == "__main__":
    main()
