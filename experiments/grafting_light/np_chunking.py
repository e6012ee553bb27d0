"""Noun phrases of CoNLL-2000 with the predicates of Sha & Pereira (2003), Table 1.

Their labels are pairs of chunk tags, y_i = c_{i−1}c_i, and every predicate goes with y_i = y and with c(y_i) = c. That
is a chain of order 2 over the tags, in which every predicate is an attribute of a tag (U) and of a pair of tags (B);
weights of label triples are their pairs of labels. O is never followed by I.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from methods import train

from crfkit.encoders.sequences import TaggedCorpus, learn_file
from crfkit.features.template import Template
from crfkit.inference import ChainInference
from crfkit.losses import ChainLikelihood
from crfkit.metrics import evaluate
from crfkit.penalties import L1
from crfkit.readers import read_columns
from crfkit.solvers import OWLQN
from crfkit.training.chain import ChainTraining

WORDS = [(-2,), (-1,), (0,), (1,), (2,), (-1, 0), (0, 1)]
TAGS = [*WORDS[:5], (-2, -1), (-1, 0), (0, 1), (1, 2), (-2, -1, 0), (-1, 0, 1), (0, 1, 2)]
PREDICATES = ["/".join(f"%x[{k},{column}]" for k in at) for column, group in ((0, WORDS), (1, TAGS)) for at in group]
LINES = [f"{kind}{n}:{p}" for kind in "UB" for n, p in enumerate(PREDICATES)]
TEMPLATE = Template("\n".join([*LINES, "U:", "B"]))
TRAINING = ChainTraining(all_possible_states=True, all_possible_transitions=True, order=2, constraints="iob2")
STRENGTHS = (0.5, 1.0, 2.0, 4.0)


def read(folder: Path, name: str, limit: int | None = None) -> TaggedCorpus:
    """A file of the shared task with the labels of noun phrases only; `limit`: every k-th sentence, so many."""
    blocks = (folder / name).read_text("utf-8").strip().split("\n\n")
    if limit is not None:
        blocks = blocks[:: len(blocks) // limit][:limit]
    rows = [[_np(line.split()) for line in block.splitlines()] for block in blocks]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "np.txt"
        path.write_text("\n".join("".join(line + "\n" for line in row) for row in rows), "utf-8")
        return learn_file(path, TEMPLATE, 1)


def _np(columns: list[str]) -> str:
    word, tag, chunk = columns
    return f"{word}\t{tag}\t{chunk if chunk.endswith('-NP') else 'O'}"


def one(
    folder: Path, method: str, unit: int, strength: float, threads: int, limit: int | None = None
) -> dict[str, Any]:
    """A method on the training file, and its F1 on the test file."""
    corpus = read(folder, "train.txt", limit)
    vocabulary, classes = corpus.vocabulary, corpus.classes.tolist()
    field, _ = TRAINING.make_field(corpus.data, vocabulary, classes)
    record, w = train(corpus.data, field, method, unit, strength, threads)
    return record | {"f1": f1(folder, vocabulary, classes, ChainInference(field, w, threads))}


def f1(folder: Path, vocabulary: Any, classes: list[str], inference: ChainInference) -> float:
    X, gold = read_columns(folder / "test.txt")
    gold = [[label if label.endswith("-NP") else "O" for label in row] for row in gold]
    data = vocabulary.encode([[token[:2] for token in row] for row in X])
    found = inference.decode(data)[0]
    predicted = [[classes[j] for j in row] for row in data.split(found)]
    return round(100 * evaluate(gold, predicted).overall.f1, 3)


def choose_strength(folder: Path, limit: int, folds: int = 5, threads: int = 1) -> dict[str, Any]:
    """Cross-validation of Full-Opt-L1 on so many sentences: the negative log-likelihood of held-out sentences and their
    share of wrong labels, for every strength, each started from the one before."""
    corpus = read(folder, "train.txt", limit)
    data = corpus.data
    field, _ = TRAINING.make_field(data, corpus.vocabulary, corpus.classes.tolist())
    fold = np.arange(len(data)) % folds
    scores = {strength: [0.0, 0.0] for strength in STRENGTHS}
    for k in range(folds):
        held = data.take(np.flatnonzero(fold == k))
        inside = ChainLikelihood(data.take(np.flatnonzero(fold != k)), field, threads)
        outside = ChainLikelihood(held, field, threads)
        w = np.zeros(field.size)
        for strength in sorted(STRENGTHS, reverse=True):
            w = OWLQN().minimize(inside, L1(strength), w).w
            scores[strength][0] += outside.at(w).value
            scores[strength][1] += ChainInference(field, w, threads).errors(held)[0] / folds
    best = min(scores, key=lambda strength: scores[strength][1])
    table = {str(strength): {"nll": nll, "error": error} for strength, (nll, error) in scores.items()}
    return {"sentences": len(data), "folds": folds, "scores": table, "best": best}
