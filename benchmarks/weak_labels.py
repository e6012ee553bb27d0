"""Labels that are known in part, and weights of classes: F1 on CoNLL-2000's test set.

    python benchmarks/weak_labels.py FOLDER [--seeds 3] [--parts hidden,weights]
        [--output benchmarks/results/weak_labels.json]

FOLDER has conll2000/train.txt, test.txt and chunking.template. The labels of half of the training tokens are hidden at
random, and a model is trained on what is left in three ways: by marginal likelihood, on those tokens alone with hidden
ones as a label of their own left out (each run of known labels is a sequence), and with hidden labels taken for "O".
"Sets": a third of the labels become a set of two, the right one and a random one. All options are the defaults. Weights
of classes are measured there as well, and on Spanish names (conll2002_spanish/esp.train and esp.testa) with the same
template.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import write_results

from crfkit import ChainCRF, evaluate, read_columns

Rows = Sequence[Sequence[Any]]


def hide(y: Rows, share: float, rng: np.random.Generator) -> list[list[Any]]:
    return [[None if rng.random() < share else label for label in row] for row in y]


def widen(y: Rows, share: float, labels: Sequence[str], rng: np.random.Generator) -> list[list[Any]]:
    return [
        [{label, labels[rng.integers(len(labels))]} if rng.random() < share else label for label in row] for row in y
    ]


def known_runs(X: Rows, y: Rows) -> tuple[list[Any], list[Any]]:
    """The runs of positions whose labels are known, each as a sequence; attributes at their edges lose neighbours."""
    parts: tuple[list[Any], list[Any]] = ([], [])
    for tokens, labels in zip(X, y, strict=True):
        begin = 0
        for t in range(len(labels) + 1):
            if t == len(labels) or labels[t] is None:
                if t > begin:
                    parts[0].append(tokens[begin:t])
                    parts[1].append(labels[begin:t])
                begin = t + 1
    return parts


def f1(folder: Path, X: Iterable[Any], y: Iterable[Any], test: tuple[Any, Any], **options: Any) -> dict[str, Any]:
    crf = ChainCRF(folder / "chunking.template", **options).fit(X, y)
    scores = evaluate(test[1], crf.predict(test[0]))
    return {
        "f1": round(100 * scores.overall.f1, 2),
        "recall": round(100 * scores.overall.recall, 2),
        "precision": round(100 * scores.overall.precision, 2),
        "iterations": crf.result_.iterations,
        "status": crf.result_.outcome,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.5)
    parser.add_argument("--parts", default="hidden,weights")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    folder = options.folder / "conll2000"
    X, y = read_columns(folder / "train.txt")
    test = read_columns(folder / "test.txt")
    labels = sorted({label for row in y for label in row})
    results: list[dict[str, Any]] = []

    def add(what: str, seed: int | None, found: dict[str, Any]) -> None:
        results.append({"labels": what, "seed": seed, **found})
        print(json.dumps(results[-1]), flush=True)

    if "hidden" in options.parts:
        add("all known", None, f1(folder, X, y, test))
        for seed in range(options.seeds):
            hidden = hide(y, options.share, np.random.default_rng(seed))
            add("half hidden: marginal likelihood", seed, f1(folder, X, hidden, test))
            add("half hidden: known runs alone", seed, f1(folder, *known_runs(X, hidden), test))
            add("half hidden: taken for O", seed, f1(folder, X, [[a or "O" for a in row] for row in hidden], test))
            sets = widen(y, 1 / 3, labels, np.random.default_rng(seed))
            add("a third are sets of two", seed, f1(folder, X, sets, test))
    if "weights" in options.parts:
        for weight in (0.3, 3.0):
            add(f"CoNLL-2000, O weighs {weight:g}", None, f1(folder, X, y, test, class_weight={"O": weight}))
        names = options.folder / "conll2002_spanish"
        train, held_out = (read_columns(names / name, encoding="latin-1") for name in ("esp.train", "esp.testa"))
        for weight in (1.0, 0.3, 3.0):
            add(f"Spanish names, O weighs {weight:g}", None, f1(folder, *train, held_out, class_weight={"O": weight}))
    if options.output:
        write_results(options.output, {"rows": results})


if __name__ == "__main__":
    main()
