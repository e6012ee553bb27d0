"""The data of a trial, errors, and the cells: one inference and one solver each."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from crfkit.data.graph import Graph
from crfkit.data.graphs import GraphData
from crfkit.encoders.image_blocks import block_labels
from crfkit.errors import StopTraining
from crfkit.features.image import ImageFeatures
from crfkit.fields.graph import GraphField, tied_field
from crfkit.inference.engines import make_engine
from crfkit.losses import GraphLikelihood, PseudoLikelihood
from crfkit.readers.images import read_image, read_mask
from crfkit.result import Result
from crfkit.solvers import SuccessiveChanges, make_solver

FEATURES = ImageFeatures(size=(80, 100), sift_cell=8)
PARTS = (35, 7, 8)  # training, validation, test
SWEEPS = {"tolerance": 1e-4, "max_iterations": 50}  # of inference at a step of training, from where it was
ITERATIONS, CHANGE = 400, 1e-4  # the paper's T and ε
EVERY, PATIENCE = 2, 10  # a validation every two iterations; ten without a better one end training


class Trial:
    """Fifty images, divided: `sets` are grids, `alone` the same blocks without edges; training, validation, test."""

    def __init__(
        self,
        pairs: list[tuple[Path, Path]],
        seed: int,
        cache: Path,
        noise: int = 0,
        parts: tuple[int, ...] = PARTS,
        centred: bool = False,
    ) -> None:
        """`noise`: features of noise beside the real ones. `centred`: |h_i − h_j| less its mean."""
        rng = np.random.default_rng(seed)
        self.chosen = [pairs[k] for k in rng.permutation(len(pairs))[: sum(parts)]]
        images, labels = [], []
        for image_file, mask_file in self.chosen:
            features = FEATURES.compute_cached(read_image(image_file, image_file.name), cache)
            mask = read_mask(mask_file, mask_file.name, False)
            images.append(np.concatenate([features, rng.standard_normal((*features.shape[:2], noise))], axis=-1))
            labels.append((block_labels(mask, np.unique(mask), FEATURES) != 0).astype(int))
        rows = np.concatenate([x.reshape(-1, x.shape[-1]) for x in images[: parts[0]]])
        scale = rows.std(axis=0)
        standard = [(x - rows.mean(axis=0)) / np.where(scale > 0, scale, 1.0) for x in images]
        bounds = np.cumsum([0, *parts])
        self.sets = [_data(standard[a:b], labels[a:b], True) for a, b in pairwise(bounds)]
        if centred:
            mean = self.sets[0].edge_features.mean(axis=0)
            mean[0] = 0.0  # of the 1
            self.sets = [replace(data, edge_features=data.edge_features - mean) for data in self.sets]
        self.alone = [_data(standard[a:b], labels[a:b], False) for a, b in pairwise(bounds)]
        self.field = tied_field(self.sets[0], 2, "ising", "ising")

    def loss(self, inference: str) -> Any:
        if inference == "pl":
            return PseudoLikelihood(self.sets[0], self.field)
        return GraphLikelihood(self.sets[0], self.field, make_engine(inference, **SWEEPS))

    def errors(self, w: Any, engine: str) -> dict[str, float]:
        names = ("train", "validation", "test")
        return {name: wrong(self.field, data, w, engine) for name, data in zip(names, self.sets, strict=True)}


class Watch:
    """Callback: errors on the three sets; `best` is the iterate with the fewest wrong blocks of validation images."""

    def __init__(self, trial: Trial, engine: str, stop: bool) -> None:
        self.trial, self.engine, self.stop = trial, engine, stop
        self.best: tuple[float, int, Any] = (np.inf, 0, None)

    def __call__(self, iteration: Any) -> dict[str, float] | None:
        k = iteration.row.iteration
        if k % (EVERY if self.stop else 5 * EVERY):
            return None
        errors = self.trial.errors(iteration.w, self.engine)
        if errors["validation"] < self.best[0]:
            self.best = (errors["validation"], k, iteration.w.copy())
        if self.stop and k - self.best[1] >= EVERY * PATIENCE:
            raise StopTraining
        return {f"{name}_error": value for name, value in errors.items()}


def train(
    trial: Trial,
    inference: str,
    solver: str,
    penalty: Any,
    w0: Any,
    stop: bool = False,
    watch: bool = True,
    **options: Any,
) -> tuple[dict[str, Any], Any, Result]:
    """(what was measured, the weights kept, how training went). With `stop` the best iterate on validation is kept."""
    engine = "bp" if inference == "pl" else inference  # of prediction
    made = make_solver(solver, stopping=SuccessiveChanges(CHANGE, 1), max_iterations=ITERATIONS, **options)
    watching = Watch(trial, engine, stop)
    result = made.minimize(trial.loss(inference), penalty, w0, [watching] if stop or watch else [])
    w = watching.best[2] if stop else result.w
    blocks = trial.field.layout
    row = {
        **trial.errors(w, engine),
        "seconds": result.seconds,
        "iterations": result.iterations,
        "kept": watching.best[1] if stop else result.iterations,
        "evaluations": result.evaluations,
        "objective": result.value,
        "status": result.status.name,
        "penalty": penalty.name,
        "unary": int(np.count_nonzero(w[blocks["node"]])),
        "pairwise": int(np.count_nonzero(w[blocks["edge"]])),
        **options,
    }
    return row, w, result


def logistic_regression(trial: Trial, penalties: list[Any]) -> tuple[dict[str, Any], Any]:
    """The field without edges, with the penalty that is best on validation images; and its weights, with edges of 0."""
    data, validation, test = trial.alone
    field = tied_field(data, 2, "ising", "ising")
    begin, w, rows = time.perf_counter(), np.zeros(field.size), []
    for penalty in penalties:
        w = make_solver("owlqn", max_iterations=ITERATIONS).minimize(PseudoLikelihood(data, field), penalty, w).w
        errors = {"validation": wrong(field, validation, w, "tree"), "test": wrong(field, test, w, "tree")}
        rows.append(({**errors, "penalty": penalty.name, "seconds": time.perf_counter() - begin}, w))
    row, w = min(rows, key=lambda pair: pair[0]["validation"])
    start = np.zeros(trial.field.size)
    start[trial.field.layout["node"]] = w[field.layout["node"]]
    return {**row, "background": float(test.labels.mean())}, start


def wrong(field: GraphField, data: GraphData, w: Any, engine: str) -> float:
    """The share of blocks whose most probable label is not theirs."""
    options = {"tolerance": 1e-4, "max_iterations": 200} if engine != "tree" else {}
    nodes = make_engine(engine, **options).run(field.potentials(data, w)).nodes
    return float(((nodes[:, 1] > 0.5) != data.labels).mean())


def _data(images: list[Any], labels: list[Any], edges: bool) -> GraphData:
    parts = []
    for x, y in zip(images, labels, strict=True):
        h = x.reshape(-1, x.shape[-1])
        graph = Graph.grid(x.shape[:2]) if edges else Graph(len(h), [])
        i, j = graph.edges.T
        parts.append(GraphData.make(graph, h, np.abs(h[i] - h[j]), y.ravel()))
    return GraphData.join(parts)
