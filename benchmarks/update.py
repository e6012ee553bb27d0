"""Training further without the old data (`crfkit update`) against training again on all data: F1 and seconds.

    python benchmarks/update.py [--output benchmarks/results/update.json] [--quick]

Spanish names and English chunks, in three tasks. The old data are the training file without its last 1,500 sentences.
The first 50, 200 or 1,500 of these are the new data; in the third task, the new data are in lower case. Each model is
scored on the test file and, in the third task, also on the test file in lower case.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import SHARED, Report, say, write_results

from crfkit import ChainCRF, evaluate, read_columns

HELD = 1500
COUNTS = (50, 200, 1500)
Data = tuple[list[Any], list[Any]]


@dataclass(frozen=True)
class Task:
    """What is learned: the options of the tagger, and old, new and test sentences."""

    name: str
    options: dict[str, Any]
    old: Data
    new: Data
    tests: dict[str, Data]


def names(file: str) -> Data:
    X, y = read_columns(SHARED / "data" / "conll2002_spanish" / file)
    return [[row[0] for row in sentence] for sentence in X], y


def tasks(most: int | None) -> list[Task]:
    folder = SHARED / "data" / "conll2000"
    (X, y), test = names("esp.train"), names("esp.testb")
    low, test_low = lower(X), (lower(test[0]), test[1])
    chunks: Any = read_columns(folder / "train.txt")
    chunk_test: Any = read_columns(folder / "test.txt")
    rules = {"template": folder / "chunking.template"}
    old, new = (X[:-HELD][:most], y[:-HELD][:most]), (X[-HELD:], y[-HELD:])
    return [
        Task("Spanish names", {"features": "ner"}, old, new, {"old": test}),
        Task(
            "English chunks",
            rules,
            (chunks[0][:-HELD][:most], chunks[1][:-HELD][:most]),
            (chunks[0][-HELD:], chunks[1][-HELD:]),
            {"old": chunk_test},
        ),
        Task(
            "Spanish names, new in lower case",
            {"features": "ner"},
            old,
            (low[-HELD:], y[-HELD:]),
            {"old": test, "new": test_low},
        ),
    ]


def lower(X: list[list[str]]) -> list[list[str]]:
    return [[word.lower() for word in sentence] for sentence in X]


def scores(crf: ChainCRF, tests: dict[str, Data]) -> Report:
    return {f"f1_{name}": round(100 * evaluate(y, crf.predict(X)).overall.f1, 2) for name, (X, y) in tests.items()}


def measure(task: Task, counts: tuple[int, ...]) -> list[Report]:
    """Return a row for each way to a model."""
    rows: list[Report] = []

    def add(way: str, n: int, make: Callable[[], ChainCRF]) -> ChainCRF:
        begin = time.perf_counter()
        crf = make()
        seconds = time.perf_counter() - begin
        rows.append({"task": task.name, "new": n, "way": way, "seconds": round(seconds, 2), **scores(crf, task.tests)})
        say(str(rows[-1]))
        return crf

    old = add("old model", 0, lambda: ChainCRF(**task.options).fit(*task.old))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "old.crf"
        old.save(file)
        for n in counts:
            ways = Ways(task, file, n)
            add("retrained on all", n, ways.retrain)
            add("update", n, ways.update)
            if n > 50:
                add("updates of 50", n, ways.small_updates)
            add("pass of asgd", n, ways.online)
    return rows


@dataclass(frozen=True)
class Ways:
    """The ways to a model of the old data, whose model is in the file, and of n new sentences."""

    task: Task
    file: Path
    n: int

    def retrain(self) -> ChainCRF:
        (X, y), (X_new, y_new) = self.task.old, self._new(0, self.n)
        return ChainCRF(**self.task.options).fit(X + X_new, y + y_new)

    def update(self) -> ChainCRF:
        return ChainCRF.load(self.file).update(*self._new(0, self.n))

    def small_updates(self) -> ChainCRF:
        crf = ChainCRF.load(self.file)
        for k in range(0, self.n, 50):
            crf.update(*self._new(k, min(k + 50, self.n)))
        return crf

    def online(self) -> ChainCRF:
        return ChainCRF.load(self.file).set_params(solver="asgd").partial_fit(*self._new(0, self.n))

    def _new(self, first: int, last: int) -> Data:
        X, y = self.task.new
        return X[first:last], y[first:last]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--quick", action="store_true", help="few sentences, whose figures mean nothing")
    options = parser.parse_args()
    rows = []
    for task in tasks(300 if options.quick else None):
        rows += measure(task, (50,) if options.quick else COUNTS)
    if options.output:
        write_results(options.output, {"rows": rows})


if __name__ == "__main__":
    main()
