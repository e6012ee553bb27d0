"""Packages that tag with CRFsuite, run unchanged on crfkit: the same results, and the time of a call.

    pip install -e '.[peers]'
    python benchmarks/packages.py [--inputs 1000] [--out benchmarks/results/packages.json] [PACKAGE ...]

Each package runs twice in a process of its own, once as it is and once after `crfkit.compat.install()`, on the same
generated inputs; what it returns is compared. The feature sequences that it handed to CRFsuite are recorded, and both
taggers are then given the same ones in turn, in one process: tags must be identical, marginals and probabilities agree
to 1e-6, and the time of a call is the median of rounds that take turns. In bulk, the sequences go through
`sklearn_crfsuite.CRF.predict` of both.
"""

from __future__ import annotations

import argparse
import json
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from package_cases import CASES, MODELS, random_attributes

ROUNDS = 9


def work(package: str, n: int, results: Path, record: Path | None) -> None:
    """Run a package on its inputs and write what it returned; the process says what is underneath."""
    recorded: list[tuple[str, Any]] = []
    if record is not None:
        _record(recorded)
    case = CASES[package](n, results.parent)
    begin = time.perf_counter()
    found = [case.run(text) for text in case.inputs]
    seconds = time.perf_counter() - begin
    results.write_text(json.dumps({"seconds": seconds, "results": found}, ensure_ascii=False, default=float))
    if record is not None:
        record.write_bytes(pickle.dumps(recorded))


def _record(recorded: list[tuple[str, Any]]) -> None:
    """Note the model and the features of every call of pycrfsuite's Tagger."""
    import pycrfsuite

    class Tagger(pycrfsuite.Tagger):  # type: ignore[name-defined, misc]
        def open(self, name: Any) -> Any:
            self.name = str(name)
            return super().open(name)

        def tag(self, xseq: Any = None) -> Any:
            if xseq is not None:
                recorded.append((self.name, xseq))
            return super().tag(xseq) if xseq is not None else super().tag()

    pycrfsuite.Tagger = Tagger


def run_package(package: str, n: int, folder: Path) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
    """Return how a package did with either underneath, and the features that it handed to CRFsuite."""
    outcome = {}
    for underneath in ("crfsuite", "crfkit"):
        output = folder / underneath / f"{package}.json"
        output.parent.mkdir(exist_ok=True)
        command = [__file__, "--work", package, "--inputs", str(n), "--out", str(output)]
        if underneath == "crfkit":
            command = ["-m", "crfkit.compat", *command]
        else:
            command += ["--record", str(folder / f"{package}.pickle")]
        subprocess.run([sys.executable, *command], check=True)
        outcome[underneath] = json.loads(output.read_text())
    theirs, ours = (outcome[name]["results"] for name in ("crfsuite", "crfkit"))
    report = {
        "inputs": len(theirs),
        "equal": sum(a == b or _close(a, b) for a, b in zip(theirs, ours, strict=True)),
        "seconds_crfsuite": outcome["crfsuite"]["seconds"],
        "seconds_crfkit": outcome["crfkit"]["seconds"],
    }
    return report, pickle.loads((folder / f"{package}.pickle").read_bytes())


def _close(a: Any, b: Any) -> bool:
    """Whether two results are the same but for numbers that differ by less than 1e-6."""
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1e-6 * max(1.0, abs(a))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_close(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_close, a, b))
    return bool(a == b)


def compare_taggers(model: str, sequences: list[Any]) -> dict[str, Any]:
    """Give both taggers the same sequences: agreement, and the median time of a call."""
    import pycrfsuite

    from crfkit.compat import pycrfsuite as ours_module

    theirs, ours = pycrfsuite.Tagger(), ours_module.Tagger()
    theirs.open(model)
    ours.open(model)
    same, worst = 0, 0.0
    for x in sequences:
        labels = theirs.tag(x)
        same += labels == ours.tag(x)
        if len(x) == 0:
            continue
        worst = max(worst, abs(theirs.probability(labels) - ours.probability(labels)))
        for t in {0, len(x) // 2, len(x) - 1}:
            worst = max(worst, *(abs(theirs.marginal(y, t) - ours.marginal(y, t)) for y in theirs.labels()))
    times: dict[str, list[float]] = {"crfsuite": [], "crfkit": []}
    for _ in range(ROUNDS):
        for name, tagger in (("crfsuite", theirs), ("crfkit", ours)):
            begin = time.perf_counter()
            for x in sequences:
                tagger.tag(x)
            times[name].append((time.perf_counter() - begin) / len(sequences))
    micro = {name: 1e6 * statistics.median(each) for name, each in times.items()}
    ratio = statistics.median(b / a for a, b in zip(times["crfsuite"], times["crfkit"], strict=True))
    return {
        "model": Path(model).name,
        "sequences": len(sequences),
        "tokens": sum(map(len, sequences)),
        "same_tags": same,
        "largest_difference": worst,
        "crfsuite_us": micro["crfsuite"],
        "crfkit_us": micro["crfkit"],
        "call_ratio": ratio,
        **_bulk(model, sequences),
    }


def _bulk(model: str, sequences: list[Any]) -> dict[str, float]:
    """How many times faster `CRF.predict` is on all sequences at once."""
    import sklearn_crfsuite

    from crfkit.compat import sklearn_crfsuite as ours_module

    estimators = [sklearn_crfsuite.CRF(model_filename=model), ours_module.CRF(model_filename=model)]
    assert [list(row) for row in estimators[0].predict(sequences)] == [
        list(row) for row in estimators[1].predict(sequences)
    ]
    ratios = []
    for _ in range(ROUNDS):
        taken = []
        for estimator in estimators:
            begin = time.perf_counter()
            estimator.predict(sequences)
            taken.append(time.perf_counter() - begin)
        ratios.append(taken[0] / taken[1])
    return {"bulk_speedup": statistics.median(ratios)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "packages", nargs="*", default=[], metavar="PACKAGE", help=f"of {', '.join(CASES)}; default: all"
    )
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--record", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work, options.inputs, options.out, options.record)
        return
    report: dict[str, Any] = {"packages": {}, "taggers": []}
    with tempfile.TemporaryDirectory() as folder:
        for package in options.packages or CASES:
            outcome, recorded = run_package(package, options.inputs, Path(folder))
            report["packages"][package] = outcome
            print(f"{package}: {outcome['equal']} of {outcome['inputs']} results equal", flush=True)
            for model in dict.fromkeys(name for name, _ in recorded):
                sequences = [x for name, x in recorded if name == model]
                _show(report, package, compare_taggers(model, sequences))
        for package, model in MODELS():
            if not options.packages or package in options.packages:
                _show(report, f"{package} (random attributes)", compare_taggers(model, random_attributes(model, 1000)))
    if options.out:
        from common import write_results  # its children run without it

        write_results(options.out, report)


def _show(report: dict[str, Any], package: str, row: dict[str, Any]) -> None:
    report["taggers"].append({"package": package, **row})
    print(
        f"  {row['model']}: {row['same_tags']} of {row['sequences']} alike, largest difference "
        f"{row['largest_difference']:.1e}; a call {row['crfsuite_us']:.1f} -> {row['crfkit_us']:.1f} µs "
        f"(x{row['call_ratio']:.2f}), "
        f"bulk {row['bulk_speedup']:.1f} times faster",
        flush=True,
    )


if __name__ == "__main__":
    main()
