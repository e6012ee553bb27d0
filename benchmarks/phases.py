"""Which share of the machine each phase of training a chain reaches: memory bandwidth and arithmetic.

    python benchmarks/phases.py [--data DIR] [--rounds 5] [--quick] [--output results/phases]

First, machine_peak.cpp measures what the machine can do: bytes per second of a[i] = b[i] + s·c[i] on vectors that no
cache holds, and additions and multiplications per second in registers, for every set of kernels that the machine runs,
in double and in single precision. $CXX compiles it, or g++, for each set of kernels with the options of the core. Then
every phase is timed on CoNLL-2000, and the bytes that it must move and the operations that it must do are counted from
the data. Both are those of the plain formula; kernels that group attributes do less. The operations of a phase are
compared with the peak of the kernels in use, in the precision of the phase and on as many threads as it uses.

T tokens, A attributes in all tokens, P pairs (an attribute at a token, a label that it has a weight for), L labels,
W weights:
    encode        bytes: the text, and 4·A of ids
    plan          bytes: 4·A of ids read, 4·A written
    epoch         bytes: 3·8·P (weights read, read again and written); operations: 2·P + 6·T·L²
    scores and gradients   bytes: 3·8·P; operations: 2·P
    recursions    bytes: 3·8·T·L (scores, forward, backward), or 3·4·T·L in single precision; operations: 6·T·L²
                  (forward, backward, transitions)
    vectors       bytes per iteration: 4·W·2·2·m for m pairs in single precision, read twice (2·W·2·2·m from 2²⁰ weights
                  on); 10·8·W for the rest
    tagging       operations: P + 2·T·L²; bytes: 8·P
Recursions are timed on the same sequences without attributes; scores and gradients are what is left of an evaluation.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import HERE, RESULTS, SCRATCH, SHARED, Report, Store, markdown, median_seconds, say, seconds

from crfkit import L2, Template
from crfkit._core import available_kernels, default_kernels
from crfkit._threads import count_threads
from crfkit.chain.encoding.sequences import learn_file
from crfkit.chain.fields.field import ChainField
from crfkit.chain.inference import ChainInference
from crfkit.chain.losses.online import SingleEpochs
from crfkit.losses import ChainLikelihood
from crfkit.solvers import LBFGS

MEMORY = LBFGS().memory
OTHER_BYTES = 10 * 8  # point, gradient, direction, the trial point and its gradient: read, written, or both
FLAGS = {  # of the kernels in CMakeLists.txt
    "generic": [],
    "avx2": ["-mavx2", "-mfma"],
    "avx512": ["-mavx2", "-mfma", "-mavx512f", "-mavx512dq", "-mavx512vl", "-mprefer-vector-width=512"],
}


def peaks(quick: bool) -> Report:
    """Return gigabytes per second by number of threads, and 10⁹ operations per second of every set of kernels."""
    found: Report = {"kernels": default_kernels(), "arithmetic": {}}
    for kernels in available_kernels():
        program = SCRATCH / f"machine_peak_{kernels}"
        program.parent.mkdir(parents=True, exist_ok=True)
        compiler = [os.environ.get("CXX", "g++"), "-O3", *FLAGS[kernels], "-pthread", "-o", str(program)]
        subprocess.run([*compiler, str(HERE / "machine_peak.cpp")], check=True)
        found["arithmetic"][kernels] = measured(program, "arithmetic")
        if kernels == default_kernels():
            found |= measured(program, "memory", "64" if quick else "512")
    return found


def measured(program: Path, *arguments: str) -> Report:
    """Return what machine_peak prints, by name and number of threads."""
    found: Report = {}
    what, *rest = arguments
    text = subprocess.check_output([program, what, str(count_threads(None)), *rest], text=True)
    for name, threads, figure in map(str.split, text.splitlines()):
        found.setdefault(name, {})[threads] = float(figure)
    return found


def pair_bytes(n_weights: int) -> int:
    """Return the bytes per weight of an iteration that are read of the memory of past steps: all pairs, twice."""
    return 2 * 2 * MEMORY * (2 if n_weights >= 1 << 20 else 4)


def vector_seconds(loss: ChainLikelihood, evaluation: float, iterations: int) -> float:
    """Return the seconds of an iteration of L-BFGS without its evaluations."""
    result = LBFGS(max_iterations=iterations).minimize(loss, L2(1.0), np.zeros(loss.size))
    return max(1e-9, (result.seconds - result.evaluations * evaluation) / result.iterations)


def phases(train: Path, template_file: Path, rounds: int) -> tuple[Report, Report]:
    """Return the counts of the data, and seconds, bytes, operations and threads of every phase."""
    template = Template.read(template_file)
    encode = median_seconds(lambda: learn_file(train, template, 1), max(1, rounds // 2))
    corpus = learn_file(train, template, 1)
    data, n_labels = corpus.data, len(corpus.classes)
    sizes = n_labels, len(corpus.vocabulary.attributes)
    begin = time.perf_counter()
    field = ChainField.from_data(data, *sizes, all_states=False, all_transitions=False)
    loss = ChainLikelihood(data, field, precision="auto")  # as in training
    plan = time.perf_counter() - begin
    full_field = ChainField.from_data(data, *sizes, all_states=True, all_transitions=True)
    full = ChainLikelihood(data, full_field, precision="auto")
    nothing = replace(data, offsets=np.zeros_like(data.offsets), attributes=data.attributes[:0], values=None)
    bare_field = ChainField.from_data(nothing, *sizes, all_states=False, all_transitions=False)
    bare = ChainLikelihood(nothing, bare_field, precision="auto")
    timed: dict[str, list[float]] = {name: [] for name in ("evaluation", "recursions", "full", "epoch", "tagging")}
    online = loss.epochs()  # as the default solver begins
    online.start(np.zeros(loss.size))
    order, steps = np.arange(len(data)), np.full(len(data), 0.05)
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(scale=0.1, size=some.size) for name, some in (("o", loss), ("b", bare), ("f", full))}
    tagger = ChainInference(field, weights["o"])
    tagger.decode(data)
    for _ in range(rounds):
        timed["evaluation"].append(median_seconds(lambda: loss.at(weights["o"]).grad, 5))
        timed["recursions"].append(median_seconds(lambda: bare.at(weights["b"]).grad, 5))
        timed["full"].append(median_seconds(lambda: full.at(weights["f"]).grad, 5))
        timed["epoch"].append(seconds(lambda: online.sgd(order, steps, l2=1.0, averaged=False)))
        timed["tagging"].append(median_seconds(lambda: tagger.decode(data), 3))
    took = {name: statistics.median(times) for name, times in timed.items()}
    T, L, A = data.n_positions, n_labels, len(data.attributes)
    assert field.state_offsets is not None
    P = int(np.diff(field.state_offsets)[data.attributes].sum())
    counts = {
        "tokens": T, "labels": L, "attributes": A, "pairs": P, "weights": loss.size, "all_weights": full.size,
    }  # fmt: skip
    n = count_threads(None)
    size = 4 if loss.used == "single" else 8  # bytes of a score or a message
    epochs_in = "single" if isinstance(online, SingleEpochs) else "double"

    def row(seconds: float, moved: float, operations: float, threads: int = n, precision: str | None = None) -> Report:
        report = {"seconds": seconds, "bytes": moved, "operations": operations, "threads": threads}
        return report | {"precision": precision or loss.used}

    rows = {
        "encode: text to attribute ids": row(encode, train.stat().st_size + 4 * A, 0, 1, "–"),
        "plan: ids to what the kernels read": row(plan, 8 * A, 0, precision="–"),
        "stochastic epoch": row(took["epoch"], 24 * P, 2 * P + 6 * T * L**2, 1, epochs_in),
        "evaluation": row(took["evaluation"], 24 * P + 3 * size * T * L, 2 * P + 6 * T * L**2),
        "evaluation: scores and gradients": row(max(1e-9, took["evaluation"] - took["recursions"]), 24 * P, 2 * P),
        "evaluation: recursions": row(took["recursions"], 3 * size * T * L, 6 * T * L**2),
        "evaluation, all pairs": row(took["full"], 24 * A * L + 3 * size * T * L, 2 * A * L + 6 * T * L**2),
    }
    for name, some, one in (("", loss, took["evaluation"]), (", all pairs", full, took["full"])):
        vectors = vector_seconds(some, one, 15)
        rows[f"vectors of an iteration{name}"] = row(
            vectors, (pair_bytes(some.size) + OTHER_BYTES) * some.size, (8 * MEMORY + 12) * some.size
        )
    rows["tagging of encoded sequences"] = row(took["tagging"], 8 * P, P + 2 * T * L**2, precision="double")
    return counts, rows


def shares(peak: Report, rows: Report) -> None:
    """Add the shares of the machine to every phase, on as many threads as it uses and in its precision."""
    arithmetic = peak["arithmetic"][peak["kernels"]]
    for found in rows.values():
        threads = str(found["threads"])
        found["bandwidth_share"] = found["bytes"] / found["seconds"] / 1e9 / peak["memory"][threads]
        if found["operations"]:
            most = arithmetic[found["precision"]][threads]
            found["arithmetic_share"] = found["operations"] / found["seconds"] / 1e9 / most


def table(results: Report) -> str:
    peak, rows = results["peak"], results["phases"]
    threads = sorted(peak["memory"], key=int)
    memory = [
        (f"{n} thread{'' if n == '1' else 's'}", f"{peak['memory'][n]:.1f} GB/s", f"{peak['cache'][n]:.1f} GB/s")
        for n in threads
    ]
    arithmetic = [
        (
            f"{kernels}{' (in use)' if kernels == peak['kernels'] else ''}",
            *(f"{found[precision][n]:.0f}" for precision in ("double", "single") for n in threads),
        )
        for kernels, found in peak["arithmetic"].items()
    ]
    columns = [
        f"{precision}, {n} thread{'' if n == '1' else 's'}" for precision in ("double", "single") for n in threads
    ]
    phases = [
        (
            name,
            f"{f['threads']}",
            f["precision"],
            f"{1e3 * f['seconds']:,.1f} ms",
            f"{f['bytes'] / f['seconds'] / 1e9:.1f} GB/s",
            f"{f['bandwidth_share']:.2f} ×",
            f"{f['operations'] / f['seconds'] / 1e9:.1f}" if f["operations"] else "–",
            f"{f['arithmetic_share']:.0%}" if f["operations"] else "–",
        )
        for name, f in rows.items()
    ]
    head = (
        "phase",
        "threads",
        "precision",
        "time",
        "moves",
        "of the memory's speed",
        "10⁹ operations/s",
        "of the peak",
    )
    return "\n".join(
        (
            markdown(("speed of memory", "long vectors", "vectors of 2 MB"), memory),
            markdown(("10⁹ operations per second", *columns), arithmetic),
            markdown(head, phases),
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED / "data" / "conll2000")
    parser.add_argument("--output", type=Path, default=RESULTS / "phases")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="300 sentences and one round, to try the command")
    options = parser.parse_args()
    if not options.data.is_dir():
        print(f"skipped: the CoNLL-2000 data are not in {options.data}; see benchmarks/README.md")
        return
    train = options.data / "train.txt"
    if options.quick:
        options.output, options.rounds = SCRATCH / "phases_quick", 1
        SCRATCH.mkdir(parents=True, exist_ok=True)
        sentences = train.read_text(encoding="utf-8").split("\n\n")[:300]
        train = SCRATCH / "first_300.txt"
        train.write_text("\n\n".join(sentences) + "\n\n", encoding="utf-8")
    store = Store(options.output.with_suffix(".json"), keep=False)
    found: Any = store.part("peak", lambda: peaks(options.quick))
    say(f"the machine: {found}")
    counts, rows = phases(train, options.data / "chunking.template", options.rounds)
    shares(found, rows)
    store.results |= {"counts": counts, "phases": rows}
    store.write()
    text = table(store.results)
    options.output.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
    if wrong := [name for name, found in rows.items() if found.get("arithmetic_share", 0.0) > 1.0]:
        raise SystemExit(f"above the peak of the machine, which cannot be: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
