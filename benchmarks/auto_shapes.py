"""`auto` beside every other solver on grids, tables, graphs and structure learning: CPU seconds and work.

    python benchmarks/auto_shapes.py [--output results/auto_shapes.json] [--cases scene,horses] [--limit 10]
        [--rounds 2] [--variants] [--quick] [--resume]

Each solver that supports a loss with its penalty trains from zero on one thread until its default stop, at most --limit
CPU seconds; it ends earlier when it has taken half as many seconds again as `auto`. Two costs are taken at the first
iteration whose objective is within 1e-4 (relative) of the best value that any run found, and again at the stop: CPU
seconds, and work, which is evaluations + 1.3 × Hessian products and has no noise. Of several rounds the least seconds
count. A ratio of 1.3 says that `auto` costs 30 % more than the best of the others. Structure learning chooses its own
method, which stands for `auto` there; its evaluations see the selected edges only, those of solvers outside the
Grafting family all edges, so only seconds compare.

--variants adds solvers with other options; they do not count among the best. Cases whose data are missing are skipped.
"""

from __future__ import annotations

import argparse
import gzip
import math
import time
import warnings
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, SHARED, Report, Store, markdown
from grid_training import load
from threadpoolctl import threadpool_limits

from crfkit import L1, L2, GraphCRF, GridCRF
from crfkit._threads import using_threads
from crfkit.errors import CapabilityError, StopTraining
from crfkit.protocols import Capability
from crfkit.solvers import SOLVERS, Iteration
from crfkit.structure.options import StructureOptions
from crfkit.structure.solve import EdgeSolver
from crfkit.structure.train import StructureTraining
from crfkit.synthetic import random_pairwise
from crfkit.training.defaults import default_solver
from crfkit.training.options import SolverOptions

CLOSE = 1e-4  # relative distance from the best value
PRODUCT = 1.3  # evaluations that a Hessian product is counted as
SLOWER = 1.5  # a solver that takes this many times the seconds of `auto` is not among the best, and is ended
FINE = 1e-6  # tolerance of iterative inference where values are compared
DATA = SHARED / "data"
LIKELIHOODS = ("likelihood", "pseudo-likelihood")
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "lbfgs, 10 pairs": ("lbfgs", {"memory": 10}),
    "lbfgs, 40 pairs": ("lbfgs", {"memory": 40}),
    "lbfgs, 20 pairs": ("lbfgs", {"memory": 20}),
    "lbfgs, diagonal": ("lbfgs", {"preconditioned": True}),
    "lbfgs, diagonal, 20 pairs": ("lbfgs", {"preconditioned": True, "memory": 20}),
    "tron, diagonal": ("tron", {"preconditioned": True}),
    "owlqn, 60 pairs": ("owlqn", {"memory": 60}),
}


@dataclass(frozen=True)
class Case:
    """A training problem. Losses may have a state, so each run makes its own."""

    shape: str
    loss: str
    penalty: str
    make: Callable[[], tuple[Any, Any]]  # (loss, penalty)
    learner: Callable[[], tuple[Any, Any, Any]] | None = None  # (solver, loss, penalty) of structure learning

    @property
    def name(self) -> str:
        return f"{self.shape}, {self.loss}, {self.penalty}"

    def start(self, solver: str, **options: Any) -> tuple[Any, Any, Any]:
        """Return a solver with a loss and a penalty to minimise."""
        if solver == "auto" and self.learner is not None:
            return self.learner()
        made = SolverOptions(solver=solver).make_solver(**options)
        if self.learner is not None and Capability.CANDIDATES in made.needs:
            return (made, *self.learner()[1:])
        return (made, *self.make())

    def choice(self) -> str:
        """Return what `auto` chooses."""
        if self.learner is not None:
            return type(self.learner()[0]).__name__
        return default_solver(*self.make())


# --- data


