"""Training and tagging of chains on a GPU: checked and timed in one call, on a machine without the compiled core.

    python benchmarks/gpu.py --export conll.npz [--data ../shared/data/conll2000]
    PYTHONPATH=src python benchmarks/gpu.py conll.npz [--big 100000000] [--out benchmarks/results/gpu.json]

The first call encodes CoNLL-2000 with the core and keeps its answers: value and gradient at fixed weights, and the
labels of its model. The second needs PyTorch, Triton, NumPy and array-api-compat only, and fails if an answer differs.
Without a file it runs on small generated chains; with --device torch:cpu, in plain PyTorch on the CPU.

all          7,448,606 weights, L2(1): an evaluation and its parts, training to 7705.4
observed     the same of the pairs that occur, L2(2), which is CRFsuite's c2 = 1: training to 12,887.3
tagging      best labels and marginals of the test set, repeated
big          an evaluation of so many tokens: the training set, repeated

Times are medians of CUDA events after a warm-up; trainings are timed by the clock, from data on the device.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from crfkit.errors import StopTraining
from crfkit.penalties import L2
from crfkit.solvers import make_solver
from crfkit.torch import kernels
from crfkit.torch.chain_arrays import ChainArrays
from crfkit.torch.chain_first_order import FirstOrder
from crfkit.torch.chain_loss import TensorChainLikelihood
from crfkit.torch.tagging import best_labels

SETS = {"all": (L2(1.0), 7705.4), "observed": (L2(2.0), 12_887.3)}
ROUNDS = 50
RELATIVE = {"double": 1e-9, "single": 1e-5}
Report = dict[str, Any]


def weights(size: int) -> Any:
    return 0.1 * np.random.default_rng(0).normal(size=size)


# --- where the core is


def export(path: Path, folder: Path) -> None:
    """Write the sets, the core's answers and the test set to a file."""
    from crfkit import ChainCRF, Template, read_columns
    from crfkit.chain.inference import ChainInference
    from crfkit.losses import ChainLikelihood

    X, y = read_columns(folder / "train.txt")
    test, _ = read_columns(folder / "test.txt")
    template = Template.read(folder / "chunking.template")
    stored: dict[str, Any] = {}
    for name, (penalty, _) in SETS.items():
        complete = name == "all"
        crf = ChainCRF(template, penalty, all_possible_states=complete, all_possible_transitions=complete)
        crf.fit(X, y)
        model = crf.trained_model()
        data = model.encode(X).with_labels(np.searchsorted(model.classes, np.concatenate(y)).astype(np.int32))
        at = ChainLikelihood(data, model.field).at(weights(model.field.size))
        held_out = model.encode(test)
        answers = {
            "value": at.value,
            "gradient": at.grad[:: max(1, len(at.grad) // 10_000)],
            "optimum": crf.result_.value,
            "labels": ChainInference(model.field, model.w).decode(held_out)[0],
        }
        parts = {"train": ChainArrays.of(data, model.field), "test": ChainArrays.of(held_out, model.field)}
        for part, arrays in parts.items():
            for item in fields(ChainArrays):
                array = getattr(arrays, item.name)
                if array is not None and not (part == "test" and item.name.startswith(("state_", "transition_"))):
                    stored[f"{name}/{part}/{item.name}"] = array
        stored |= {f"{name}/{key}": value for key, value in answers.items()}
    np.savez_compressed(path, **stored)


# --- where the GPU is


class Corpus:
    """A set of the file: the training set, the test set and the core's answers."""

    def __init__(self, stored: Any, name: str) -> None:
        def arrays(part: str) -> dict[str, Any]:
            found = {key.rsplit("/", 1)[1]: stored[key] for key in stored if key.startswith(f"{name}/{part}/")}
            return {key: int(value) if key.startswith("n_") else value for key, value in found.items()}

        train = arrays("train")
        of_field = {key: value for key, value in train.items() if key.startswith(("state_", "transition_"))}
        self.train = ChainArrays(**train)
        self.test = ChainArrays(**arrays("test"), **of_field)
        self.answers = {key: stored[f"{name}/{key}"] for key in ("value", "gradient", "optimum", "labels")}


def generated(n: int = 300) -> ChainArrays:
    """Return small chains of 9 labels."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 30, n)
    T = int(lengths.sum())
    labels = rng.integers(0, 9, T)
    attributes = np.sort((labels[:, None] * 7 + rng.integers(0, 40, (T, 6))) % 100, axis=1)
    starts, offsets = np.append(0, np.cumsum(lengths)), np.arange(T + 1) * 6
    return ChainArrays(9, 100, 81, starts, offsets, attributes.ravel(), labels=labels)


def repeated(arrays: ChainArrays, times: int) -> ChainArrays:
    """Return the sequences, so many times one after another."""

    def on(offsets: Any) -> Any:
        steps = offsets[-1] * np.arange(times, dtype=np.int64)
        return np.append(0, (offsets[1:][None, :] + steps[:, None]).ravel())

    labels = None if arrays.labels is None else np.tile(arrays.labels, times)
    return replace(
        arrays,
        starts=on(arrays.starts),
        offsets=on(arrays.offsets),
        attributes=np.tile(arrays.attributes, times),
        values=None if arrays.values is None else np.tile(arrays.values, times),
        labels=labels,
    )


def milliseconds(work: Callable[[], Any], device: torch.device, rounds: int = ROUNDS) -> float:
    """Return the median time of some work, by CUDA events where there are any."""
    for _ in range(3):
        work()
    times = []
    for _ in range(rounds):
        if device.type == "cuda":
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda.synchronize()
            begin.record()
            work()
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end))
        else:
            start = time.perf_counter()
            work()
            times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def relative(found: Any, expected: Any) -> float:
    """Return the largest error, relative to the largest number."""
    found, expected = (torch.as_tensor(x, dtype=torch.float64).cpu() for x in (found, expected))
    return float((found - expected).abs().max() / expected.abs().max().clamp_min(1.0))


def check(arrays: ChainArrays, device: str, answers: Report | None) -> Report:
    """Return errors of value and gradient: of kernels against plain PyTorch, and against the core's answers."""
    found: Report = {}
    for precision in ("double", "single"):
        loss = TensorChainLikelihood(arrays, device, precision)
        at = loss.at(loss.vector(weights(loss.size)))
        rows = loss.data
        plain = FirstOrder.safe(rows, *rows.scores.potentials(at.w))
        found[precision] = {
            "value": relative(at.value, plain.numbers()[0]),
            "residuals": relative(FirstOrder.fast(rows, *rows.scores.potentials(at.w)).residuals, plain.residuals),
            "gradient": relative(at.grad, plain.gradient(rows)),
        }
        if answers is not None:
            step = max(1, loss.size // 10_000)
            found[precision]["value of the core"] = relative(at.value, float(answers["value"]))
            found[precision]["gradient of the core"] = relative(at.grad[::step], answers["gradient"])
        for name, error in found[precision].items():
            if not error <= RELATIVE[precision]:
                raise SystemExit(f"{name} in {precision} precision is off by {error:.2g}")
    return found


def evaluation(arrays: ChainArrays, device: str, rounds: int = ROUNDS) -> Report:
    """Return milliseconds of an evaluation in single precision and of its parts, and the bytes that it has to move."""
    loss = TensorChainLikelihood(arrays, device, "single")
    rows, w = loss.data, loss.vector(weights(loss.size))
    unary, pairs = rows.scores.potentials(w)
    first = FirstOrder.fast(rows, unary, pairs)
    parts = {
        "scores": lambda: rows.scores.potentials(w),
        "messages": lambda: FirstOrder.fast(rows, unary, pairs),
        "gradient": lambda: first.gradient(rows),
        "whole": lambda: loss.at(w).value,
    }
    times = {name: milliseconds(work, loss.device, rounds) for name, work in parts.items()}
    T, L, entries = rows.packing.n_rows, loss.arrays.n_labels, len(rows.scores.lists.rows)
    # a row of the table for each entry, a table [T, L] out; u twice, a and b in and out, a before, residuals out
    moved = {
        "scores": 4 * (entries * (1 + L) + T * L),
        "messages": 4 * T * L * 9,
        "gradient": 4 * (entries * (1 + L) + loss.size),
    }
    moved["whole"] = sum(moved.values())
    return {
        "weights": loss.size,
        "tokens": T,
        "milliseconds": times,
        "bytes": moved,
        "terabytes_per_second": {name: 1e-9 * moved[name] / times[name] for name in times},
        "memory_bytes": torch.cuda.max_memory_allocated(loss.device) if loss.device.type == "cuda" else None,
    }


def bandwidth(device: torch.device) -> float:
    """Return how many terabytes per second copying a vector moves."""
    x = torch.empty((1 << 28) if device.type == "cuda" else 1 << 22, device=device)
    y = torch.empty_like(x)
    return 2 * x.nbytes * 1e-9 / milliseconds(lambda: y.copy_(x), device, 20)


def training(arrays: ChainArrays, device: str, penalty: L2, target: float, precision: str, runs: int = 3) -> Report:
    """Return how long L-BFGS takes to a value of the objective, and to its default stop."""
    begin = time.perf_counter()
    loss = TensorChainLikelihood(arrays, device, precision)
    _ = loss.at(loss.zeros()).value
    upload = time.perf_counter() - begin
    reached: list[tuple[float, int]] = []

    def stop(iteration: Any) -> None:
        if iteration.row.value <= target:
            reached.append((iteration.row.seconds, iteration.row.evaluations))
            raise StopTraining

    solver = make_solver("lbfgs")
    whole = solver.minimize(loss, penalty, loss.zeros())  # compiles what is compiled late
    for _ in range(runs):
        loss = TensorChainLikelihood(arrays, device, precision) if precision == "auto" else loss
        solver.minimize(loss, penalty, loss.zeros(), [stop])
    return {
        "upload_and_compile_seconds": upload,
        "target": target,
        "seconds": statistics.median(row[0] for row in reached) if reached else None,
        "evaluations": reached[-1][1] if reached else None,
        "default_stop": {
            "value": whole.value,
            "seconds": whole.seconds,
            "evaluations": whole.evaluations,
            "status": whole.status.name,
        },
    }


def tagging(corpus: Corpus, device: str, times: int) -> Report:
    """Return tokens per second of tagging from encoded data, and how many labels are those of the core."""
    loss = TensorChainLikelihood(corpus.train, device, "auto")
    w = make_solver("lbfgs").minimize(loss, SETS["all"][0], loss.zeros()).w.float()
    test = replace(corpus.test, labels=np.zeros(corpus.test.n_positions, np.int32))
    once = TensorChainLikelihood(test, device, "single").data
    best = best_labels(*once.scores.potentials(w), once.packing)
    labels = torch.empty_like(best)
    labels[once.packing.positions] = best
    same = float((labels.cpu() == torch.as_tensor(corpus.answers["labels"])).double().mean())
    many = TensorChainLikelihood(repeated(test, times), device, "single").data
    unary, pairs = many.scores.potentials(w)
    tokens = many.packing.n_rows
    found = {
        "scores and Viterbi": milliseconds(
            lambda: best_labels(*many.scores.potentials(w), many.packing), loss.device, 10
        ),
        "Viterbi": milliseconds(lambda: best_labels(unary, pairs, many.packing), loss.device, 10),
    }
    return {
        "tokens": tokens,
        "same_labels_as_the_core": same,
        "tokens_per_second": {name: 1e3 * tokens / time for name, time in found.items()},
    }


def machine(device: torch.device) -> Report:
    triton: Any = __import__("triton") if kernels.has_triton() else None
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU",
        "torch": torch.__version__,
        "triton": getattr(triton, "__version__", None),
        "python": sys.version.split()[0],
        "kernels": kernels.usable(device, 22),
    }


def run(path: Path | None, device: str, big: int, quick: bool) -> Report:
    """Return all figures; each is printed as soon as it is known."""
    found: Report = {}

    def part(name: str, work: Callable[[], Any]) -> None:
        found[name] = work()
        print(name, json.dumps(found[name], indent=1), flush=True)

    corpora: dict[str, Corpus] = {}
    if path is not None:
        with np.load(path) as stored:
            held = {key: stored[key] for key in stored.files}
        corpora = {name: Corpus(held, name) for name in SETS}
    train = generated() if path is None else corpora["all"].train
    rounds = 3 if quick else ROUNDS
    place = TensorChainLikelihood(generated(3), device).device
    part("machine", lambda: machine(place))
    part("copy_terabytes_per_second", lambda: bandwidth(place))
    if path is None:
        part("check", lambda: check(train, device, None))
        part("evaluation", lambda: evaluation(train, device, rounds))
        part("training", lambda: training(train, device, L2(1.0), 2615.0, "single", 1))
    for name, corpus in corpora.items():
        part(f"{name}: check", lambda corpus=corpus: check(corpus.train, device, corpus.answers))
        part(f"{name}: evaluation", lambda corpus=corpus: evaluation(corpus.train, device, rounds))
        for precision in ("single",) if quick else ("single", "auto"):
            part(
                f"{name}: training, {precision}",
                lambda corpus=corpus, name=name, precision=precision: training(
                    corpus.train, device, *SETS[name], precision, 1 if quick else 3
                ),
            )
    if corpora:
        part("tagging", lambda: tagging(corpora["all"], device, 1 if quick else 200))
    if big:
        times = max(1, big // train.n_positions)
        part("big: evaluation", lambda: evaluation(repeated(train, times), device, 5))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--export", type=Path, metavar="FILE")
    parser.add_argument("--data", type=Path, default=Path("../shared/data/conll2000"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--big", type=int, default=0, metavar="TOKENS")
    parser.add_argument("--quick", action="store_true", help="few rounds, to test this script")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.export is not None:
        export(options.export, options.data)
        return
    found = run(options.file, options.device, options.big, options.quick)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
