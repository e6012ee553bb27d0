"""L1 training against CRFsuite's OWL-QN, in one run on CoNLL-2000 chunking (observed weights, c1 = 1).

    python benchmarks/l1.py [--data DIR] [--output results/l1] [--rounds 3] [--quick]

Our trainings and theirs alternate. Seconds include the encoding of the attributes; those to an objective end at the
first iteration that reaches it. --quick gives CRFsuite 30 iterations and multiplies their time by ten. Writes JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pycrfsuite
from common import HERE, Sequences, attributes, seconds

from crfkit import L1, ChainCRF, Template, evaluate
from crfkit._core import available_kernels

ITERATIONS = 300  # of CRFsuite
TARGETS = 16_834.2, 16_802.5  # objectives; the optimum is 16,801.58


def ours(X: Sequences, y: list[list[str]]) -> tuple[dict[str, Any], ChainCRF]:
    crf = ChainCRF(penalty=L1.from_crfsuite(1.0))
    whole = seconds(lambda: crf.fit(X, y))
    result = crf.result_
    before = whole - result.seconds
    to = {str(t): next((before + row.seconds for row in result.trace if row.value <= t), None) for t in TARGETS}
    return {
        "fit": whole,
        "before_the_solver": before,
        "seconds_to": to,
        "iterations": result.iterations,
        "evaluations": result.evaluations,
        "objective": result.value,
        "nonzeros": int(np.count_nonzero(result.w)),
    }, crf


def theirs(X: Sequences, y: list[list[str]], model: Path, iterations: int) -> dict[str, Any]:
    trainer = pycrfsuite.Trainer(verbose=False)
    append = seconds(lambda: [trainer.append(a, b) for a, b in zip(X, y, strict=True)])
    trainer.select("lbfgs")
    trainer.set_params({"c1": 1.0, "c2": 0.0, "max_iterations": iterations})
    train = seconds(lambda: trainer.train(str(model)))
    log = trainer.logparser.iterations
    return {
        "append": append,
        "train": train,
        "iterations": len(log),
        "objective": log[-1]["loss"],
        "append_and_300_iterations": append + train * ITERATIONS / len(log),
    }


def table(r: dict[str, Any]) -> str:
    def med(values: list[float]) -> str:
        return f"{statistics.median(values):.2f} s" if None not in values else "not reached"

    mine, other = r["crfkit"], r["crfsuite"]
    whole = med([run["append_and_300_iterations"] for run in other])
    rows = [
        ("to the default stop", med([run["fit"] for run in mine]), whole),
        *((f"to {t:,}", med([run["seconds_to"][str(t)] for run in mine]), "") for t in TARGETS),
        ("objective", f"{mine[-1]['objective']:.2f}", f"{other[-1]['objective']:.2f}"),
        ("iterations", f"{mine[-1]['iterations']}", f"{other[-1]['iterations']}"),
    ]  # fmt: skip
    lines = ["| | crfkit | CRFsuite, 300 iterations |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]
    lines += [f"{k}: {v:.1f} × faster" for k, v in r["times_faster"].items()]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data" / "conll2000")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "l1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="30 iterations of CRFsuite, scaled")
    options = parser.parse_args()
    if not options.data.is_dir():
        print(f"skipped: the CoNLL-2000 data are not in {options.data}; see benchmarks/README.md")
        return
    template = Template.read(options.data / "chunking.template")
    X, y = attributes(options.data / "train.txt", template)
    X_test, y_test = attributes(options.data / "test.txt", template)
    mine, other = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            run, crf = ours(X, y)
            mine.append(run)
            other.append(theirs(X, y, Path(folder) / "model", 30 if options.quick else ITERATIONS))
    ratios: dict[str, list[float]] = {"the default stop": [], **{f"{t:,}": [] for t in TARGETS}}
    for a, b in zip(mine, other, strict=True):
        ratios["the default stop"].append(b["append_and_300_iterations"] / a["fit"])
        for t in TARGETS:
            if (reached := a["seconds_to"][str(t)]) is not None:
                ratios[f"{t:,}"].append(b["append_and_300_iterations"] / reached)
    results = {
        "machine": {
            "cores": os.cpu_count(),
            "processor": platform.processor() or platform.machine(),
            "kernels": available_kernels()[0],
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        "scaled_from_30_iterations": options.quick,
        "crfkit": mine,
        "crfsuite": other,
        "times_faster": {name: statistics.median(found) for name, found in ratios.items() if found},
        "f1": evaluate(y_test, crf.predict(X_test)).overall.f1,
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