def grids(height: int, width: int, count: int, seed: int = 0) -> tuple[list[Any], list[Any]]:
    """Return noisy images of four features in which three labels form stripes and patches."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(count):
        coarse = rng.integers(0, 3, (-(-height // 4), -(-width // 4)))
        labels = np.kron(coarse, np.ones((4, 4), dtype=int))[:height, :width]
        Y.append(labels)
        X.append(np.eye(3)[labels] @ np.ones((3, 4)) * labels[..., None] * 0.4 + rng.normal(size=(*labels.shape, 4)))
    return X, Y


def graphs(n_nodes: int, count: int, seed: int = 0) -> tuple[list[Any], list[Any]]:
    """Return sparse random graphs with ten node features of various scales, two edge features and four labels."""
    rng = np.random.default_rng(seed)
    weights, X, Y = rng.normal(size=(10, 4)), [], []
    for _ in range(count):
        pairs = rng.integers(0, n_nodes, (3 * n_nodes // 2, 2))
        edges = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
        features = rng.normal(size=(n_nodes, 10))
        scores = features @ weights
        for _ in range(2):  # neighbours become alike
            more = np.zeros_like(scores)
            np.add.at(more, edges[:, 0], scores[edges[:, 1]])
            np.add.at(more, edges[:, 1], scores[edges[:, 0]])
            scores = scores + 0.3 * more
        Y.append((scores + rng.gumbel(size=scores.shape)).argmax(axis=1))
        X.append((features * np.logspace(-1, 1, 10), edges, rng.normal(size=(len(edges), 2))))
    return X, Y


def table(n_columns: int, rows: int) -> tuple[Any, Any]:
    made = random_pairwise(n_columns, 20, rows, edge_probability=0.3)
    return made.X.reshape(rows, -1), made.Y


def scene(rows: int | None) -> tuple[Any, Any]:
    X, Y = (np.loadtxt(DATA / "scene" / f"scene_train_{part}.csv.gz", delimiter=",", max_rows=rows) for part in "XY")
    return X, Y.astype(int)


def columns(name: str, rows: int | None) -> Any:
    with gzip.open(DATA / "density" / name / f"{name}.train.data.gz", "rt") as lines:
        return np.loadtxt(lines, delimiter=",", dtype=int, max_rows=rows)


# --- cases


def pairwise(shape: str, read: Callable[[int], Any], estimator: Any, forms: Sequence[tuple[str, Any]]) -> list[Case]:
    """Return the cases of an estimator: losses and penalties.

    The data are read once, when first needed. `read` is told how many times more a loss without inference can have.
    """
    known: dict[int, Any] = {}

    def maker(loss: str, penalty: Any) -> Callable[[], tuple[Any, Any]]:
        def make() -> tuple[Any, Any]:
            times = 1 if loss == "likelihood" else 8
            if times not in known:
                known[times] = read(times)
            crf = estimator.set_params(loss=loss, penalty=penalty, n_threads=1)
            problem = crf._training().make_problem(*crf._learn(*known[times]))
            return problem.loss, problem.penalty

        return make

    def name(penalty: Any) -> str:
        return penalty.name + ("" if estimator.edge_penalty is None else f", edges {estimator.edge_penalty.name}")

    return [Case(shape, loss, name(penalty), maker(loss, penalty)) for loss, penalty in forms]


def structured(shape: str, read: Callable[[], Any], share: float, **options: Any) -> Case:
    """Return structure learning at a strength, a share of the one at which no edge is selected."""
    known: list[Any] = []

    def start() -> tuple[EdgeSolver, Any, float]:
        if not known:
            training = StructureTraining(StructureOptions(solver=SolverOptions(n_threads=1), **options))
            data = training._read(read(), None)
            solver = EdgeSolver(training.options)
            empty = solver.empty(training.make_loss(data.tables()(None), data.pairs))
            known.extend((solver, empty.loss, share * solver.critical_strength(empty)))
        return known[0], known[1], known[2]

    def learner() -> tuple[Any, Any, Any]:
        solver, loss, strength = start()
        return solver._solver(loss, strength, rough=False), loss, solver.penalty(loss, strength)

    def make() -> tuple[Any, Any]:
        solver, loss, strength = start()
        every = loss.activate(loss.candidate_ids)[0]
        return every, solver.penalty(every, strength)

    solver, loss, strength = start()
    return Case(shape, "pseudo-likelihood", solver.penalty(loss, strength).name, make, learner)


def all_cases(quick: bool) -> list[Case]:
    few = 4 if quick else 1
    both = [(loss, penalty) for loss in LIKELIHOODS for penalty in (L2(1.0), L1(1.0))]
    edges = {"edge_penalty": L1(10.0)}
    found = pairwise("narrow grids", lambda times: grids(4, 30, 8 * times // few), GridCRF(), both)
    found += pairwise("narrow grids", lambda times: grids(4, 30, 8 * times // few), GridCRF(**edges), both[1::2])
    found += pairwise("wide grids", lambda times: grids(16, 16, 8 * times // few), GridCRF(), both)
    found += pairwise("table of 10 columns", lambda times: table(10, 1000 * times // few), GraphCRF(), both)
    found += pairwise("general graphs", lambda times: graphs(30, 40 * times // few), GraphCRF(), both)
    if (DATA / "scene").is_dir():
        weak = [*both, ("pseudo-likelihood", L2(100.0)), ("likelihood", L2(100.0))]
        found += pairwise("scene", lambda times: scene(200 if quick else None), GraphCRF(), weak)
        found += pairwise("scene", lambda times: scene(200 if quick else None), GraphCRF(**edges), both[1::2])
    if (DATA / "weizmann_horse").is_dir():
        horses = GridCRF(node_form="ising", edge_form="ising")
        found += pairwise("horses", lambda times: load(DATA / "weizmann_horse", 2 if quick else 4), horses, both)
    if (DATA / "density" / "nltcs").is_dir() and (DATA / "density" / "plants").is_dir():
        nltcs, plants = (partial(columns, name, 1000 if quick else None) for name in ("nltcs", "plants"))
        found.append(structured("structure, 16 binary columns", nltcs, 0.05))
        found += [structured("structure, 69 binary columns", plants, share) for share in (0.3, 0.05)]
        for norm in ("2", "inf"):
            found.append(structured("structure, 16 tables", nltcs, 0.05, form="full", group_norm=norm))
    return found


# --- one run


class Watch:
    """Callback: keeps the cost and the weights of every iteration, and ends a run that takes too long."""

    def __init__(self, limit: float) -> None:
        self.limit, self.paused = limit, 0.0
        self.rows: list[Report] = []
        self.weights: list[Any] = []
        self.begin = time.process_time()

    def __call__(self, iteration: Iteration) -> None:
        now = time.process_time()
        row, spent = iteration.row, now - self.begin - self.paused
        work = row.evaluations + PRODUCT * row.products
        self.rows.append({"seconds": spent, "work": work, "value": row.value})
        self.weights.append(np.array(iteration.w))
        self.paused += time.process_time() - now
        if spent > self.limit:
            raise StopTraining()


@dataclass(frozen=True)
class Run:
    """What a solver did on a case."""

    rows: list[Report]
    status: str
    value: Callable[[int], float]  # of an iteration, as precisely as values are compared

    def first_at(self, value: float) -> Report | None:
        """Return the first row that is not above a value."""
        k = bisect_left(range(len(self.rows)), True, key=lambda k: self.value(k) <= value)
        return self.rows[k] if k < len(self.rows) else None


def run(case: Case, solver: str, limit: float, options: Report | None = None) -> Run:
    """Minimise; raise CapabilityError if the solver does not support the case."""
    made, loss, penalty = case.start(solver, **(options or {}))
    inexact = Capability.PRECISION in loss.capabilities
    with warnings.catch_warnings(), using_threads(1):
        warnings.simplefilter("ignore")
        watch = Watch(limit)
        result = made.minimize(loss, penalty, np.zeros(loss.size), [watch])
    known: dict[int, float] = {}

    def value(k: int) -> float:
        if not (inexact or made.own_objective):
            return float(watch.rows[k]["value"])
        if k not in known:
            exact = case.make()[0]
            if inexact:
                exact.tolerance = FINE
            known[k] = exact.at(watch.weights[k]).value + penalty.value(watch.weights[k])
        return known[k]

    return Run(watch.rows, result.status.name, value)


# --- all solvers of a case


def measure(case: Case, limit: float, rounds: int, variants: bool) -> Report:
    runs: dict[str, list[Run]] = {}
    options = {name: (name, {}) for name in SOLVERS} | (VARIANTS if variants else {})
    most = limit
    for name, (solver, given) in options.items():
        try:
            first = run(case, solver, most, given)
        except CapabilityError:
            continue
        runs[name] = [first]
        if name == "auto":
            most = min(limit, SLOWER * first.rows[-1]["seconds"] + 0.05)
        if name in ("auto", "lbfgs", "owlqn", "tron", "newton") or first.rows[-1]["seconds"] < 1.0:
            runs[name] += [run(case, solver, limit, given) for _ in range(rounds - 1)]
    tight = run(case, "auto", 4 * limit) if case.learner else run(case, "auto", 4 * limit, {"stopping": Tight()})
    best = min(one[0].value(len(one[0].rows) - 1) for one in (*runs.values(), [tight]))
    target = best + CLOSE * abs(best)
    found: Report = {}
    for name, several in runs.items():
        at = [one.first_at(target) for one in several]
        row: Report = {"status": several[0].status, "excess": several[0].value(len(several[0].rows) - 1) / best - 1}
        for what, rows in (("close", at), ("stop", [one.rows[-1] for one in several])):
            if None not in rows:
                row[what] = {key: min(r[key] for r in rows) for key in ("seconds", "work")}  # type: ignore[index]
        found[name] = row
    return {
        "shape": case.shape,
        "loss": case.loss,
        "penalty": case.penalty,
        "weights": int(case.make()[0].size),
        "choice": case.choice(),
        "best": best,
        "solvers": found,
    }


class Tight:
    """A stopping rule: when 50 iterations decrease the objective by less than 1e-9 of it."""

    def satisfied(self, trace: Sequence[Any], w: Any) -> bool:
        return len(trace) > 50 and trace[-51].value - trace[-1].value < 1e-9 * abs(trace[-1].value)


# --- the table


def ratios(report: Report, when: str) -> Report:
    """Return `auto`'s cost over the least cost of another solver of the registry, by seconds and by work."""
    solvers, found = report["solvers"], {}
    for key in ("seconds", "work"):
        others = {
            name: row[when][key]
            for name, row in solvers.items()
            if name in SOLVERS and name != "auto" and "close" in row and when in row
        }
        own = solvers["auto"].get(when) if "close" in solvers["auto"] else None
        best = min(others, key=others.__getitem__) if others else ""
        ratio = own[key] / others[best] if own and best else math.nan
        found[key] = {"ratio": ratio, "best": best}
    return found


def show(reports: Sequence[Report]) -> str:
    rows = []
    for report in reports:
        cells = [report["shape"], report["loss"], report["penalty"], report["choice"]]
        for when in ("close", "stop"):
            cells += [f"{found['ratio']:.2f} ({found['best']})" for found in ratios(report, when).values()]
        rows.append(cells)
    head = ["shape", "loss", "penalty", "auto is", "seconds to 1e-4", "work to 1e-4", "seconds to stop", "work to stop"]
    return markdown(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=RESULTS / "auto_shapes.json")
    parser.add_argument("--cases", default="", help="parts of names, separated by commas; by default all")
    parser.add_argument("--limit", type=float, default=10.0, help="CPU seconds of a run")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--variants", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    limit, rounds = (0.2, 1) if options.quick else (options.limit, options.rounds)
    store = Store(options.output, options.resume)
    reports = []
    with threadpool_limits(1):
        for case in all_cases(options.quick):
            if not options.cases or any(part in case.name for part in options.cases.split(",")):
                measured = (lambda c: lambda: measure(c, limit, rounds, options.variants))(case)
                reports.append(store.part(case.name, measured))
                print(show(reports[-1:]).splitlines()[-1], flush=True)
    print(show(reports))


if __name__ == "__main__":
    main()
