"""Robust CRFs on grids: the protocol of Song et al. (2015) on two folders of images and masks.

    python experiments/robust_crf/run.py IMAGES MASKS --parts paper [--trials 0-2] [--cells bp,pl]

A trial draws 50 images, resizes them to 80×100, takes blocks of 2×2 and divides them 70/15/15. Node features are
[1, h], edge features [1, |h_i − h_j|], standardised on the training images.

    features     chooses the SIFT cell on the reserved images (features.py)
    paper        the paper's nine cells as the paper describes them (paper.py)
    practice     what practice recommends: the tree-reweighted bound and others (practice.py)
    equivalence  ISTA, FISTA, OGM and OWL-QN on one convex objective until nothing changes (studies.py)
    noise        as many features of noise as real ones: which of them L1 keeps (studies.py)
    figures      draws the figures from the results (figures.py)

A unit (a trial of a part, or an inference of the paper's part) that is in results.json is not computed again unless
--again is given. Everything runs in one thread, and times are its CPU seconds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))  # results_file

import features
import figures
import paper
import practice
import protocol
import studies
from protocol import Trial
from results_file import read, write
from threadpoolctl import threadpool_limits

from crfkit._threads import limited_threads
from crfkit.files.images import pair_folders

HERE = Path(__file__).resolve().parent
PARTS = ("features", "paper", "practice", "equivalence", "noise", "figures")
NOISE_TRIALS = "100-109"  # drawn for the study of noise alone, with strengths and rule fixed before


def numbers(text: str) -> list[int]:
    """Return the numbers of a text: "0-2,5" is 0, 1, 2, 5."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


class Results:
    """The results file, saved after every unit."""

    def __init__(self, folder: Path, again: bool) -> None:
        self.file, self.again = folder / "results.json", again
        self.values: dict[str, Any] = read(self.file)

    def save(self) -> None:
        write(self.file, self.values)

    def section(self, part: str, seed: int) -> dict[str, Any]:
        """Return where the units of a trial are kept; empty if they are to be computed again."""
        trials = self.values.setdefault(part, {})
        if self.again or str(seed) not in trials:
            trials[str(seed)] = {}
        section: dict[str, Any] = trials[str(seed)]
        return section


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path)
    parser.add_argument("masks", type=Path)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--trials", default="0-2", help="of the parts paper and practice")
    parser.add_argument("--noise-trials", default=NOISE_TRIALS)
    parser.add_argument("--cells", default=",".join(paper.INFERENCES), help="inferences of the part paper")
    parser.add_argument("--short", action="store_true", help="fewer λ, μ, images and iterations: for a quick look")
    parser.add_argument("--again", action="store_true", help="compute units that are there already")
    parser.add_argument("--output", type=Path, default=HERE)
    parser.add_argument("--cache", type=Path, default=HERE / "cache")
    options = parser.parse_args()
    if unknown := set(options.parts.split(",")) - set(PARTS):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}; the parts are {', '.join(PARTS)}")
    pairs = pair_folders(options.images, options.masks)
    results = Results(options.output, options.again)
    with limited_threads(1), threadpool_limits(1):
        for part in options.parts.split(","):
            print(part, flush=True)
            PART[part](pairs, options, results)


def _parts(options: Any) -> tuple[int, ...]:
    """Return how many images train, validate and test."""
    return (10, *protocol.PARTS[1:]) if options.short else protocol.PARTS


def run_features(pairs: Any, options: Any, results: Results) -> None:
    if results.again or "features" not in results.values:
        results.values["features"] = features.choose(pairs, options.cache, count=18 if options.short else None)
        results.save()


def run_paper(pairs: Any, options: Any, results: Results) -> None:
    grid: dict[str, Any] = {"lambdas": (10.0, 1.0), "mus": (0.1,), "most": 40} if options.short else {}
    inferences = options.cells.split(",")
    for seed in numbers(options.trials):
        section = results.section("paper", seed)
        if all(f"{inference}, {solver}" in section for inference in inferences for solver in paper.SOLVERS):
            continue
        print(f" trial {seed}", flush=True)
        trial = Trial(pairs, seed, options.cache, parts=_parts(options))
        section["background"] = {name: float(data.labels.mean()) for name, data in trial.named()}
        paper.run(trial, section, results.save, inferences, curves=seed == 0, **grid)


def run_practice(pairs: Any, options: Any, results: Results) -> None:
    for seed in numbers(options.trials):
        section = results.section("practice", seed)
        if not section:
            print(f" trial {seed}", flush=True)
            section |= practice.rows(Trial(pairs, seed, options.cache, parts=_parts(options)), options.short)
            results.save()


def run_equivalence(pairs: Any, options: Any, results: Results) -> None:
    if results.again or "equivalence" not in results.values:
        trial = Trial(pairs, 0, options.cache, parts=(2, 1, 1) if options.short else (5, 1, 1))
        results.values["equivalence"] = {"images": trial.sets[0].graph.n_graphs, "rows": studies.equivalence(trial)}
        results.save()


def run_noise(pairs: Any, options: Any, results: Results) -> None:
    for seed in numbers(options.noise_trials):
        section = results.section("noise", seed)
        if not section:
            print(f" trial {seed}", flush=True)
            sizes, kinds = _parts(options), (0, studies.REAL)
            both = [Trial(pairs, seed, options.cache, noise, sizes, centred=True) for noise in kinds]
            section |= studies.noise(*both)
            results.save()


def run_figures(pairs: Any, options: Any, results: Results) -> None:
    figures.draw(results.values, pairs, options.cache, options.output)


PART: dict[str, Any] = {
    "features": run_features,
    "paper": run_paper,
    "practice": run_practice,
    "equivalence": run_equivalence,
    "noise": run_noise,
    "figures": run_figures,
}

if __name__ == "__main__":
    main()
