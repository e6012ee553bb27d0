"""Seconds, CPU seconds and peak memory of small inputs that once took far too much, each in a process of its own.

    python benchmarks/proportion.py [--output benchmarks/results/proportion.json] [--only labels,columns]
        [--before FOLDER]

    labels   `crfkit graph train` on two columns of 300 labels, 900 and 2,700 rows (30 KB)
    score    log-likelihood of 200 rows of 100 columns under a dense graph
    pickle   search for a CRFsuite model in a pickle of 20 MB that has none
    columns  StructureLearner on 30 columns of 5 levels and 3,000 rows: a tree, hidden factors, independent
    images   ImageSegmenter on 40 images of 250 × 200 with default features, six iterations

--before runs the same on another version: a folder that holds its `crfkit` package, compiled core included.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from common import RESULTS, WATCHER, Report, Store, say

MEMORY = 16 << 30  # bytes of address space that a case may take
CASES: dict[str, str] = {
    "labels 900": "labels(900)",
    "labels 2700": "labels(2700)",
    "score": "score()",
    "pickle": "pickled()",
    "columns tree": "columns('tree')",
    "columns factors": "columns('factors')",
    "columns independent": "columns('independent')",
    "images": "images()",
}


def labels(rows: int) -> None:
    """Train two columns of 300 labels."""
    import numpy as np

    from crfkit import L2, GraphCRF

    rng = np.random.default_rng(0)
    Y = rng.integers(0, 300, size=(rows, 2)).astype(str)
    GraphCRF(penalty=L2(1.0), max_iterations=20).fit(rng.normal(size=(rows, 1)), Y)


def score() -> None:
    """Score rows of a dense graph of 100 columns."""
    import numpy as np

    from crfkit import StructureLearner

    rng = np.random.default_rng(0)
    Y = (rng.normal(size=(200, 100)) + rng.normal(size=(200, 3)) @ rng.normal(size=(3, 100)) > 0).astype(int)
    learner = StructureLearner(edge_strength=0.6, random_state=0).fit(Y)
    begin = time.perf_counter()
    learner.log_likelihood(Y)
    print(json.dumps({"scoring_seconds": time.perf_counter() - begin, "edges": len(learner.edges_)}))


def pickled() -> None:
    """Search a pickle of many small objects."""
    import pickle

    import numpy as np

    from crfkit.convert.pickled import find_model

    data = np.frombuffer(pickle.dumps(["lCRF", *bytes(10_000_000)], protocol=2), dtype=np.uint8)
    assert find_model(data) is None


def columns(kind: str) -> None:
    """Learn the graph of columns of five levels, whose names have no order."""
    import numpy as np

    from crfkit import StructureLearner

    rng = np.random.default_rng(0)
    levels = rng.integers(0, 5, size=(3000, 30))
    if kind == "factors":
        hidden = rng.normal(size=(3000, 6))
        levels = np.digitize(hidden[:, np.arange(30) % 6] + rng.normal(size=(3000, 30)), [-1.2, -0.4, 0.4, 1.2])
    elif kind == "tree":
        for child in range(1, 30):
            parent = rng.integers(child)
            levels[:, child] = np.where(rng.random(3000) < 0.5, levels[:, parent], levels[:, child])
    StructureLearner().fit(np.array(list("abcde"))[levels])


def images() -> None:
    """Train a segmenter on 40 images."""
    import numpy as np

    from crfkit import L2, ImageSegmenter

    rng = np.random.default_rng(0)
    y, x = np.mgrid[:250, :200]
    masks = [((y - a) ** 2 + (x - b) ** 2 < 2500).astype(int) for a, b in rng.integers(60, 140, size=(40, 2))]
    pictures = [np.clip(0.4 + 0.3 * mask + rng.normal(0, 0.2, mask.shape), 0, 1) for mask in masks]
    ImageSegmenter(block_size=2, penalty=L2(10.0), max_iterations=6, n_threads=2).fit(pictures, masks)


def cpu_seconds() -> float:
    """Return the CPU seconds of all processes that were started here and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(case: str, before: Path | None) -> Report:
    """Run a case in a process; return its seconds and the peak of its memory."""
    paths = [str(Path(__file__).parent)]
    if before is not None:
        paths.insert(0, str(before.resolve()))
    code = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY})); "
        f"sys.path[:0] = {paths!r}; sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(type(f))]; "
        f"import proportion; proportion.{case}"
    )
    if before is None:
        code = code.replace("sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(type(f))]; ", "")
    begin, used = time.perf_counter(), cpu_seconds()
    done = subprocess.run(
        [sys.executable, "-c", WATCHER, sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    peak, _, printed = done.stdout.partition("\n")
    found: Report = {
        "seconds": round(time.perf_counter() - begin, 2),
        "cpu_seconds": round(cpu_seconds() - used, 2),
        "peak_mb": round(int(peak) / 1e6),
    }
    if done.returncode:
        found["ended"] = (done.stderr.splitlines() or ["without a message"])[-1]
    elif printed.strip():
        found |= json.loads(printed)
    return found


def compare(case: str, before: Path | None) -> Report:
    """Run a case here and, if a folder is given, in the version before."""
    here = {"after": measure(case, None)}
    return here if before is None else {**here, "before": measure(case, before)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=RESULTS / "proportion.json")
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--before", type=Path, help="a folder with another version of crfkit")
    options = parser.parse_args()
    store = Store(options.output)
    for name, case in CASES.items():
        if any(name.startswith(wanted) for wanted in options.only.split(",")):
            say(f"{name}: {store.part(name, partial(compare, case, options.before))}")


if __name__ == "__main__":
    main()
