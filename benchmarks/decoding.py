"""What decoding costs beyond the best labels, on CoNLL-2000 chunking and Spanish named entities.

    python benchmarks/decoding.py [--data ../shared/data] [--out benchmarks/results/decoding.json] [--models DIR]

For each test set: the ten best labellings against Viterbi, the probabilities of all phrases against marginals, and
marginals against sklearn-crfsuite with the same weights (a CRFsuite file that crfkit writes). Each is a call from
Python lists to Python results, on one thread; cases take turns, and ratios are medians over rounds of CPU seconds.
--models keeps the trained models for the next run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import write_results

from crfkit import L2, ChainCRF, Template, evaluate, read_columns
from crfkit.chain.model.model import ChainModel
from crfkit.chain.model.spans import spans_of
from crfkit.convert import save

NER = "\n".join(
    [
        *(f"U{k:02}:%x[{row},0]" for k, row in enumerate(range(-2, 3))),
        "U05:%x[-1,0]/%x[0,0]",
        "U06:%x[0,0]/%x[1,0]",
        *(f"U{10 + k}:%x[{row},1]" for k, row in enumerate(range(-2, 3))),
        *(f"U{15 + k}:%x[{row},1]/%x[{row + 1},1]" for k, row in enumerate(range(-2, 2))),
    ]
)
TASKS = {  # name: (folder, train, test)
    "CoNLL-2000": ("conll2000", "train.txt", "test.txt"),
    "Spanish NER": ("conll2002_spanish", "esp.train", "esp.testb"),
}
Attributes = list[list[list[str]]]


def attributes(path: Path, template: Template, encoding: str) -> tuple[Attributes, list[list[str]]]:
    rows, labels = read_columns(path, encoding=encoding)
    return [[u for u, _ in template.expand([list(r) for r in x])] for x in rows], labels


def encoding_of(path: Path) -> str:
    try:
        path.read_text("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def prepared(name: str, data: Path, models: Path) -> tuple[ChainModel, Attributes, list[list[str]]]:
    folder, train, test = TASKS[name]
    here = data / folder
    template = Template.read(here / "chunking.template") if folder == "conll2000" else Template(NER)
    kept = models / f"{folder}.crf"
    if not kept.exists():
        X, y = attributes(here / train, template, encoding_of(here / train))
        ChainCRF(penalty=L2(1.0)).fit(X, y).model_.save(kept)
    X, y = attributes(here / test, template, encoding_of(here / test))
    return ChainModel.load(kept, n_threads=1), X, y


def measured(cases: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """CPU seconds of each case in each round, after one that is not counted."""
    found: dict[str, list[float]] = {name: [] for name in cases}
    for k in range(rounds + 1):
        for name, work in cases.items():
            begin = time.process_time()
            work()
            if k:
                found[name].append(time.process_time() - begin)
    return found


def ratio(found: dict[str, list[float]], over: str, under: str) -> float:
    return statistics.median(a / b for a, b in zip(found[over], found[under], strict=True))


def run(name: str, data: Path, models: Path, rounds: int) -> dict[str, Any]:
    import sklearn_crfsuite

    model, X, y = prepared(name, data, models)
    theirs = models / f"{TASKS[name][0]}.crfsuite"
    save(model, theirs, "crfsuite")
    peer = sklearn_crfsuite.CRF(model_filename=str(theirs))
    encoded = model.encode(X)
    cases: dict[str, Callable[[], Any]] = {
        "predict": lambda: model.predict(X),
        "predict_nbest_10": lambda: model.predict_nbest(X, 10),
        "predict_marginals": lambda: model.predict_marginals(X),
        "predict_spans": lambda: model.predict_spans(X),
        "decode": lambda: model.decode(X),
        "entropies": lambda: model.entropies(X),
        "viterbi_of_encoded": lambda: model.inference.decode(encoded),
        "nbest_10_of_encoded": lambda: model.inference.nbest(encoded, 10),
        "marginals_of_encoded": lambda: model.inference.node_marginals(encoded),
        "spans_of_encoded": lambda: spans_of(model, encoded),
    }
    found = measured(cases, rounds)
    pair = measured(
        {"ours": cases["predict_marginals"], "theirs": lambda: peer.predict_marginals(X)}, max(3, rounds // 3)
    )
    ours, others = model.predict_marginals(X[:50]), peer.predict_marginals(X[:50])
    gap = max(
        abs(p[t, j] - q[t][label])
        for p, q in zip(ours, others, strict=True)
        for t in range(len(q))
        for j, label in enumerate(model.class_list)
    )
    return {
        "sentences": len(X),
        "tokens": sum(map(len, X)),
        "labels": len(model.class_list),
        "f1": evaluate(y, model.predict(X)).overall.f1,
        "spans": sum(map(len, model.predict_spans(X))),
        "cpu_seconds": {case: statistics.median(values) for case, values in found.items()},
        "sklearn_crfsuite_marginals_cpu_seconds": statistics.median(pair["theirs"]),
        "largest_difference_of_marginals": float(gap),
        "ratios": {
            "nbest_10 / viterbi": ratio(found, "predict_nbest_10", "predict"),
            "nbest_10 / viterbi, encoded": ratio(found, "nbest_10_of_encoded", "viterbi_of_encoded"),
            "spans / marginals": ratio(found, "predict_spans", "predict_marginals"),
            "spans / marginals, encoded": ratio(found, "spans_of_encoded", "marginals_of_encoded"),
            "sklearn-crfsuite marginals / ours": ratio(pair, "theirs", "ours"),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = Path(__file__).resolve().parent
    parser.add_argument("--data", type=Path, default=root.parent.parent / "shared" / "data")
    parser.add_argument("--out", type=Path, default=root / "results" / "decoding.json")
    parser.add_argument("--models", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        models = options.models or Path(temporary)
        models.mkdir(parents=True, exist_ok=True)
        results = {
            name: run(name, options.data, models, options.rounds)
            for name, (folder, *_) in TASKS.items()
            if (options.data / folder).is_dir()
        }
    write_results(options.out, {"results": results})
    for name, found in results.items():
        print(name, json.dumps(found["ratios"], indent=2), f"F1 {found['f1']:.4f}")


if __name__ == "__main__":
    main()
