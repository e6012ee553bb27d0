"""Tagging and encoding on CoNLL-2000 chunking, in turn with python-crfsuite and sklearn-crfsuite.

    python benchmarks/tagging.py [--data DIR] [--output results/tagging.json] [--rounds 5]

All taggers have the same weights: a model of crfkit, converted. Each round does every job once; of each job the median
counts, and of comparisons the median of the rounds' ratios. Files are tagged as they are, the training file too: a
file that repeats itself would be easier.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pycrfsuite
import sklearn_crfsuite
from common import write_results

from crfkit import L2, ChainCRF, ChainModel, Template, convert, read_columns
from crfkit.chain.encoding.sequences import learn
from crfkit.chain.fields.field import ChainField
from crfkit.compat import pycrfsuite as compat
from crfkit.losses import ChainLikelihood
from crfkit.metrics import evaluate

HERE = Path(__file__).resolve().parent
Job = Callable[[], Any]


def attributes(path: Path, template: Template) -> tuple[list[list[list[str]]], list[list[str]]]:
    rows, labels = read_columns(path)
    return [[u for u, _ in template.expand([list(r) for r in x])] for x in rows], labels


def models(data: Path, folder: Path, X: Any, y: Any, template: Template) -> None:
    """Write the models: of observed pairs, also as CRFsuite's, and of 7.4 million weights."""
    crf = ChainCRF(penalty=L2.from_crfsuite(1.0), solver="lbfgs", max_iterations=30).fit(X, y)
    crf.save(folder / "observed.crf")
    convert.save(crf.model_, folder / "observed.crfsuite", "crfsuite")
    rows, labels = read_columns(data / "train.txt")
    full = ChainCRF(template, all_possible_states=True, solver="lbfgs", max_iterations=2).fit(rows, labels)
    full.save(folder / "large.crf")
    full.model_.save(folder / "large8.crf", weights="8bit")


def rounding(model: ChainModel, path: Path, X: Any, y: Any) -> dict[str, float]:
    """Return what weights of 8 bits cost: size of the file, F1 of phrases before and after, labels that differ."""
    model.save(path, weights="8bit")
    small = ChainModel.load(path)
    before, after = model.predict(X), small.predict(X)
    pairs = [(a, b) for row in zip(before, after, strict=True) for a, b in zip(*row, strict=True)]
    model.save(path)
    whole = path.stat().st_size
    small.save(path, weights="8bit")
    return {
        "megabytes": whole / 1e6,
        "megabytes_8bit": path.stat().st_size / 1e6,
        "f1": evaluate(y, before).overall.f1,
        "f1_8bit": evaluate(y, after).overall.f1,
        "labels_that_differ": sum(a != b for a, b in pairs) / len(pairs),
    }


def plan(corpus: Any) -> ChainLikelihood:
    """Return the loss, for which the data are laid out."""
    n_labels, n_attributes = len(corpus.classes), len(corpus.vocabulary.attributes)
    field = ChainField.from_data(corpus.data, n_labels, n_attributes, all_states=False, all_transitions=False)
    loss = ChainLikelihood(corpus.data, field)
    loss.at(np.zeros(loss.size)).value  # noqa: B018 - evaluates
    return loss


