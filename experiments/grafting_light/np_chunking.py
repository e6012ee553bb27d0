"""Noun phrases of CoNLL-2000 with the predicates of Sha & Pereira (2003), Table 1.

Their labels are pairs of chunk tags, y_i = c_{i−1}c_i, and every predicate goes with y_i = y and with c(y_i) = c. That
is a chain of order 2 over the tags, in which every predicate is an attribute of a tag (U) and of a pair of tags (B);
weights of label triples are their pairs of labels. O is never followed by I.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from methods import train
from store import Record

from crfkit.chain.encoding.sequences import TaggedCorpus, learn_file
from crfkit.chain.inference import ChainInference
from crfkit.chain.training.train import ChainTraining
from crfkit.files.columns import read_columns
from crfkit.metrics import evaluate
from crfkit.text.template import Template

WORDS = [(-2,), (-1,), (0,), (1,), (2,), (-1, 0), (0, 1)]
TAGS = [*WORDS[:5], (-2, -1), (-1, 0), (0, 1), (1, 2), (-2, -1, 0), (-1, 0, 1), (0, 1, 2)]
PREDICATES = ["/".join(f"%x[{k},{column}]" for k in at) for column, group in ((0, WORDS), (1, TAGS)) for at in group]
LINES = [f"{kind}{n}:{p}" for kind in "UB" for n, p in enumerate(PREDICATES)]
TEMPLATE = Template("\n".join([*LINES, "U:", "B"]))
TRAINING = ChainTraining(all_possible_states=True, all_possible_transitions=True, order=2, constraints="iob2")


def read(folder: Path, name: str, limit: int | None = None) -> TaggedCorpus:
    """Return a file of the shared task with the labels of noun phrases only; `limit`: every k-th sentence, so many."""
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


class NounPhrases:
    """The training file with all predicates, or every k-th sentence of it, so many."""

    def __init__(self, folder: Path, limit: int | None = None) -> None:
        self.folder = folder
        corpus = read(folder, "train.txt", limit)
        self.data, self.vocabulary, self.classes = corpus.data, corpus.vocabulary, corpus.classes.tolist()
        self.field, _ = TRAINING.make_field(self.data, self.vocabulary, self.classes)

    def one(self, method: str, unit: int, strength: float, seconds: float | None) -> Record:
        """Return what a method has on these sentences, and its F1 on the test file."""
        record, w = train(self.data, self.field, method, unit, strength, 1, seconds)
        score = f1(self.folder, self.vocabulary, self.classes, ChainInference(self.field, w, 1))
        return record | {"seed": 0, "sentences": len(self.data), "f1": score}


def f1(folder: Path, vocabulary: Any, classes: list[str], inference: ChainInference) -> float:
    """Return F1 [%] of noun phrases on the test file."""
    X, gold = read_columns(folder / "test.txt")
    gold = [[label if label.endswith("-NP") else "O" for label in row] for row in gold]
    data = vocabulary.encode([[token[:2] for token in row] for row in X])
    found = inference.decode(data)[0]
    predicted = [[classes[j] for j in row] for row in data.split(found)]
    return round(100 * evaluate(gold, predicted).overall.f1, 3)
