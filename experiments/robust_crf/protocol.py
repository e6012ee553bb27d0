"""The data of a trial, errors, and what one run of a solver gives.

The first sixty images by name are in no trial: the features are chosen on them (features.py, and the defaults of
`ImageSegmenter` in ../segmenter). A trial draws fifty of the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from choices import RESERVED, SIFT_CELL
from together import product_seconds, run_together

from crfkit.files.images import read_image, read_mask
from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import GraphField, tied_field
from crfkit.graph.graph import Graph
from crfkit.graph.inference.engines import make_engine
from crfkit.images.blocks import block_labels
from crfkit.images.features import ImageFeatures
from crfkit.losses import GraphLikelihood, PseudoLikelihood
from crfkit.result import Result
from crfkit.solvers import SuccessiveChanges, make_solver

Pair = tuple[Path, Path]

FEATURES = ImageFeatures(size=(80, 100), sift_cell=SIFT_CELL)
PARTS = (35, 7, 8)  # training, validation, test
SWEEPS = {"tolerance": 1e-4, "max_iterations": 50}  # of inference at a step of training, from where it was
PREDICTION = {"tolerance": 1e-4, "max_iterations": 200}
ITERATIONS, CHANGE = 400, 1e-4  # the paper's T and ε


def reserved(pairs: list[Pair]) -> list[Pair]:
    """Return the images that no trial may draw."""
    return pairs[:RESERVED]


def pool(pairs: list[Pair]) -> list[Pair]:
    """Return the images that trials draw from."""
    return pairs[RESERVED:]


def read_pair(pair: Pair, features: ImageFeatures, cache: Path) -> tuple[Any, Any]:
    """Return the features [h, w, F] of an image and the labels [h, w] of its blocks."""
    image_file, mask_file = pair
    mask = read_mask(mask_file, mask_file.name, False)
    values = features.compute_cached(read_image(image_file, image_file.name), cache)
    return values, (block_labels(mask, np.unique(mask), features) != 0).astype(int)


class Trial:
    """Fifty images, divided: `sets` are grids, `alone` the same blocks without edges; training, validation, test."""

    def __init__(
        self,
        pairs: list[Pair],
        seed: int,
        cache: Path,
        noise: int = 0,
        parts: tuple[int, ...] = PARTS,
        centred: bool = False,
    ) -> None:
        """`noise`: features of noise beside the real ones. `centred`: |h_i − h_j| less its mean."""
        rng = np.random.default_rng(seed)
        drawn = pool(pairs)
        self.seed = seed
        self.chosen = [drawn[k] for k in rng.permutation(len(drawn))[: sum(parts)]]
        images, labels = [], []
        for pair in self.chosen:
            values, known = read_pair(pair, FEATURES, cache)
            images.append(np.concatenate([values, rng.standard_normal((*values.shape[:2], noise))], axis=-1))
            labels.append(known)
        rows = np.concatenate([x.reshape(-1, x.shape[-1]) for x in images[: parts[0]]])
        scale = rows.std(axis=0)
        standard = [(x - rows.mean(axis=0)) / np.where(scale > 0, scale, 1.0) for x in images]
        bounds = np.cumsum([0, *parts])
        self.sets = [grids(standard[a:b], labels[a:b], True) for a, b in pairwise(bounds)]
        if centred:
            mean = self.sets[0].edge_features.mean(axis=0)
            mean[0] = 0.0  # of the 1
            self.sets = [replace(data, edge_features=data.edge_features - mean) for data in self.sets]
        self.alone = [grids(standard[a:b], labels[a:b], False) for a, b in pairwise(bounds)]
        self.field = tied_field(self.sets[0], 2, "ising", "ising")

    def loss(self, inference: str, shared: GraphField | None = None) -> Any:
        """Return the loss of the training images; `shared`: another form of the same field (together.py)."""
        if inference == "pl":
            return PseudoLikelihood(self.sets[0], shared or self.field)
        return GraphLikelihood(self.sets[0], shared or self.field, make_engine(inference, **SWEEPS))

    def named(self) -> list[tuple[str, GraphData]]:
        return list(zip(("train", "validation", "test"), self.sets, strict=True))

    def errors(self, w: Any, engine: str, names: tuple[str, ...] = ("train", "validation", "test")) -> dict[str, float]:
        return {name: wrong(self.field, data, w, engine) for name, data in self.named() if name in names}

    def counts(self, w: Any) -> dict[str, int]:
        """Return how many weights of nodes and of edges are not zero."""
        blocks = self.field.layout
        return {
            "unary": int(np.count_nonzero(w[blocks["node"]])),
            "pairwise": int(np.count_nonzero(w[blocks["edge"]])),
        }


def engine_of(inference: str) -> str:
    """Return the engine that predicts after training: the same, and belief propagation after pseudo-likelihood."""
    return "bp" if inference == "pl" else inference


@dataclass(frozen=True)
class Case:
    """A run: a solver, a penalty and where it starts."""

    solver: str
    penalty: Any
    w0: Any
    callbacks: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


def train_all(
    trial: Trial, inference: str, cases: Sequence[Case], change: float = CHANGE, most: int = ITERATIONS
) -> list[tuple[dict[str, Any], Any, Result]]:
    """Run cases on the training images together (together.py); return what was measured, weights and result of each.

    `cpu_seconds` is what the run takes by itself: its own time, and the time of its products with the features when no
    other run shares them. `change` and `most` are ε and T.
    """

    def run(case: Case) -> Callable[[GraphField], Any]:
        stopping = SuccessiveChanges(change, 1)
        made = make_solver(case.solver, stopping=stopping, max_iterations=most, **case.options)

        def follow(shared: GraphField) -> Any:
            loss = trial.loss(inference, shared)
            return loss, made.minimize(loss, case.penalty, case.w0, list(case.callbacks))

        return follow

    alone = product_seconds(trial.field, trial.sets[0])
    answers = []
    together = run_together(trial.field, trial.sets[0], [run(case) for case in cases])
    for case, ((loss, result), own) in zip(cases, together, strict=True):
        row = {
            "penalty": case.penalty.name,
            "cpu_seconds": own + alone * result.evaluations,
            "iterations": result.iterations,
            "evaluations": result.evaluations,
            "unsettled": getattr(loss, "unsettled", 0),  # evaluations whose inference had not converged
            "objective": result.value,
            "status": result.status.name,
            **trial.counts(result.w),
        }
        answers.append((row, result.w, result))
    return answers


def logistic_regression(
    sets: list[GraphData], penalties: list[Any], engine: str = "tree"
) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return errors on the other sets for each penalty, and the weights; `sets` have no edges, the first one trains."""
    field = tied_field(sets[0], 2, "ising", "ising")
    begin, w, rows, weights = time.process_time(), np.zeros(field.size), [], []
    for penalty in penalties:
        w = make_solver("owlqn", max_iterations=ITERATIONS).minimize(PseudoLikelihood(sets[0], field), penalty, w).w
        errors = [wrong(field, data, w, engine) for data in sets[1:]]
        rows.append({"penalty": penalty.name, "errors": errors, "cpu_seconds": time.process_time() - begin})
        weights.append(w[field.layout["node"]])
    return rows, weights


def predict(field: GraphField, data: GraphData, w: Any, engine: str) -> Any:
    """Return the most probable label of each block, [n]."""
    nodes = make_engine(engine, **(PREDICTION if engine != "tree" else {})).run(field.potentials(data, w)).nodes
    return (nodes[:, 1] > 0.5).astype(int)


def wrong(field: GraphField, data: GraphData, w: Any, engine: str) -> float:
    """Return the share of blocks whose most probable label is not theirs."""
    return float((predict(field, data, w, engine) != data.labels).mean())


def grids(images: list[Any], labels: list[Any], edges: bool) -> GraphData:
    """Return images as grids with node features [1, h] and edge features [1, |h_i − h_j|], or without edges."""
    parts = []
    for x, y in zip(images, labels, strict=True):
        h = x.reshape(-1, x.shape[-1])
        graph = Graph.grid(x.shape[:2]) if edges else Graph(len(h), [])
        i, j = graph.edges.T
        parts.append(GraphData.make(graph, h, np.abs(h[i] - h[j]), y.ravel()))
    return GraphData.join(parts)
