"""Every speed target for chains in one run next to CRFsuite on CoNLL-2000: the figure, and whether it is met.

    python benchmarks/speed.py [--parts fit,evaluation,…] [--resume] [--quick] [--output results/speed]

fit          `fit` from lists to the default stop on all cores and on one, and to within 0.1 % of the optimum, against
             CRFsuite's append + train. The headline of the README is this part
evaluation   one value and gradient, all cores, against CRFsuite's
epoch        one epoch of stochastic gradient descent, one thread, against CRFsuite's l2sgd
all_pairs    7,448,606 weights: value and gradient, the solver's own work per iteration, training, peak memory
l1           NLL + ‖w‖₁ against 300 iterations of CRFsuite's OWL-QN
modes        objective and F1 in every precision
memory       peak memory of training on observed pairs, ours and CRFsuite's, in processes of their own
growth       seconds of training from 10⁵ tokens of generated text on (the points of scaling.py), peak memory

Ours and theirs take turns, three rounds; a figure is the median of its rounds, a ratio the median of the ratios of the
rounds. CRFsuite has one thread. Its two long runs (`fit` to the end, 300 iterations of `l1`) are made in the first
round and compared with every round of ours; --peer-rounds 3 repeats them. --quick tries the command on a part of the
data, whose figures mean nothing. --resume keeps the parts that were measured on this machine with these sources.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scaling
from common import (
    RESULTS,
    SCRATCH,
    SHARED,
    Report,
    Store,
    child,
    first_below,
    median_seconds,
    say,
    seconds,
    watched,
)
from speed_data import Bench, evaluator, fitted, ratio, until
from speed_report import table

from crfkit import L1, L2, ChainCRF
from crfkit._threads import count_threads, using_threads
from crfkit.chain.losses.precision import PRECISIONS
from crfkit.losses import ChainLikelihood

OPTIMUM = 12_887.12  # the least value known of NLL + ‖w‖², observed pairs
CLOSE = 1.001 * OPTIMUM
L1_VALUES = (16_834.2, 16_802.5)  # where CRFsuite's OWL-QN is after 300 iterations; near the optimum
L1_ITERATIONS = 300
ALL_PAIRS = 7_705.4
VECTOR_ITERATIONS = 20
CRFSUITE_CHILD = """
import sys, pycrfsuite
from crfkit.text.template import Template
from crfkit.files.columns import ColumnFile, _sequences
template = Template.read(sys.argv[2])
trainer = pycrfsuite.Trainer(verbose=False)
for rows in _sequences(ColumnFile(sys.argv[1]), True):
    trainer.append([u for u, _ in template.expand([list(r[:-1]) for r in rows])], [r[-1] for r in rows])
trainer.select("lbfgs")
trainer.set_params({"c1": 0.0, "c2": 1.0, "max_iterations": 10})
trainer.train(sys.argv[3])
"""


# --- parts


def crfsuite_fit(bench: Bench) -> Report:
    import pycrfsuite

    run = bench.crfsuite(30 if bench.quick else 10_000)
    tagger = pycrfsuite.Tagger()
    tagger.open(str(bench.folder / "crfsuite"))
    near = first_below(run.pop("log"), CLOSE)
    run["seconds"] = run["append"] + run["train"]
    run["to_0.1_percent"] = None if near is None else run["append"] + near
    run["f1"] = bench.f1([tagger.tag(x) for x in bench.X_test])
    return run


def our_fit(bench: Bench, threads: int | None) -> Report:
    taken, crf = fitted(bench, penalty=L2.from_crfsuite(1.0), n_threads=threads)
    result = crf.result_
    return {
        "seconds": taken,
        "solver_seconds": result.seconds,
        "to_0.1_percent": until(taken, result, CLOSE),
        "objective": result.value,
        "iterations": result.iterations,
        "evaluations": result.evaluations,
        "weights": len(crf.coef_),
        "f1": bench.f1(crf.predict(bench.X_test)),
    }


def fit(bench: Bench) -> Report:
    """On all cores, on one, and CRFsuite's, in turns."""
    ours, single, theirs = [], [], []
    for k in range(bench.rounds):
        ours.append(our_fit(bench, None))
        single.append(our_fit(bench, 1))
        run = bench.long_run("fit", k, lambda: crfsuite_fit(bench))
        theirs.append(run)
        taken = (
            f"{ours[-1]['seconds']:.2f} s to {ours[-1]['objective']:.2f}, on one thread {single[-1]['seconds']:.2f} s"
        )
        say(f"fit, round {k + 1}: {taken}; CRFsuite {run['seconds']:.1f} s to {run['objective']:.2f}")
    whole, near = [run["seconds"] for run in theirs], [run["to_0.1_percent"] for run in ours]
    return {
        "threads": count_threads(None),
        "crfkit": ours,
        "crfkit_one_thread": single,
        "crfsuite": theirs,
        "times_faster": ratio(whole, [run["seconds"] for run in ours]),
        "times_faster_one_thread": ratio(whole, [run["seconds"] for run in single]),
        "times_faster_to_0.1_percent": ratio(whole, near),
        "times_faster_to_0.1_percent_each": ratio([run["to_0.1_percent"] for run in theirs], near),
    }


