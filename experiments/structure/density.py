"""Log-likelihood of held-out rows of nltcs and plants: weights by pseudo-likelihood against weights by likelihood.

    python experiments/structure/density.py --data DIR [--part valid]     # DIR/nltcs, DIR/plants: the density data sets

The edges are those of the default rule on the training rows; only their weights differ. Scores are exact where the
graph allows it, else estimates by annealed particles with their standard errors. "bound" is what tree-reweighted
inference says of the pseudo-likelihood weights.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

from crfkit import StructureLearner


def read(folder: Path, name: str, part: str) -> np.ndarray:
    return np.loadtxt(folder / name / f"{name}.{part}.data.gz", delimiter=",", dtype=np.int32)


def independent(train: np.ndarray, test: np.ndarray) -> float:
    q = (train.sum(axis=0) + 0.5) / (len(train) + 1)
    return float((test * np.log(q) + (1 - test) * np.log(1 - q)).sum(axis=1).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", default=["nltcs", "plants"])
    parser.add_argument("--part", choices=("valid", "test"), default="test", help="the rows that are scored")
    options = parser.parse_args()
    print(
        f"| table | weights | edges | {options.part} log-likelihood | standard error | largest marginal error | CPU s |"
    )
    print("|---|---|---|---|---|---|---|")
    for name in options.tables:
        train, test = read(options.data, name, "train"), read(options.data, name, options.part)
        print(f"| {name} | independent columns | 0 | {independent(train, test):.3f} | exact | | |", flush=True)
        for refit in ("pl", "auto"):
            begin = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                learner = StructureLearner(refit=refit).fit(train)
                seconds = time.process_time() - begin
                score = learner.score(test)
                marginals = np.array([p[0, -1] for p in learner.predict_marginals()])
            error = "exact" if learner.score_error_ is None else f"{learner.score_error_:.3f}"
            off = np.abs(marginals - train.mean(axis=0)).max()
            by = (learner.refit_ or {}).get("by")
            print(
                f"| {name} | {by} | {len(learner.edges_)} | {score:.3f} | {error} | {off:.3f} | {seconds:.0f} |",
                flush=True,
            )
            if refit == "pl" and error != "exact":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    bound = learner.set_params(inference="trw").score(test)
                print(f"| {name} | {by}, bound by trw | {len(learner.edges_)} | {bound:.3f} | | | |", flush=True)


if __name__ == "__main__":
    main()
