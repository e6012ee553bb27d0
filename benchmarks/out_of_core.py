"""Training from disk against training from memory: peak memory, seconds and F1.

    python benchmarks/out_of_core.py FOLDER [--times 8] [--output benchmarks/results/out_of_core.json]

FOLDER has conll2000/train.txt, test.txt and chunking.template. The training file is repeated to make it long. Each run
has a process of its own; all train with the default solver to its own stop.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import write_results


def run(folder: Path, train: Path, stored: bool) -> dict[str, Any]:
    from crfkit import ChainCRF, evaluate, read_columns

    start = time.perf_counter()
    crf = ChainCRF(folder / "chunking.template")
    crf.fit_file(train, out_of_core=stored)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    X, y = read_columns(folder / "test.txt")
    return {
        "from": "disk" if stored else "memory",
        "megabytes of text": round(train.stat().st_size / 1e6, 1),
        "peak megabytes": round(peak / 1024),
        "seconds": round(seconds, 1),
        "objective": round(crf.result_.value, 1),
        "status": crf.result_.status.name,
        "evaluations": crf.result_.trace[-1].evaluations,
        "f1": round(100 * evaluate(y, crf.predict(X)).overall.f1, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--times", type=int, default=8)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = options.folder / "conll2000"
    if options.one:
        print(json.dumps(run(folder, Path(options.one[0]), options.one[1] == "disk")))
        return
    results = []
    with tempfile.TemporaryDirectory() as place:
        for times in (1, options.times):
            train = Path(place) / "train.txt"
            train.write_bytes((folder / "train.txt").read_bytes() * times)
            for source in ("memory", "disk"):
                command = [sys.executable, "-W", "ignore", __file__, str(options.folder), "--one", str(train), source]
                results.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
                print(results[-1], flush=True)
    if options.output:
        write_results(options.output, {"rows": results})


if __name__ == "__main__":
    main()
