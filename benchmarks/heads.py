"""The default solver against that of another version, in turns: evaluations and seconds of training chains.

    python benchmarks/heads.py [--before PYTHON] [--rounds 3] [--tasks conll2000,spanish] [--peer]
        [--output benchmarks/results/heads.json]

    conll2000   phrases of CoNLL-2000, the template of its folder, observed pairs, L2(2): CRFsuite's c2 = 1
    all_pairs   the same with all 7,448,606 weights, L2(1)
    l1          the same data, observed pairs, L1(1)
    spanish     names of CoNLL-2002, usual features of words, observed pairs, L2(2)
    tags        parts of speech of CoNLL-2000 (44 labels), the same features
    small       20, 200 and 500 sentences of CoNLL-2000, the same features: medians of five fits each
    warm        one sentence added to 500, from the last weights (warm_start=True), three times

PYTHON is the interpreter of an environment that has the other version. Each run has a process of its own; versions take
turns. With --peer, CRFsuite trains on the data of `spanish` and `tags` as well, once, to its own stop. Seconds depend
on the load of the machine, evaluations do not. The file of results is written after each task, and keeps the tasks of
earlier runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

SHARED = Path(__file__).resolve().parents[2] / "shared"
# Values of the objective whose evaluations are counted: 0.1 % above the least known and near it.
LEVELS = {
    "conll2000": (12_900.0, 12_887.3),
    "all_pairs": (7_713.0, 7_705.4),
    "l1": (16_834.2, 16_802.5),
    "spanish": (8_489.8, 8_481.5),
    "tags": (17_668.5, 17_651.1),
}
SMALL = (20, 200, 500)


def words_of(path: Path, encoding: str = "utf-8") -> list[list[list[str]]]:
    blocks = path.read_text(encoding=encoding).split("\n\n")
    return [rows for block in blocks if (rows := [line.split() for line in block.splitlines() if line.strip()])]


def features(words: list[str]) -> list[list[str]]:
    """Usual features of words: form, case, prefixes, suffixes, neighbours."""
    found = []
    for t, word in enumerate(words):
        row = ["bias", f"w={word}", f"l={word.lower()}", f"cap={word[0].isupper()}", f"up={word.isupper()}"]
        row += [f"s{k}={word[-k:]}" for k in (1, 2, 3)] + [f"p{k}={word[:k]}" for k in (2, 3)]
        row += [f"digit={any(c.isdigit() for c in word)}", f"hyphen={'-' in word}"]
        for d in (-2, -1, 1, 2):
            other = words[t + d] if 0 <= t + d < len(words) else "_"
            row.append(f"{d}w={other.lower()}")
            if abs(d) == 1:
                row += [f"{d}cap={other[0].isupper()}", f"{d}s2={other[-2:]}"]
        row.append(f"pair={words[t - 1] if t else '_'}|{word}")
        found.append(row)
    return found


def corpus(task: str) -> tuple[list[Any], list[list[str]]]:
    """Return the sequences of attributes and the labels of a task."""
    if task == "spanish":
        rows, column = words_of(SHARED / "data/conll2002_spanish/esp.train", "latin-1"), -1
    else:
        rows, column = words_of(SHARED / "data/conll2000/train.txt"), 1 if task == "tags" else -1
    return [features([r[0] for r in s]) for s in rows], [[r[column] for r in s] for s in rows]


def reached(result: Any, value: float) -> tuple[int, float] | None:
    """Return the evaluations and the seconds of the solver until a value."""
    return next(((row.evaluations, row.seconds) for row in result.trace if row.value <= value), None)


def report(task: str, seconds: float, result: Any) -> dict[str, Any]:
    near, close = (reached(result, value) for value in LEVELS[task])
    before = seconds - result.seconds  # encoding
    return {
        "seconds": round(seconds, 3),
        "evaluations": result.evaluations,
        "objective": result.value,
        "evaluations_near": near and near[0],
        "seconds_near": near and round(before + near[1], 3),
        "evaluations_close": close and close[0],
        "seconds_close": close and round(before + close[1], 3),
    }


def run(task: str) -> dict[str, Any]:
    """Train in this process, with whatever version of crfkit it has."""
    import resource

    from crfkit import L1, L2, ChainCRF
    from crfkit.errors import StopTraining

    folder = SHARED / "data/conll2000"
    begin = time.perf_counter()
    if task in ("conll2000", "all_pairs", "l1"):
        whole = task == "all_pairs"
        options = {"all_possible_states": whole, "all_possible_transitions": whole}
        penalty = {"conll2000": L2(2.0), "all_pairs": L2(1.0), "l1": L1(1.0)}[task]
        crf = ChainCRF(
            folder / "chunking.template", penalty=penalty, tolerance=1e-8 if task == "l1" else 1e-5, **options
        )

        def stop(iteration: Any) -> None:
            if task == "l1" and iteration.row.value <= LEVELS["l1"][1]:
                raise StopTraining

        begin = time.perf_counter()
        crf.fit_file(folder / "train.txt", callbacks=[stop])
    else:
        X, y = corpus(task)
        if task == "small":
            return small(X, y)
        if task == "warm":
            return warm(X, y)
        crf = ChainCRF(penalty=L2(2.0))
        begin = time.perf_counter()
        crf.fit(X, y)
    found = report(task, time.perf_counter() - begin, crf.result_)
    return {**found, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}


def small(X: list[Any], y: list[list[str]]) -> dict[str, Any]:
    from crfkit import L2, ChainCRF

    ChainCRF().fit(X[:20], y[:20])
    found = {}
    for n in SMALL:
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            crf = ChainCRF(penalty=L2(2.0)).fit(X[:n], y[:n])
            times.append(time.perf_counter() - begin)
        taken = round(1e3 * statistics.median(times), 1)
        found[str(n)] = {"ms": taken, "evaluations": crf.result_.evaluations, "objective": crf.result_.value}
    return found


def warm(X: list[Any], y: list[list[str]]) -> dict[str, Any]:
    from crfkit import L2, ChainCRF

    crf = ChainCRF(penalty=L2(2.0), warm_start=True).fit(X[:500], y[:500])
    found = {}
    for n in (501, 502, 503):
        best = ChainCRF(penalty=L2(2.0), tolerance=1e-9).fit(X[:n], y[:n]).result_.value
        begin = time.perf_counter()
        crf.fit(X[:n], y[:n])
        taken = round(1e3 * (time.perf_counter() - begin), 1)
        close = reached(crf.result_, best * (1 + 1e-4))
        found[str(n)] = {"ms": taken, "evaluations": crf.result_.evaluations, "to_0.01_percent": close and close[0]}
    return found


def peer(task: str) -> dict[str, Any]:
    from common import crfsuite_train

    X, y = corpus(task)
    found = crfsuite_train(X, y, Path("/dev/null"), 10_000)
    return {name: found[name] for name in ("append", "train", "evaluations", "objective")}


def child(python: str, *arguments: str) -> dict[str, Any]:
    done = subprocess.run([python, "-W", "ignore", __file__, *arguments], check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", help="the interpreter of an environment with another version")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", default=",".join((*LEVELS, "small", "warm")))
    parser.add_argument("--peer", action="store_true", help="train CRFsuite on spanish and tags, too")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--peer-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one or options.peer_of:
        print(json.dumps(run(options.one) if options.one else peer(options.peer_of)))
        return
    from common import say, write_results

    if not (SHARED / "data").is_dir():
        print("skipped: there is no folder shared/data; see benchmarks/README.md")
        return
    versions = {"now": sys.executable} | ({"before": options.before} if options.before else {})
    kept = options.output is not None and options.output.exists()
    results: dict[str, Any] = json.loads(options.output.read_text()) if kept else {}
    for task in options.tasks.split(","):
        found: dict[str, Any] = {name: [] for name in versions}
        for k in range(options.rounds):
            for name, python in versions.items():
                found[name].append(child(python, "--one", task))
                say(f"{task}, round {k + 1}, {name}: {found[name][-1]}")
        if task in LEVELS and options.before:
            for kind in ("seconds", "seconds_near", "seconds_close", "evaluations_close"):
                pairs = zip(found["now"], found["before"], strict=True)
                ratios = [now[kind] / old[kind] for now, old in pairs if now[kind] and old[kind]]
                found[f"{kind}_now_over_before"] = round(float(np.median(ratios)), 3) if ratios else None
        if options.peer and task in ("spanish", "tags"):
            found["crfsuite"] = child(sys.executable, "--peer-of", task)
            whole = found["crfsuite"]["append"] + found["crfsuite"]["train"]
            found["times_faster"] = round(whole / statistics.median(run["seconds"] for run in found["now"]), 1)
            say(f"{task}: CRFsuite {found['crfsuite']}, {found['times_faster']} times")
        results[task] = found
        if options.output:
            write_results(options.output, results)


if __name__ == "__main__":
    main()