def jobs(data: Path, folder: Path) -> tuple[dict[str, Job], dict[str, int]]:
    """Return what is measured, and the tokens of each job."""
    template = Template.read(data / "chunking.template")
    X, y = attributes(data / "train.txt", template)
    test, _ = attributes(data / "test.txt", template)
    dicts = [[dict.fromkeys(item, True) for item in x] for x in test]
    models(data, folder, X, y, template)
    theirs = pycrfsuite.Tagger()
    theirs.open(str(folder / "observed.crfsuite"))
    sklearn = sklearn_crfsuite.CRF(model_filename=str(folder / "observed.crfsuite"))
    model = ChainModel.load(folder / "observed.crf", n_threads=1)
    same_file = compat.Tagger()
    same_file.open(str(folder / "observed.crfsuite"))
    large = ChainModel.load(folder / "large.crf", n_threads=2)
    corpus = learn(X, y, None, 1)
    gc.collect()
    gc.freeze()
    n, n_train = sum(map(len, test)), sum(map(len, X))
    work: dict[str, tuple[Job, int]] = {
        "crfsuite": (lambda: [theirs.tag(x) for x in test], n),
        "bulk": (lambda: model.predict(test), n),
        "one by one: ChainModel.predict": (lambda: [model.predict([x]) for x in test], n),
        "one by one: compat.pycrfsuite": (lambda: [same_file.tag(x) for x in test], n),
        "crfsuite, dicts": (lambda: [theirs.tag(x) for x in dicts], n),
        "bulk, dicts": (lambda: model.predict(dicts), n),
        "sklearn-crfsuite marginals": (lambda: sklearn.predict_marginals(test), n),
        "marginals": (lambda: model.predict_marginals(test), n),
        "columns, 2 threads": (lambda: [len(b) for b in large.tag_columns(data / "train.txt")], n_train),
        "open 7.4 million weights": (lambda: ChainModel.load(folder / "large.crf"), 0),
        "open 7.4 million, 8 bits": (lambda: ChainModel.load(folder / "large8.crf"), 0),
        "encode for training": (lambda: learn(X, y, None, 1), n_train),
        "lay out for training": (lambda: plan(corpus), n_train),
    }
    return {name: job for name, (job, _) in work.items()}, {name: tokens for name, (_, tokens) in work.items()}


# each of ours with the one of theirs that it is compared with
PAIRS = {
    "bulk": "crfsuite",
    "one by one: ChainModel.predict": "crfsuite",
    "one by one: compat.pycrfsuite": "crfsuite",
    "bulk, dicts": "crfsuite, dicts",
    "marginals": "sklearn-crfsuite marginals",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data" / "conll2000")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "tagging.json")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if not options.data.is_dir():
        print(f"skipped: the CoNLL-2000 data are not in {options.data}; see benchmarks/README.md")
        return
    warnings.simplefilter("ignore")  # a few iterations do not converge
    with tempfile.TemporaryDirectory() as folder:
        ready, tokens = jobs(options.data, Path(folder))
        wall: dict[str, list[float]] = {name: [] for name in ready}
        cpu: dict[str, list[float]] = {name: [] for name in ready}
        test, gold = attributes(options.data / "test.txt", Template.read(options.data / "chunking.template"))
        observed = ChainModel.load(Path(folder) / "observed.crf")
        rounded = rounding(observed, Path(folder) / "small.crf", test, gold)
        for _ in range(options.rounds):
            for name, job in ready.items():
                begin, used = time.perf_counter(), time.process_time()
                job()
                wall[name].append(time.perf_counter() - begin)
                cpu[name].append(time.process_time() - used)
    print("weights of 8 bits: " + ", ".join(f"{name} {value:.4g}" for name, value in rounded.items()))
    found: dict[str, Any] = {"weights of 8 bits": rounded}
    for name, times in wall.items():
        seconds = statistics.median(times)
        found[name] = {"seconds": seconds, "cpu_seconds": statistics.median(cpu[name]), "rounds": times}
        if tokens[name]:
            found[name]["tokens_per_second"] = tokens[name] / seconds
        text = f"{name:34} {seconds:8.4f} s {found[name]['cpu_seconds']:8.4f} s of CPU"
        if other := PAIRS.get(name):
            ratios = [b / a for a, b in zip(times, wall[other], strict=True)]
            cpu_ratios = [b / a for a, b in zip(cpu[name], cpu[other], strict=True)]
            found[name] |= {
                "against": other,
                "times_faster": statistics.median(ratios),
                "times_faster_cpu": statistics.median(cpu_ratios),
            }
            text += f"   {statistics.median(ratios):.1f} × as fast, by CPU {statistics.median(cpu_ratios):.1f} ×"
        print(text + (f"   {tokens[name] / seconds:,.0f} tokens/s" if tokens[name] else ""), flush=True)
    write_results(options.output, found)


if __name__ == "__main__":
    main()
