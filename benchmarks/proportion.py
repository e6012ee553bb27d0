"""Seconds and peak memory of small inputs that once took far too much, each in a process of its own.

    python benchmarks/proportion.py [--output benchmarks/results/proportion.json] [--only labels,columns]
        [--before FOLDER]

    labels   `crfkit graph train` on two columns of 300 labels, 900 and 2,700 rows (30 KB)
    score    log-likelihood of 200 rows of 100 columns under a dense graph
    pickle   search for a CRFsuite model in a pickle of 20 MB that has none
    columns  StructureLearner on 30 columns of 5 levels and 3,000 rows
    images   ImageSegmenter on 40 images of 250 × 200 with default features, six iterations

--before runs the same on another version: a folder that holds its `crfkit` package, compiled core included.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from common import WATCHER, Report, say, write_results

MEMORY = 16 << 30  # bytes of address space that a case may take
CASES: dict[str, str] = {
    "labels 900": "labels(900)",
    "labels 2700": "labels(2700)",
    "score": "score()",
    "pickle": "pickled()",
    "columns": "columns()",
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
    learner = StructureLearner(edge_strength=0.6, refit=None, random_state=0).fit(Y)
    begin = time.perf_counter()
    learner.log_likelihood(Y)
    print(json.dumps({"scoring_seconds": time.perf_counter() - begin, "edges": len(learner.edges_)}))


def pickled() -> None:
    """Search a pickle of many small objects."""
    import pickle

    import numpy as np

    from crfkit.convert.pickled import find_model

    content = ["lCRF", *(f"sklearn_crfsuite {k}" for k in range(800_000))]
    data = np.frombuffer(pickle.dumps(content, protocol=2), dtype=np.uint8)
    assert find_model(data) is None


def columns() -> None:
    """Learn the graph of columns of five levels."""
    import numpy as np

    from crfkit import StructureLearner

    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(3000, 6))
    levels = np.digitize(hidden[:, np.arange(30) % 6] + rng.normal(size=(3000, 30)), [-1.2, -0.4, 0.4, 1.2])
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
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", WATCHER, sys.executable, "-W", "ignore", "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    peak, _, printed = done.stdout.partition("\n")
    found: Report = {"seconds": round(time.perf_counter() - begin, 2), "peak_mb": round(int(peak) / 1e6)}
    if done.returncode:
        found["ended"] = "with an error"
    elif printed.strip():
        found |= json.loads(printed)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--before", type=Path, help="a folder with another version of crfkit")
    options = parser.parse_args()
    found: Report = {}
    for name, case in CASES.items():
        if any(name.startswith(wanted) for wanted in options.only.split(",")):
            found[name] = {"after": measure(case, None)}
            if options.before is not None:
                found[name]["before"] = measure(case, options.before)
            say(f"{name}: {found[name]}")
    if options.output:
        write_results(options.output, {"cases": found})


if __name__ == "__main__":
    main()
