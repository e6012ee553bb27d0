"""Text features, templates and python-crfsuite: F1 of phrases on Spanish names and English chunks; tokens per second.

    python benchmarks/text_features.py [--data FOLDER] [--parts spanish,speed,…] [--output FILE]

Spanish: strengths of L2 are chosen on esp.testa, by F1, and esp.testb is used once for the chosen one. The template is
that of the other benchmarks (words and parts of speech); the preset `ner` sees words only. python-crfsuite has the
features and options of its well-known tutorial (words and parts of speech). `spanish_tags` adds the parts of speech to
the preset. Chunking: every fifth training sentence is held out to choose the strength. Hashing: F1 and sizes of model
files on CoNLL-2000. Speed: plain words of esp.testb in a list, one thread, CPU time; "cold" is the first call of a new
process, "warm" the median of the calls after it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
STRENGTHS = (0.1, 0.2, 0.5)


def words(X: list[Any]) -> list[list[str]]:
    return [[row[0] for row in rows] for rows in X]


def f1(crf: Any, X: Any, y: Any) -> float:
    from crfkit import evaluate

    return round(100 * evaluate(y, crf.predict(X)).overall.f1, 2)


def chosen(options: dict[str, Any], train: Any, dev: Any, test: Any, refit: Any = None) -> tuple[dict[str, Any], Any]:
    """Return the scores at the strength that is best on the development set, and the model."""
    from crfkit import L2, ChainCRF

    tried, best = {}, None
    for strength in STRENGTHS:
        begin = time.process_time()
        crf = ChainCRF(penalty=L2(strength), n_threads=1, **options).fit(*train)
        seconds, score = time.process_time() - begin, f1(crf, *dev)
        tried[strength] = score
        print(f"  L2({strength}): development F1 {score}, {seconds:.0f} CPU s", flush=True)
        if best is None or score > best[1]:
            best = (strength, score, crf, seconds)
    assert best is not None
    strength, score, crf, seconds = best
    if refit is not None:
        crf = ChainCRF(penalty=L2(strength), n_threads=1, **options).fit(*refit)
    found = {"l2": strength, "dev_f1": score, "test_f1": f1(crf, *test), "weights": len(crf.coef_)}
    return {**found, "fit_cpu_seconds": round(seconds, 1), "dev_f1_by_l2": tried}, crf


def spanish(data: Path, model: Path) -> dict[str, Any]:
    from crfkit import read_columns

    train, dev, test = (read_columns(data / f"conll2002_spanish/esp.{part}") for part in ("train", "testa", "testb"))
    plain = [(words(X), y) for X, y in (train, dev, test)]
    rows: dict[str, Any] = {}
    print("template, words and parts of speech", flush=True)
    rows["template, with parts of speech"], _ = chosen(
        {"template": data / "conll2000/chunking.template"}, train, dev, test
    )
    print("preset ner, words alone", flush=True)
    rows["preset ner, words alone"], crf = chosen({"features": "ner"}, *plain)
    crf.save(model)
    rows["python-crfsuite, tutorial's features, with parts of speech"] = tutorial(train, dev, test)
    return rows


def spanish_tags(data: Path) -> dict[str, Any]:
    from crfkit import TextFeatures, read_columns

    train, dev, test = (read_columns(data / f"conll2002_spanish/esp.{part}") for part in ("train", "testa", "testb"))
    print("preset ner, words and parts of speech", flush=True)
    features = replace(TextFeatures.make("ner"), columns=(1,))
    return {"preset ner, with parts of speech": chosen({"features": features}, train, dev, test)[0]}


def tutorial(train: Any, dev: Any, test: Any) -> dict[str, Any]:
    """Return the scores of python-crfsuite with the features and options of its tutorial for these data."""
    import pycrfsuite

    from crfkit import evaluate

    def neighbour(prefix: str, word: str, tag: str) -> list[str]:
        found = [f"{prefix}word.lower={word.lower()}", f"{prefix}word.istitle={word.istitle()}"]
        return [
            *found,
            f"{prefix}word.isupper={word.isupper()}",
            f"{prefix}postag={tag}",
            f"{prefix}postag[:2]={tag[:2]}",
        ]

    def features(rows: Any, t: int) -> list[str]:
        word, tag = rows[t]
        found = ["bias", *neighbour("", word, tag), f"word[-3:]={word[-3:]}", f"word[-2:]={word[-2:]}"]
        found.append(f"word.isdigit={word.isdigit()}")
        found += neighbour("-1:", *rows[t - 1]) if t > 0 else ["BOS"]
        found += neighbour("+1:", *rows[t + 1]) if t + 1 < len(rows) else ["EOS"]
        return found

    def expand(X: Any) -> list[list[list[str]]]:
        return [[features(rows, t) for t in range(len(rows))] for rows in X]

    trainer = pycrfsuite.Trainer(verbose=False)
    for x, y in zip(expand(train[0]), train[1], strict=True):
        trainer.append(x, y)
    trainer.set_params({"c1": 1.0, "c2": 1e-3, "max_iterations": 50, "feature.possible_transitions": True})
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        begin = time.process_time()
        trainer.train(path)
        seconds = time.process_time() - begin
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        scores = [round(100 * evaluate(y, [tagger.tag(x) for x in expand(X)]).overall.f1, 2) for X, y in (dev, test)]
    return {"dev_f1": scores[0], "test_f1": scores[1], "fit_cpu_seconds": round(seconds, 1)}


def chunking(data: Path) -> dict[str, Any]:
    from crfkit import read_columns

    X, y = read_columns(data / "conll2000/train.txt")
    train, dev = (
        [[row for n, row in enumerate(rows) if (n % 5 == 4) is out] for rows in (X, y)] for out in (False, True)
    )
    test = read_columns(data / "conll2000/test.txt")
    rows = {}
    for name, options in (
        ("template", {"template": data / "conll2000/chunking.template"}),
        ("preset chunking", {"features": "chunking"}),
    ):
        print(name, flush=True)
        rows[name], _ = chosen(options, train, dev, test, refit=(X, y))
    return rows


def hashing(data: Path) -> dict[str, Any]:
    """Return F1 on CoNLL-2000 and sizes of model files, with names and with hashed names."""
    from crfkit import L2, ChainCRF, read_columns

    train, test = (read_columns(data / f"conll2000/{part}.txt") for part in ("train", "test"))
    rows = {}
    for bits in (None, 20, 18, 16):
        template = data / "conll2000/chunking.template"
        crf = ChainCRF(template, penalty=L2(1.0), hash_bits=bits, n_threads=1).fit(*train)
        with tempfile.TemporaryDirectory() as folder:
            crf.save(Path(folder) / "m.crf")
            size = (Path(folder) / "m.crf").stat().st_size
        name = "names" if bits is None else f"2^{bits} buckets"
        rows[name] = {"test_f1": f1(crf, *test), "attributes": crf.n_attributes_, "file_mb": round(size / 1e6, 1)}
        print(name, rows[name], flush=True)
    return rows


def measure(model: str, file: str) -> dict[str, Any]:
    """Return tokens per second of predicting plain words on one thread; runs in a process of its own."""
    from crfkit import ChainCRF, read_columns

    X = words(read_columns(file)[0])
    n = sum(map(len, X))
    crf = ChainCRF.load(model, n_threads=1)
    rates = []
    for _ in range(8):
        begin = time.process_time()
        crf.predict(X)
        rates.append(n / (time.process_time() - begin))
    return {"tokens": n, "cold": round(rates[0]), "warm": round(statistics.median(rates[1:]))}


def speed(data: Path, model: Path) -> dict[str, Any]:
    if not model.exists():
        from crfkit import L2, ChainCRF, read_columns

        X, y = read_columns(data / "conll2002_spanish/esp.train")
        ChainCRF(features="ner", penalty=L2(STRENGTHS[0]), n_threads=1).fit(words(X), y).save(model)
    arguments = [sys.executable, __file__, "--measure", str(model), str(data / "conll2002_spanish/esp.testb")]
    runs = [json.loads(subprocess.run(arguments, check=True, capture_output=True).stdout) for _ in range(3)]
    best = {key: max(run[key] for run in runs) for key in ("cold", "warm")}
    return {"tokens": runs[0]["tokens"], "tokens_per_second_best_of_3": best, "runs": runs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    parser.add_argument("--parts", default="spanish,speed,chunking,hashing,spanish_tags")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "text_features.json")
    parser.add_argument("--resume", action="store_true", help="keep parts of this machine and these sources")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(*given.measure)))
        return
    from common import Store  # the process that is measured runs without it

    store = Store(given.output, given.resume)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "ner.crf"
        parts = {
            "spanish": lambda: spanish(given.data, model),
            "spanish_tags": lambda: spanish_tags(given.data),
            "speed": lambda: speed(given.data, model),
            "chunking": lambda: chunking(given.data),
            "hashing": lambda: hashing(given.data),
        }
        for part in given.parts.split(","):
            print(json.dumps(store.part(part, parts[part]), indent=2))


if __name__ == "__main__":
    main()