def evaluation(bench: Bench) -> Report:
    """In the default precision, on all cores and on one, and in double."""
    loss = bench.loss()
    work, double = evaluator(loss), evaluator(bench.loss(precision="double"))
    alone = evaluator(bench.loss(n_threads=1))
    ours, single, doubles, theirs = [], [], [], []
    for _ in range(bench.rounds):
        ours.append(median_seconds(work, 15))
        single.append(median_seconds(alone, 15))
        doubles.append(median_seconds(double, 15))
        theirs.append(bench.crfsuite(10)["per_evaluation"])
    return {
        "weights": loss.size,
        "crfkit": ours,
        "crfkit_one_thread": single,
        "crfkit_double": doubles,
        "crfsuite": theirs,
        "times_faster": ratio(theirs, ours),
        "times_faster_double": ratio(theirs, doubles),
    }


def epoch(bench: Bench) -> Report:
    """Epochs as solvers make them: the order is shuffled, the step size falls, nothing is averaged."""
    loss = bench.loss()
    online = loss.epochs()  # as the default solver begins
    n = online.n_sequences
    rng = np.random.default_rng(0)
    online.start(np.zeros(loss.size))
    ours, theirs = [], []
    for k in range(bench.rounds):
        times = []
        for _ in range(5):
            order, steps = rng.permutation(n), np.full(n, 0.1 / (1 + k))
            times.append(seconds(lambda order=order, steps=steps: online.sgd(order, steps, l2=2.0, averaged=False)))
        ours.append(statistics.median(times))
        theirs.append(bench.crfsuite(5, "l2sgd")["per_iteration"])
    return {"crfkit": ours, "crfsuite": theirs, "times_faster": ratio(theirs, ours)}


class Timed(ChainLikelihood):
    """The likelihood, with the seconds that evaluations take."""

    spent = 0.0

    def at(self, w: Any, warm: Any = None) -> Any:
        begin = time.perf_counter()
        found = super().at(w, warm)
        _ = found.value, found.grad
        self.spent += time.perf_counter() - begin
        return found


def all_pairs(bench: Bench) -> Report:
    found = large_iterations(bench)
    gc.collect()
    found["trainings"] = []
    for k in range(bench.rounds):
        found["trainings"].append(child(__file__, "--child", bench.train_file, bench.data / "chunking.template"))
        say(f"all pairs, round {k + 1}: {found['trainings'][-1]}")
    return found


def large_iterations(bench: Bench) -> Report:
    """Evaluations alone, in the default precision and in double; what is left of L-BFGS's iterations without them."""
    from crfkit.solvers import LBFGS

    loss = bench.loss(full=True)
    timed, work = Timed(loss.data, loss.field, precision=loss.precision), evaluator(loss)
    double = evaluator(ChainLikelihood(loss.data, loss.field))
    kinds = ("evaluation", "evaluation_double", "vector_work", "evaluation_in_training")
    found: Report = {"weights": loss.size, **{kind: [] for kind in kinds}}
    for _ in range(bench.rounds):
        found["evaluation"].append(median_seconds(work, 9))
        found["evaluation_double"].append(median_seconds(double, 9))
        timed.spent = 0.0
        with using_threads(count_threads(None)):  # as in a training
            result = LBFGS(max_iterations=VECTOR_ITERATIONS).minimize(timed, L2(1.0), np.zeros(loss.size))
        found["vector_work"].append((result.seconds - timed.spent) / result.iterations)
        found["evaluation_in_training"].append(timed.spent / result.evaluations)
    return found


def train_all_pairs(train: str, template: str) -> Report:
    """Train on all pairs in this process."""
    crf = ChainCRF(template, penalty=L2(1.0), all_possible_states=True, all_possible_transitions=True)
    taken = seconds(lambda: crf.fit_file(train))
    result = crf.result_
    return {
        "seconds": taken,
        "to_7705.4": until(taken, result, ALL_PAIRS),
        "solver_seconds": result.seconds,
        "iterations": result.iterations,
        "objective": result.value,
        "weights": len(crf.coef_),
    }


