"""Targets: fields on graphs, grids and images, and learnt structure."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from crfkit import Graph, GraphCRF, GraphSample, GridCRF, ImageSegmenter, Refiner, StructureLearner
from crfkit.graph.inference.engines import ENGINES, make_engine
from fuzz.commands import inspect
from fuzz.containers import change_container, put_together
from fuzz.target import Target

RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(8, 2))
TABLE = [["ab"[i % 2], "cde"[i % 3], "fg"[i // 2 % 2]] for i in range(8)]
SAMPLES = [GraphSample(RNG.normal(size=(4, 2)), Graph.path(4), RNG.normal(size=(3, 1))) for _ in range(3)]
STATES = [[0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]]
GRIDS = RNG.normal(size=(2, 3, 4, 2))
GRID_LABELS = (GRIDS[..., 0] > 0).astype(int)
IMAGES = [RNG.random((12, 12)).astype(np.float32) for _ in range(2)]
MASKS = [(image > 0.5).astype(int) for image in IMAGES]
MAPS = [np.stack([1 - 0.8 * image, 0.8 * image], axis=-1).astype(float) for image in IMAGES]
ROWS = RNG.integers(0, 2, (60, 4))
ROW_INPUTS = RNG.normal(size=(60, 2))
ROWS[:, 1] = np.where(RNG.random(60) < 0.8, ROWS[:, 0], ROWS[:, 1])


MAKERS: dict[str, Callable[[], Any]] = {
    "graph-table": lambda: GraphCRF().fit(None, TABLE),
    "graph-inputs": lambda: GraphCRF(decode="marginal").fit(INPUTS, TABLE),
    "graph-samples": lambda: GraphCRF().fit(SAMPLES, STATES),
    "grid": lambda: GridCRF().fit(GRIDS, GRID_LABELS),
    "segmenter": lambda: ImageSegmenter(block_size=4, loss="pseudo-likelihood").fit(IMAGES, MASKS),
    "refiner": lambda: Refiner(block_size=2).fit(MAPS, IMAGES, MASKS),
    "structure": lambda: StructureLearner(edge_strength=1.0).fit(ROWS),
    "structure-inputs": lambda: StructureLearner(edge_strength=1.0).fit(ROWS, inputs=ROW_INPUTS),
}
# without the toy of tests/recipes, which workers do not have
ENGINES_OF = {f"graph-{name}": name for name in ENGINES if name != "toy"}


def _valid(name: str) -> bytes:
    if name in ENGINES_OF:
        edges = [(0, 1), (1, 2)] if name == "graph-tree" else "complete"
        model = GraphCRF(graph=edges).fit(INPUTS, TABLE).model_
        model = replace(model, inference=make_engine(ENGINES_OF[name]))
    else:
        model = MAKERS[name]().model_
    kind = {"segmenter": "segmenter", "refiner": "refiner"}.get(name, "graph")
    metadata, tensors = model.parts()
    return put_together({"kind": kind, **metadata}, {name: np.array(array) for name, array in tensors.items()})


Answers = tuple[Callable[[Any], Any], ...]


def pairwise(X: Any, Y: Any) -> Answers:
    return (
        lambda crf: crf.predict(X),
        lambda crf: crf.predict_marginals(X),
        lambda crf: crf.predict_edge_marginals(X),
        lambda crf: crf.log_partition(X),
        lambda crf: crf.log_likelihood(X, Y),
        lambda crf: crf.sample(X, 2, random_state=0),
        lambda crf: (crf.node_weights_, crf.edge_weights_, crf.coef_),
        lambda crf: crf.model_.parts(),
    )


IMAGE_ANSWERS: Answers = (
    lambda crf: crf.predict(IMAGES[:1]),
    lambda crf: crf.predict_marginals(IMAGES[:1]),
    lambda crf: (crf.model_.weights(), crf.model_.selected(), crf.model_.options()),
    lambda crf: crf.model_.parts(),
)
MAP_ANSWERS: Answers = (
    lambda crf: crf.predict(MAPS[:1], IMAGES[:1]),
    lambda crf: crf.predict_proba(MAPS[:1], IMAGES[:1]),
    lambda crf: (crf.temperature_, crf.detail_, crf.bias_, crf.edge_weights_, crf.model_.options()),
    lambda crf: crf.model_.parts(),
)


def structure(inputs: Any) -> Answers:
    return (
        lambda crf: crf.predict(ROWS[:4] if inputs is None else inputs),
        lambda crf: crf.predict_marginals(inputs),
        lambda crf: crf.complete([[0, None, 1, 0]], inputs=None if inputs is None else inputs[:1]),
        lambda crf: crf.sample(2, inputs=inputs, random_state=0),
        lambda crf: crf.log_likelihood(ROWS[:4], inputs=inputs),
        lambda crf: crf.log_likelihood_bounds(ROWS[:4], inputs=inputs),
        lambda crf: (crf.graph_, crf.edge_weights_, crf.node_weights_, crf.weight_matrix_, crf.edge_records_),
    )


def _uses(name: str) -> tuple[Any, Answers]:
    """Return the estimator that loads a model, and what is asked of it."""
    match name.split("-"):
        case ["grid"]:
            return GridCRF, pairwise(GRIDS, GRID_LABELS)
        case ["segmenter"]:
            return ImageSegmenter, IMAGE_ANSWERS
        case ["refiner"]:
            return Refiner, MAP_ANSWERS
        case ["structure", *inputs]:
            return StructureLearner, structure(ROW_INPUTS[:4] if inputs else None)
        case [_, "samples"]:
            return GraphCRF, pairwise(SAMPLES, STATES)
        case [_, "table"]:
            return GraphCRF, pairwise(None, TABLE)
        case _:
            return GraphCRF, pairwise(INPUTS, TABLE)


def _use(name: str, path: Path, rng: random.Random) -> None:
    kind, answers = _uses(name)
    estimator = kind.load(path, n_threads=1)
    for answer in rng.sample(answers, 2):
        answer(estimator)
    if rng.random() < 0.03:
        inspect(path, rng)


TARGETS = [
    Target(name, partial(_valid, name), change_container, partial(_use, name)) for name in (*MAKERS, *ENGINES_OF)
]
