"""Two versions of crfkit on the same work: objectives, evaluations and CPU seconds, in turns.

    python benchmarks/versions.py BEFORE/python AFTER/python [--rounds 5] [--data DIR] [--parts chain,l1,…]

Each argument is the interpreter of an environment with one version. Every round runs each part once with each version,
in processes of their own; the table has medians, and the median of the ratios of a round. Only the public API is used,
so that versions whose modules have moved can be compared. The first version saves a model in every part; the second
reads it and compares its predictions with those of its own fit.
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
TEMPLATE = (
    "U00:%x[-2,0]\nU01:%x[-1,0]\nU02:%x[0,0]\nU03:%x[1,0]\nU04:%x[2,0]\nU05:%x[-1,1]\nU06:%x[0,1]\nU07:%x[1,1]\nB\n"
)


def chain(data: Path, **options: Any) -> tuple[Any, Any]:
    from crfkit import ChainCRF, read_columns

    crf = ChainCRF(TEMPLATE, n_threads=1, **options).fit_file(str(data / "train.txt"))
    X, _ = read_columns(str(data / "test.txt"))
    return crf, X


def chain_l2(data: Path) -> tuple[Any, Any]:
    return chain(data / "conll2000", solver="lbfgs")


def chain_l1(data: Path) -> tuple[Any, Any]:
    from crfkit import L1

    return chain(data / "conll2000", penalty=L1(2.0), max_iterations=40)


def grids(data: Path) -> tuple[Any, Any]:
    import numpy as np

    from crfkit import GridCRF

    rng = np.random.default_rng(0)
    truth = [np.kron(rng.integers(0, 2, (6, 8)), np.ones((5, 5), int)) for _ in range(8)]
    X = [t[..., None] + rng.normal(0, 1.0, (*t.shape, 3)) for t in truth]
    crf = GridCRF(inference="trw", n_threads=1, max_iterations=30).fit(X, truth)
    return crf, X


def tables(data: Path) -> tuple[Any, Any]:
    import numpy as np

    from crfkit import GraphCRF

    rng = np.random.default_rng(1)
    X = rng.normal(size=(2000, 20))
    Y = (X @ rng.normal(size=(20, 8)) + rng.normal(size=(2000, 8)) > 0).astype(int)
    return GraphCRF(n_threads=1).fit(X, Y), X


def segmenter(data: Path) -> tuple[Any, Any]:
    from crfkit import ImageSegmenter
    from crfkit.synthetic import disc_images

    images, masks = disc_images(12)
    return ImageSegmenter(n_threads=1, max_iterations=30).fit(images, masks), images


def structure(data: Path) -> tuple[Any, Any]:
    from sklearn.datasets import load_digits

    from crfkit import StructureLearner

    Y = (load_digits().data >= 8).astype(int)
    return StructureLearner(edge_strength=100.0, n_threads=1).fit(Y), Y


def structure_path(data: Path) -> tuple[Any, Any]:
    import numpy as np

    from crfkit import StructureLearner

    rng = np.random.default_rng(2)
    Y = rng.integers(0, 2, (1500, 40))
    for j in range(1, 40):
        Y[:, j] = np.where(rng.random(1500) < 0.7, Y[:, j - rng.integers(1, min(j, 3) + 1)], Y[:, j])
    return StructureLearner(n_threads=1).fit(Y), Y


PARTS: dict[str, Callable[[Path], tuple[Any, Any]]] = {
    "chain": chain_l2,
    "l1": chain_l1,
    "grids": grids,
    "tables": tables,
    "segmenter": segmenter,
    "structure": structure,
    "path": structure_path,
}


def difference(a: Any, b: Any) -> float:
    """Return the largest difference of numbers, or 1 if labels differ."""
    import numpy as np

    found = 0.0
    for x, y in zip(a, b, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        if x.shape != y.shape:
            return 1.0
        if x.dtype.kind == "f":
            found = max(found, float(np.abs(x - y).max(initial=0.0)))
        elif not np.array_equal(x, y):
            return 1.0
    return found


def child(part: str, data: Path, folder: Path) -> None:
    """Fit, predict and save; print what the parent collects."""
    warnings.simplefilter("ignore")
    begin = time.process_time()
    estimator, X = PARTS[part](data)
    fitted = time.process_time()
    predicted = estimator.predict(X) if part not in ("structure", "path") else estimator.predict_marginals()
    seconds = time.process_time() - fitted
    result = estimator.result_
    row = {"objective": float(result.value), "evaluations": int(result.evaluations)}
    row |= {"fit": fitted - begin, "predict": seconds}
    first = folder / f"{part}.crf"
    if first.exists():
        model = type(estimator).load(first)
        again = model.predict(X) if part not in ("structure", "path") else model.predict_marginals()
        row["difference"] = difference(predicted, again)
    else:
        estimator.save(first)
    print(json.dumps(row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", help="two interpreters")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    parser.add_argument("--output", type=Path, help="a JSON file")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child[0], options.data, Path(options.child[1]))
        return
    if len(options.versions) != 2:
        parser.error("two interpreters are needed")
    found: dict[str, list[list[dict[str, Any]]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for part in options.parts.split(","):
                pair = []
                for python in options.versions:
                    command = [python, __file__, "--data", str(options.data), "--child", part, folder]
                    done = subprocess.run(command, capture_output=True, text=True, check=False)
                    if done.returncode:
                        sys.exit(f"{part} with {python} failed:\n{done.stderr}")
                    pair.append(json.loads(done.stdout.splitlines()[-1]))
                found.setdefault(part, []).append(pair)
    print(
        "| part | objective | evaluations | fit, CPU s | ratio | predict, CPU s | ratio | difference of predictions |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for part, rounds in found.items():
        cells = [part]
        for key in ("objective", "evaluations"):
            values = [rounds[-1][0][key], rounds[-1][1][key]]
            cells.append(f"{values[0]:.10g}" if values[0] == values[1] else f"{values[0]:.12g} → {values[1]:.12g}")
        for key in ("fit", "predict"):
            cells.append(" → ".join(f"{statistics.median(pair[k][key] for pair in rounds):.3f}" for k in (0, 1)))
            cells.append(f"{statistics.median(pair[1][key] / pair[0][key] for pair in rounds):.3f}")
        cells.append(f"{max(pair[1]['difference'] for pair in rounds):.0e}")
        print("| " + " | ".join(cells) + " |")
    if options.output:
        from common import write_results

        write_results(options.output, found)


if __name__ == "__main__":
    main()
