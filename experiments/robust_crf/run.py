"""Robust CRFs on grids: the protocol of Song et al. (2015), Tables I and II, on two folders of images and masks.

    python experiments/robust_crf/run.py IMAGES MASKS [--trials 0,1,2] [--inference bp,mean-field,pl,trw]
        [--solvers ista,fista,ogm,owlqn] [--strengths 300,30] [--output DIR]

A trial draws 50 images, resizes them to 80×100, takes blocks of 2×2 and divides them 70/15/15. Node features are
[1, h], edge features [1, |h_i − h_j|], standardised on the training images. Every cell is trained from 0 with each
strength of L1, at most 400 iterations or until the objective changes by less than 10⁻⁴; the strength with the fewest
wrong blocks of the validation images is kept. Beside them: logistic regression, the same field without edges.
Writes results.json and results.md, which are merged with what is there.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from crfkit.data.graph import Graph
from crfkit.data.graphs import GraphData
from crfkit.estimators.segmenter_blocks import block_labels
from crfkit.features.image import ImageFeatures
from crfkit.fields.graph import GraphField, tied_field
from crfkit.inference.engines import make_engine
from crfkit.losses import GraphLikelihood, PseudoLikelihood
from crfkit.penalties import L1, L2
from crfkit.readers.images import pair_folders, read_image, read_mask
from crfkit.solvers import SuccessiveChanges, make_solver

HERE = Path(__file__).resolve().parent
FEATURES = ImageFeatures(size=(80, 100))
PARTS = (35, 7, 8)  # training, validation, test
SWEEPS = {"tolerance": 1e-4, "max_iterations": 50}  # of inference at a step of training, from where it was


class Trial:
    """Fifty images, divided."""

    def __init__(self, pairs: list[tuple[Path, Path]], seed: int, cache: Path) -> None:
        chosen = np.random.default_rng(seed).permutation(len(pairs))[: sum(PARTS)]
        images, labels = [], []
        for k in chosen:
            image, mask = (read(path, path.name) for read, path in zip((read_image, _mask), pairs[k], strict=True))
            images.append(np.asarray(FEATURES.compute_cached(image, cache), dtype=np.float64))
            labels.append((block_labels(mask, np.unique(mask), FEATURES) != 0).astype(int))
        rows = np.concatenate([x.reshape(-1, x.shape[-1]) for x in images[: PARTS[0]]])
        scale = rows.std(axis=0)
        standard = [(x - rows.mean(axis=0)) / np.where(scale > 0, scale, 1.0) for x in images]
        bounds = np.cumsum([0, *PARTS])
        self.sets = [_data(standard[a:b], labels[a:b], True) for a, b in pairwise(bounds)]
        self.alone = [_data(standard[a:b], labels[a:b], False) for a, b in pairwise(bounds)]

    def cell(self, inference: str, solver: str, strengths: list[float]) -> dict[str, Any]:
        """The best strength of one cell."""
        train, validation, test = self.sets
        field = tied_field(train, 2, "ising", "ising")
        tries = []
        for strength in strengths:
            loss: Any = (
                PseudoLikelihood(train, field)
                if inference == "pl"
                else GraphLikelihood(train, field, make_engine(inference, **SWEEPS))
            )
            chosen = make_solver(solver, stopping=SuccessiveChanges(1e-4, 1), max_iterations=400)
            result = chosen.minimize(loss, L1(strength), np.zeros(field.size))
            engine = "bp" if inference == "pl" else inference
            tries.append(
                {
                    "strength": strength,
                    "validation": wrong(field, validation, result.w, engine),
                    "test": wrong(field, test, result.w, engine),
                    "train": wrong(field, train, result.w, engine),
                    "seconds": result.seconds,
                    "iterations": result.iterations,
                    "evaluations": result.evaluations,
                    "objective": result.value,
                    "status": result.status.name,
                    "unary": int((result.w[field.layout["node"]] != 0).sum()),
                    "pairwise": int((result.w[field.layout["edge"]] != 0).sum()),
                }
            )
        best = min(tries, key=lambda row: row["validation"])
        return {**best, "tries": tries}

    def logistic_regression(self) -> dict[str, Any]:
        train, _, test = self.alone
        field = tied_field(train, 2, "ising", "ising")
        begin = time.perf_counter()
        result = make_solver("lbfgs", max_iterations=300).minimize(
            PseudoLikelihood(train, field), L2(10.0), np.zeros(field.size)
        )
        taken = time.perf_counter() - begin
        return {"test": wrong(field, test, result.w, "tree"), "seconds": taken, "background": float(test.labels.mean())}


def _mask(path: Path, name: str) -> Any:
    return read_mask(path, name, False)


def _data(images: list[Any], labels: list[Any], edges: bool) -> GraphData:
    parts = []
    for x, y in zip(images, labels, strict=True):
        h = x.reshape(-1, x.shape[-1])
        graph = Graph.grid(x.shape[:2]) if edges else Graph(len(h), [])
        i, j = graph.edges.T
        parts.append(GraphData.make(graph, h, np.abs(h[i] - h[j]), y.ravel()))
    return GraphData.join(parts)


def wrong(field: GraphField, data: GraphData, w: Any, engine: str) -> float:
    """The share of blocks whose most probable label is not theirs."""
    options = {"tolerance": 1e-4, "max_iterations": 200} if engine != "tree" else {}
    nodes = make_engine(engine, **options).run(field.potentials(data, w)).nodes
    return float(((nodes[:, 1] > 0.5) != data.labels).mean())


def table(results: dict[str, Any]) -> str:
    trials = sorted(results, key=int)
    cells = sorted({cell for trial in trials for cell in results[trial]})
    lines = ["| | trials | test error, % | seconds | chosen strengths |", "|---|---|---|---|---|"]
    for cell in cells:
        rows = [results[trial][cell] for trial in trials if cell in results[trial]]
        errors, seconds = np.array([100 * row["test"] for row in rows]), [row["seconds"] for row in rows]
        strengths = " ".join(f"{row['strength']:g}" for row in rows if "strength" in row)
        line = f"| {cell} | {len(rows)} | {errors.mean():.2f} (± {errors.std():.2f}) | {np.mean(seconds):.1f} "
        lines.append(line + f"(at most {max(seconds):.1f}) | {strengths} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path)
    parser.add_argument("masks", type=Path)
    parser.add_argument("--trials", default="0,1,2")
    parser.add_argument("--inference", default="bp,mean-field,pl,trw")
    parser.add_argument("--solvers", default="ista,fista,ogm,owlqn")
    parser.add_argument("--strengths", default="300,30")
    parser.add_argument("--output", type=Path, default=HERE)
    parser.add_argument("--cache", type=Path, default=HERE / "cache")
    options = parser.parse_args()
    pairs = pair_folders(options.images, options.masks)
    file = options.output / "results.json"
    results: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    strengths = [float(s) for s in options.strengths.split(",")]
    for seed in options.trials.split(","):
        trial = Trial(pairs, int(seed), options.cache)
        rows = results.setdefault(seed, {})
        rows["logistic regression"] = trial.logistic_regression()
        for inference in options.inference.split(","):
            for solver in options.solvers.split(","):
                rows[f"{inference}, {solver}"] = trial.cell(inference, solver, strengths)
                print(seed, inference, solver, f"{rows[f'{inference}, {solver}']['test']:.4f}", flush=True)
                file.write_text(json.dumps(results, indent=1) + "\n")
    (options.output / "results.md").write_text(table(results))
    print(table(results))


if __name__ == "__main__":
    main()
