"""A large CRFsuite model file: CRFsuite reads what crfkit writes, and how long either takes to open it.

    python benchmarks/crfsuite_files.py CONLL2000 [--out benchmarks/results/crfsuite_files.json]

CONLL2000 is the folder with train.txt and test.txt of the chunking task. crfkit trains on all of it (CRFsuite's
default set of weights, c2 = 1) and writes a CRFsuite file; python-crfsuite tags the whole test set with it, and so does
crfkit: the tags must be the same. Then both open the file in turn, and tag a first sentence; the figures are medians.
Memory is that of a fresh process, before and after it opens the file and tags.
"""

from __future__ import annotations

import argparse
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pycrfsuite
from common import write_results

from crfkit import L2, ChainCRF, Template
from crfkit.compat import pycrfsuite as compat
from crfkit.convert import save
from crfkit.files.columns import read_columns

ROUNDS = 31
TEMPLATE = "\n".join(
    [
        *(f"U{k:02}:%x[{row},0]" for k, row in enumerate(range(-2, 3))),
        "U05:%x[-1,0]/%x[0,0]",
        "U06:%x[0,0]/%x[1,0]",
        *(f"U{10 + k}:%x[{row},1]" for k, row in enumerate(range(-2, 3))),
        *(f"U{15 + k}:%x[{row},1]/%x[{row + 1},1]" for k, row in enumerate(range(-2, 2))),
        *(f"U{20 + k}:%x[{row},1]/%x[{row + 1},1]/%x[{row + 2},1]" for k, row in enumerate(range(-2, 1))),
    ]
)
MEMORY = """
import sys, re, pickle, importlib
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
name, model, sentence = sys.argv[1:]
module = importlib.import_module(name)
first = pickle.load(open(sentence, "rb"))
before = peak()
tagger = module.Tagger()
tagger.open(model)
tagger.tag(first)
print(peak() - before)
"""


def attributes(X: list[Any]) -> list[list[list[str]]]:
    rules = Template(TEMPLATE)
    return [[unigrams for unigrams, _ in rules.expand([list(row) for row in rows])] for rows in X]


def open_times(model: str, first: Any) -> dict[str, float]:
    """Median milliseconds to open the file, and to open it and tag a first sentence."""
    found: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, module in (("crfsuite", pycrfsuite), ("crfkit", compat)):
            begin = time.perf_counter()
            tagger = module.Tagger()
            tagger.open(model)
            opened = time.perf_counter()
            tagger.tag(first)
            tagged = time.perf_counter()
            found.setdefault(f"{name}_open_ms", []).append(1e3 * (opened - begin))
            found.setdefault(f"{name}_first_tag_ms", []).append(1e3 * (tagged - begin))
            tagger.close()
    medians = {name: statistics.median(values) for name, values in found.items()}
    for what in ("open", "first_tag"):
        pairs = zip(found[f"crfsuite_{what}_ms"], found[f"crfkit_{what}_ms"], strict=True)
        medians[f"{what}_ratio"] = statistics.median(ours / theirs for theirs, ours in pairs)
    return medians


def memory(module: str, model: str, sentence: Path) -> float:
    command = [sys.executable, "-c", MEMORY, module, model, str(sentence)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("conll2000", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    X, y = read_columns(options.conll2000 / "train.txt")
    X_test, _ = read_columns(options.conll2000 / "test.txt")
    X, X_test = attributes(X), attributes(X_test)
    crf = ChainCRF(penalty=L2.from_crfsuite(1.0)).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder) / "conll.crfsuite")
        begin = time.perf_counter()
        save(crf.model_, model, "crfsuite")
        written = time.perf_counter() - begin
        theirs, ours = pycrfsuite.Tagger(), compat.Tagger()
        theirs.open(model)
        ours.open(model)
        expected = [theirs.tag(x) for x in X_test]
        size = Path(model).stat().st_size / 2**20
        sentence = Path(folder) / "sentence.pickle"
        sentence.write_bytes(pickle.dumps(X_test[0]))
        report = {
            "weights": len(crf.coef_),
            "megabytes": size,
            "seconds_to_write": written,
            "test_sentences": len(X_test),
            "test_tokens": sum(map(len, X_test)),
            "same_as_the_chain": sum(a == b for a, b in zip(expected, crf.predict(X_test), strict=True)),
            "same_as_the_tagger": sum(a == ours.tag(x) for a, x in zip(expected, X_test, strict=True)),
            **open_times(model, X_test[0]),
            "crfsuite_megabytes": memory("pycrfsuite", model, sentence),
            "crfkit_megabytes": memory("crfkit.compat.pycrfsuite", model, sentence),
        }
    for name, value in report.items():
        print(f"{name:24} {value:.4g}" if isinstance(value, float) else f"{name:24} {value}")
    if options.out:
        write_results(options.out, report)


if __name__ == "__main__":
    main()
