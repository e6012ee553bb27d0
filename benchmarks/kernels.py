"""The kernels of two versions of crfkit on the same generated chains, in turns: CPU seconds and their ratios.

    python benchmarks/kernels.py BEFORE/python AFTER/python [--kernels avx2,generic] [--labels 9,22,45] [--rounds 5]

Each argument is the interpreter of an environment with one version. The processes stay alive and take turns, on one
thread each; a figure is the least of the rounds, and a ratio above 1 means that AFTER is faster. Every case compares
the values that the two computed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

WORKS = ("value and gradient", "single precision", "partly labelled", "Hessian product", "diagonal", "marginals", "tag")


def works(n_labels: int, kernels: str, order: int) -> dict[str, Callable[[], float]]:
    import numpy as np

    from crfkit.chain.data import SequenceData
    from crfkit.chain.fields.field import ChainField
    from crfkit.chain.inference import ChainInference
    from crfkit.losses import ChainLikelihood

    rng = np.random.default_rng(0)
    lengths = rng.integers(5, 40, 40_000 // (20 + n_labels * (1 if order == 1 else n_labels // 3)))
    starts, n = np.append(0, np.cumsum(lengths)), int(lengths.sum())
    attributes = np.sort(rng.zipf(1.3, (n, 20)) % 5_000, axis=1).astype(np.int32)
    labels = rng.integers(0, n_labels, n).astype(np.int32)
    data = SequenceData(starts, np.arange(n + 1) * 20, attributes.ravel(), labels=labels)
    targets = np.eye(n_labels, dtype=bool)[labels]
    targets[rng.random(n) < 0.2] = True
    weak = SequenceData(starts, np.arange(n + 1) * 20, attributes.ravel(), targets=targets)
    field = ChainField.from_data(data, n_labels, 5_000, all_states=True, all_transitions=True, order=order)
    options: dict[str, Any] = {"n_threads": 1, "kernels": kernels}
    double, single = (
        ChainLikelihood(data, field, **options),
        ChainLikelihood(data, field, precision="single", **options),
    )
    partly = ChainLikelihood(weak, field, **options)
    w = rng.normal(scale=0.1, size=double.size)
    v = rng.normal(size=double.size)
    decoder = ChainInference(field, w, **options)

    def gradient(loss: Any) -> float:
        at = loss.at(w)
        return float(at.value + (at.grad * v).sum())

    return {
        "value and gradient": lambda: gradient(double),
        "single precision": lambda: gradient(single),
        "partly labelled": lambda: gradient(partly),
        "Hessian product": lambda: float((double.at(w).hessp(v) * v).sum()),
        "diagonal": lambda: float((double.at(w).hess_diag() * v).sum()),
        "marginals": lambda: float(decoder.node_marginals(data)[:, 0].sum()),
        "tag": lambda: float(decoder.decode(data)[1].sum()),
    }


def serve() -> None:
    """Answer each line (a case) with its CPU seconds and its value."""
    kept: dict[str, Any] = {}
    for line in sys.stdin:
        case = json.loads(line)
        key = json.dumps(case[:3])
        if key not in kept:
            kept = {key: works(*case[:3])}
        begin = time.process_time()
        value = kept[key][case[3]]()
        print(json.dumps([time.process_time() - begin, value]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    parser.add_argument("--kernels", default="auto")
    parser.add_argument("--labels", default="9,22,45")
    parser.add_argument("--works", default=",".join(WORKS))
    parser.add_argument("--order", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve()
    pipes = [
        subprocess.Popen([python, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for python in options.pythons
    ]

    def ask(pipe: Any, case: Any) -> Any:
        pipe.stdin.write(json.dumps(case) + "\n")
        pipe.stdin.flush()
        return json.loads(pipe.stdout.readline())

    print("| kernels | labels | | before | after | before / after |\n|---|---|---|---|---|---|")
    for kernels in options.kernels.split(","):
        for n_labels in map(int, options.labels.split(",")):
            for work in options.works.split(","):
                best, values = [float("inf")] * len(pipes), [0.0] * len(pipes)
                for turn in range(options.rounds + 1):
                    for k, pipe in enumerate(pipes):
                        taken, values[k] = ask(pipe, [n_labels, kernels, options.order, work])
                        best[k] = min(best[k], taken) if turn else best[k]
                assert abs(values[0] - values[-1]) <= 1e-4 * abs(values[0]), (work, values)
                seconds = " | ".join(f"{s:.4f} s" for s in best)
                print(f"| {kernels} | {n_labels} | {work} | {seconds} | {best[0] / best[-1]:.3f} |", flush=True)


if __name__ == "__main__":
    main()
