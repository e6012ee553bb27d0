"""What a tagger does in service, with two versions of crfkit in turn: load, save, predict; ratios of seconds.

    python benchmarks/serving.py BEFORE/python AFTER/python [--rounds 15] [--data DIR]

Each argument is the interpreter of an environment with one version, as for versions.py, which compares training. A
process of each does every job in turn with the other; of the ratios of all rounds the median counts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def jobs(data: Path, folder: Path) -> dict[str, Callable[[], Any]]:
    """Return what is measured, with everything that it needs."""
    from crfkit import ChainCRF, ChainModel, Template, read_columns

    template = Template.read(data / "chunking.template")
    X, y = read_columns(str(data / "train.txt"))
    test, _ = read_columns(str(data / "test.txt"))
    large = folder / "large.crf"  # a weight for each attribute and label: 7.4 million
    if not large.exists():
        ChainCRF(template, all_possible_states=True, solver="lbfgs", max_iterations=1).fit(X, y).save(large)
    model = ChainModel.load(large, n_threads=1)
    return {
        "load 7.4 million weights": lambda: ChainModel.load(large),
        "save 7.4 million weights": lambda: model.save(folder / "copy.crf"),
        "predict": lambda: model.predict(test),
        "predict sentence by sentence": lambda: [model.predict([x]) for x in test],
        "marginals": lambda: model.predict_marginals(test),
    }


def serve(data: Path, folder: Path) -> None:
    """Do the jobs whose names come in on standard input, and answer with their seconds."""
    warnings.simplefilter("ignore")  # one iteration does not converge
    ready = jobs(data, folder)
    print(json.dumps(list(ready)), flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        ready[json.loads(line)]()
        print(time.perf_counter() - start, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="*", help="two interpreters")
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        return serve(options.data / "conll2000", options.serve)
    if len(options.pythons) != 2:
        parser.error("two interpreters are needed")
    with tempfile.TemporaryDirectory() as folder:
        command = [__file__, "--data", str(options.data), "--serve", folder]
        workers = []
        for python in options.pythons:  # one after the other: the first writes the model that both read
            worker = subprocess.Popen([python, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            names = json.loads(worker.stdout.readline())
            workers.append(worker)

        def measure(worker: Any, name: str) -> float:
            worker.stdin.write(json.dumps(name) + "\n")
            worker.stdin.flush()
            return float(worker.stdout.readline())

        found = {}
        for name in names:
            for worker in workers:
                measure(worker, name)
            times = []
            for k in range(options.rounds):
                order = [0, 1] if k % 2 == 0 else [1, 0]
                pair = {k: measure(workers[k], name) for k in order}
                times.append((pair[0], pair[1]))
            old, new = (statistics.median(column) for column in zip(*times, strict=True))
            ratio = statistics.median(b / a for a, b in times)
            found[name] = {"old_seconds": old, "new_seconds": new, "ratio": ratio}
            print(f"{name:30} {old:8.4f} s {new:8.4f} s   new/old {ratio:.3f}", flush=True)
        for worker in workers:
            worker.stdin.close()
            worker.wait()
    from common import write_results

    write_results(HERE / "results" / "serving.json", found)


if __name__ == "__main__":
    main()
