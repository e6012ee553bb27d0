"""Targets: chains of every kind of input and of every shape."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.base  # noqa: F401 - estimators load it with their first fit, which would count for one case

from crfkit import L2, ChainCRF, ChainModel, Template, TextFeatures
from fuzz.commands import inspect, tag
from fuzz.containers import change_container, put_together
from fuzz.target import Target

ROWS = [[("the", "D"), ("naïve", "A"), ("cat", "N")], [("a", "D"), ("dog", "N")], [("sleep", "V")], []]
LABELS = [["O", "B-x", "I-x"], ["O", "B-x"], ["B-y"], []]
ITEMS = [[{"w": w, "t": 0.5, "n": {"t": t}} for w, t in row] for row in ROWS]
MATRICES = [np.eye(5)[: len(row)] for row in ROWS]
TEMPLATE = Template("U0:%x[0,0]\nU1:%x[-1,1]/%x[0,1]\nB\nB1:%x[0,1]")
CLASSES = {"B-x": "x", "I-x": "x", "B-y": "y"}


def _words() -> TextFeatures:
    return TextFeatures(columns=(1,), gazetteers={"animals": ["cat", "a dog"]}, embeddings={"cat": [0.5, 1.0]})


KINDS: dict[str, tuple[Callable[[], ChainCRF], Any]] = {
    "template": (lambda: ChainCRF(template=TEMPLATE, all_possible_states=True, all_possible_transitions=True), ROWS),
    "observed": (lambda: ChainCRF(template=TEMPLATE), ROWS),
    "order2": (lambda: ChainCRF(template=TEMPLATE, order=2), ROWS),
    "items": (lambda: ChainCRF(), ITEMS),
    "matrix": (lambda: ChainCRF(), MATRICES),
    "text": (lambda: ChainCRF(features=_words()), ROWS),
    "hashed": (lambda: ChainCRF(template=TEMPLATE, hash_bits=10), ROWS),
    "constrained": (lambda: ChainCRF(template=TEMPLATE, constraints="iob2"), ROWS),
    "classes": (lambda: ChainCRF(label_classes=CLASSES), ITEMS),
    "calibrated": (lambda: ChainCRF(), ITEMS),
}


def _valid(kind: str) -> bytes:
    make, X = KINDS[kind]
    model = make().set_params(penalty=L2(0.1), n_threads=1).fit(X, LABELS).model_
    if kind == "calibrated":
        model = model.calibrate(5 * X, 5 * LABELS, precision=0.5, coverage=0.9, min_spans=1)
    metadata, tensors = model.parts()
    return put_together({"kind": "chain", **metadata}, {name: np.array(array) for name, array in tensors.items()})


ANSWERS: tuple[Callable[[ChainModel, Any], Any], ...] = (
    lambda model, X: model.predict_marginals(X),
    lambda model, X: model.predict_nbest(X[:2], 3),
    lambda model, X: model.predict_spans(X[:2]),
    lambda model, X: model.sample(X[:2], 2, random_state=0),
    lambda model, X: model.entropies(X),
    lambda model, X: model.explain(X[0]),
    lambda model, X: model.decode(X, method="posterior"),
    lambda model, X: model.sequence_probability(X[:1], [model.class_list[:1] * len(X[0])]),
    lambda model, X: model.vocabulary.kind == "matrix" or [model.tagger.tag(x) for x in X],
    lambda model, X: model.decode(X, constraints="iob2"),
    lambda model, X: model.inference.edge_marginals(model.encode(X)),
    lambda model, X: list(model.parts()),
)


def ask(model: ChainModel, X: Any, rng: random.Random) -> None:
    """Predict, and ask the model for two things more."""
    model.predict(X)
    for answer in rng.sample(ANSWERS, 2):
        answer(model, X)


def _use(X: Any, path: Path, rng: random.Random) -> None:
    model = ChainModel.load(path, n_threads=1)
    ask(model, X, rng)
    if rng.random() < 0.03:
        inspect(path, rng)
        if X is ROWS:
            tag(path, rng)


TARGETS = [
    Target(f"chain-{kind}", partial(_valid, kind), change_container, partial(_use, X)) for kind, (_, X) in KINDS.items()
]
