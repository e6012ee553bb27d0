"""TRON against L-BFGS: the CPU time that each needs to come within a stated distance of the optimum.

    python experiments/tron/run.py --data DIR [--output DIR] [--tasks chunking] [--strengths 1] [--repeats 3]

For each task and each strength s of the penalty s/2·‖w‖² the first run is TRON from a stochastic start. It goes on to a
gradient of 1e-9 of the first, which gives the value of the optimum: J is s-strongly convex, so that no value is less
than J − ‖g‖²/(2s). All other runs stop when their gap is 1e-8 of the optimum and their gradient 1e-6 of the first, or
at a limit of CPU seconds. One thread; seconds are CPU seconds of the process without callbacks, the
least of the repeats.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))  # results_file

import numpy as np
from problems import FILES, Problem
from results_file import compact, read, write

from crfkit import L2
from crfkit._threads import using_threads
from crfkit.arrays import norm
from crfkit.errors import StopTraining
from crfkit.result import Result, TraceRow
from crfkit.solvers import LBFGS, Auto, Iteration, Newton, Tron

HERE = Path(__file__).resolve().parent
STRENGTHS = (0.1, 1.0, 10.0)
SEQUENCES = 2000  # the first of each file, about a quarter of it
GRADIENT = 1e-6  # of the first: where runs may end
OPTIMUM = 1e-9  # of the first: where the run that finds the optimum ends
GAP = 1e-8  # of the optimum: where runs may end
EPOCHS = 10  # of stochastic gradients before a warm-started run
MANY = 1_000_000
WARM = "tron, warm start"
Report = dict[str, Any]


class Never:
    """A stopping rule: callbacks end the run."""

    def satisfied(self, trace: Sequence[TraceRow], w: Any) -> bool:
        return False


SOLVERS: dict[str, Callable[[], Any]] = {
    WARM: lambda: Tron(stopping=Never(), max_iterations=MANY),
    "tron": lambda: Tron(stopping=Never(), max_iterations=MANY),
    "tron, preconditioned": lambda: Tron(stopping=Never(), max_iterations=MANY, preconditioned=True),
    "newton": lambda: Newton(stopping=Never(), max_iterations=MANY),
    "lbfgs": lambda: LBFGS(stopping=Never(), max_iterations=MANY),
    "auto": lambda: Auto(stopping=Never(), max_iterations=MANY),
}


@dataclass
class Watch:
    """Callback: records each iteration with CPU seconds, and ends the run."""

    value: float  # of the objective at which the run may end
    gradient: float  # at which it may end
    limit: float  # CPU seconds
    before: float = 0.0  # CPU seconds of the start, which are counted

    def __post_init__(self) -> None:
        self.rows: list[list[float]] = []  # seconds, value, gradient, evaluations, products, radius
        self._begin = time.process_time() - self.before

    def __call__(self, iteration: Iteration) -> None:
        now = time.process_time()
        row, seconds = iteration.row, now - self._begin
        radius = float(iteration.saved().get("radius", math.nan))
        self.rows.append([seconds, row.value, row.optimality, row.evaluations, row.products, radius])
        if (row.value <= self.value and row.optimality <= self.gradient) or seconds >= self.limit:
            raise StopTraining
        self._begin += time.process_time() - now


def minimize(problem: Problem, penalty: L2, solver: Any, watch: Watch, w0: Any) -> Result:
    with using_threads(1):
        return solver.minimize(problem.loss, penalty, w0, [watch])


def warm_start(problem: Problem, penalty: L2) -> tuple[Any, float]:
    """Return weights after some stochastic epochs, and their CPU seconds."""
    begin = time.process_time()
    solver = Auto(stopping=Never(), epochs=EPOCHS, max_iterations=EPOCHS, least_sequences=1)
    with using_threads(1):
        found = solver.minimize(problem.loss, penalty, np.zeros(problem.loss.size))
    return found.w, time.process_time() - begin


def one_run(problem: Problem, s: float, name: str, best: float | None, first: float, limit: float) -> Report:
    """Return the trace of a solver; the run that finds the optimum has no `best` yet."""
    penalty, w0, before = L2(s), np.zeros(problem.loss.size), 0.0
    if name == WARM:
        w0, before = warm_start(problem, penalty)
    target = -math.inf if best is None else best * (1 + GAP)
    watch = Watch(target, GRADIENT * first, limit, before)
    if best is None:
        watch = Watch(math.inf, OPTIMUM * first, 4 * limit, before)
    minimize(problem, penalty, SOLVERS[name](), watch, w0)
    names = ("seconds", "value", "gradient", "evaluations", "products", "radius")
    trace = {key: list(column) for key, column in zip(names, zip(*watch.rows, strict=True), strict=True)}
    if math.isnan(trace["radius"][-1]):
        del trace["radius"]
    else:
        trace["radius"] = [None if math.isnan(x) else x for x in trace["radius"]]
    return {"start seconds": before, "trace": trace}


def costs(problem: Problem, rounds: int = 9) -> Report:
    """Return CPU seconds of an evaluation and of a product in its forms, after five iterations of L-BFGS."""
    with using_threads(1):
        w = LBFGS(stopping=Never(), max_iterations=5).minimize(problem.loss, L2(1.0), np.zeros(problem.loss.size)).w
        v = np.random.default_rng(0).normal(size=len(w))
        loss, step = problem.loss, 1e-6 * norm(w) / norm(v)
        held = problem.another_loss().at(w)  # keeps what products need, as in TRON; other evaluations would replace it
        works: dict[str, Callable[[], Any]] = {
            "evaluation": lambda: loss.at(w).grad,
            "product": lambda: held.hessp(v),
            "product by central differences": lambda: (
                (loss.at(w + step * v).grad - loss.at(w - step * v).grad) / (2 * step)
            ),
        }
        exact = {name: work() for name, work in works.items()}
        times = [{name: clocked(work) for name, work in works.items()} for _ in range(rounds)]
    by = "product by central differences"
    return {
        "seconds": {name: statistics.median(row[name] for row in times) for name in works},
        "ratios": {name: statistics.median(row[name] / row["evaluation"] for row in times) for name in works},
        "difference": float(norm(exact[by] - exact["product"]) / norm(exact["product"])),
    }


def clocked(work: Callable[[], Any]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


class Results:
    """The JSON file, written after every unit; a part of it for each number of sequences."""

    def __init__(self, folder: Path, size: str) -> None:
        self.path = folder / "results.json"
        self.found: Report = read(self.path)
        self.part: Report = self.found.setdefault(size, {"tasks": {}, "cpu seconds": 0.0})

    def write(self) -> None:
        write(self.path, self.found, compact)


def first_gradient(problem: Problem) -> float:
    with using_threads(1):
        return float(norm(problem.loss.at(np.zeros(problem.loss.size)).grad))


def run_task(results: Results, task: str, options: argparse.Namespace) -> None:
    strengths = {
        s: [name for name in options.solvers if repeats_of(results.part, task, s, name) < options.repeats]
        for s in options.strengths
    }
    if not any(strengths.values()) and "costs" in results.part["tasks"][task]:
        print(f"{task}: there are results", flush=True)
        return
    problem = Problem.read(task, options.data, options.sequences or None)
    entry = results.part["tasks"].setdefault(task, {"strengths": {}})
    if "costs" not in entry:
        entry |= problem.sizes() | {"first gradient": first_gradient(problem), "costs": costs(problem)}
        results.write()
    first = entry["first gradient"]
    for s, names in strengths.items():
        at = entry["strengths"].setdefault(f"{s:g}", {"solvers": {}})
        for name in names:
            best = None if name == WARM else at["best"]
            report = one_run(problem, s, name, best, first, options.limit)
            trace = report["trace"]
            if name == WARM and "best" not in at:
                at["best"] = trace["value"][-1]
                at["certificate"] = trace["gradient"][-1] ** 2 / (2 * s)  # how much lower the optimum may be
            at["solvers"][name] = merged(at["solvers"].get(name), report)
            results.write()
            print(
                f"{task}, L2({s:g}), {name}: {trace['seconds'][-1]:.1f} s, {trace['evaluations'][-1]} evaluations, "
                f"{trace['products'][-1]} products, gap {trace['value'][-1] / at['best'] - 1:.1e}, "
                f"gradient {trace['gradient'][-1] / first:.1e}",
                flush=True,
            )


def repeats_of(part: Report, task: str, s: float, name: str) -> int:
    """Return how often a solver was run."""
    solvers = part["tasks"].get(task, {}).get("strengths", {}).get(f"{s:g}", {}).get("solvers", {})
    return solvers[name].get("repeats", 1) if name in solvers else 0


def merged(old: Report | None, new: Report) -> Report:
    """Return a run with the least seconds of its repeats at each iteration; all else is the same in every repeat."""
    if old is None:
        return new | {"repeats": 1}
    a, b = old["trace"], new["trace"]
    common = min(len(a["value"]), len(b["value"]))
    if not np.allclose(a["value"][:common], b["value"][:common], rtol=1e-9):
        raise SystemExit("two repeats of a run went different ways: their seconds cannot be compared")
    longer = a if len(a["value"]) >= len(b["value"]) else b
    least = [min(x, y) for x, y in zip(a["seconds"], b["seconds"], strict=False)]
    trace = longer | {"seconds": least + longer["seconds"][common:]}
    return {
        "start seconds": min(old["start seconds"], new["start seconds"]),
        "trace": trace,
        "repeats": old.get("repeats", 1) + 1,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE.parents[2] / "shared" / "data")
    parser.add_argument("--output", type=Path, default=HERE)
    parser.add_argument("--tasks", nargs="+", choices=list(FILES), default=list(FILES))
    parser.add_argument("--strengths", nargs="+", type=float, default=list(STRENGTHS), help="of the L2 penalty")
    parser.add_argument("--sequences", type=int, default=SEQUENCES, help="the first so many of each file; 0: all")
    parser.add_argument("--limit", type=float, default=25.0, help="CPU seconds of a run; the first may take four times")
    parser.add_argument("--solvers", nargs="+", choices=list(SOLVERS), default=list(SOLVERS), metavar="NAME")
    parser.add_argument("--repeats", type=int, default=1, help="of each run, with those that the results have")
    options = parser.parse_args()
    results = Results(options.output, str(options.sequences or "all"))
    results.part["protocol"] = {"limit": options.limit, "sequences": options.sequences, "epochs": EPOCHS}
    for task in options.tasks:
        for _ in range(options.repeats):  # one after the other: a busy minute does not meet all repeats of a run
            begin = time.process_time()
            run_task(results, task, options)
            results.part["cpu seconds"] += time.process_time() - begin
            results.write()


if __name__ == "__main__":
    main()