def l1(bench: Bench) -> Report:
    """Where fewer iterations of CRFsuite are run, their seconds are scaled to 300."""
    ours, theirs = [], []
    n = 30 if bench.quick else bench.l1_iterations
    for k in range(bench.rounds):
        taken, crf = fitted(bench, until=L1_VALUES[1], penalty=L1(1.0), tolerance=1e-8)
        run = {"seconds": taken, "objective": crf.result_.value, "nonzeros": crf.result_.trace[-1].nonzeros}
        ours.append(run | {f"to_{value}": until(taken, crf.result_, value) for value in L1_VALUES})
        peer = bench.long_run("l1", k, lambda: bench.crfsuite(n, c1=1.0, c2=0.0))
        peer.pop("log", None)
        theirs.append(peer | {"seconds": peer["train"] * L1_ITERATIONS / max(1, peer["iterations"])})
        say(f"l1, round {k + 1}: {ours[-1]}; CRFsuite {theirs[-1]['seconds']:.1f} s to {peer['objective']:.1f}")
    first = [run[f"to_{L1_VALUES[0]}"] for run in ours]
    return {
        "crfkit": ours,
        "crfsuite": theirs,
        "crfsuite_iterations": n,
        "times_faster": ratio([run["seconds"] for run in theirs], first),
    }


def memory(bench: Bench) -> Report:
    template, model = bench.data / "chunking.template", bench.folder / "measured"
    command = [
        sys.executable,
        "-m",
        "crfkit",
        "train",
        bench.train_file,
        "-t",
        template,
        "-m",
        model,
        "--c2",
        "1",
        "-q",
    ]
    ours, _ = watched([*command, "--observed-states"])
    theirs, _ = watched([sys.executable, "-c", CRFSUITE_CHILD, bench.train_file, template, model])
    return {"crfkit": ours, "crfsuite": theirs}


def growth(bench: Bench) -> Report:
    """The curve over tokens of scaling.py, in whose results the points are kept."""
    path = SCRATCH / "scaling_quick.json" if bench.quick else RESULTS / "scaling.json"
    store = Store(path, resume=bench.resume)
    return scaling.run_curve("tokens", store, bench.quick)


def modes(bench: Bench) -> Report:
    """Objective and F1 by precision."""
    found = {}
    for name in PRECISIONS:
        taken, crf = fitted(bench, penalty=L2.from_crfsuite(1.0), tolerance=1e-8, precision=name)
        predicted = crf.predict(bench.X_test)
        found[name] = {"seconds": taken, "objective": crf.result_.value, "f1": bench.f1(predicted)}
    values = [row["objective"] for row in found.values()]
    return {"modes": found, "largest_difference": (max(values) - min(values)) / min(values)}


PARTS: dict[str, Callable[[Bench], Any]] = {
    "fit": fit,
    "evaluation": evaluation,
    "epoch": epoch,
    "all_pairs": all_pairs,
    "l1": l1,
    "modes": modes,
    "memory": memory,
    "growth": growth,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED / "data" / "conll2000")
    parser.add_argument("--output", type=Path, default=RESULTS / "speed")
    parser.add_argument("--parts", default=",".join(PARTS), help="parts to run; others keep their last results")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--l1-iterations", type=int, default=L1_ITERATIONS, help="CRFsuite's; fewer are scaled to 300")
    parser.add_argument("--peer-rounds", type=int, default=1, help="rounds in which CRFsuite trains to its end")
    parser.add_argument("--resume", action="store_true", help="keep parts of this machine and these sources")
    parser.add_argument("--quick", action="store_true", help="300 sentences and one round, to try the command")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(train_all_pairs(*options.child)))
        return
    if not options.data.is_dir():
        print(f"skipped: the CoNLL-2000 data are not in {options.data}; see benchmarks/README.md")
        return
    if options.quick:
        options.output, options.rounds = SCRATCH / "speed_quick", 1
    store = Store(options.output.with_suffix(".json"), options.resume)
    peer_rounds = min(options.rounds, max(1, options.peer_rounds))
    with tempfile.TemporaryDirectory() as folder:
        sizes = options.rounds, options.quick, options.l1_iterations, options.resume, peer_rounds
        bench = Bench(options.data, Path(folder), *sizes, store)
        for name in options.parts.split(","):
            store.part(name, lambda name=name: PARTS[name](bench))
    text = table(store.results)
    options.output.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
