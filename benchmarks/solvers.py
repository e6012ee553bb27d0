"""All solvers, and python-crfsuite's, on CoNLL-2000 chunking and Spanish named entities.

    python benchmarks/solvers.py [--data DIR] [--output results/solvers] [--limit 30] [--sequences N] [--parts a,b,c]

hessian   what a Hessian-vector product costs: ours, finite differences, automatic differentiation (JAX)
smooth    every solver of loss + L2: time and work until the objective is 1 %, 0.1 %, … above the best known
tron      to a gradient of 1e-6 of the first: TRON plain, preconditioned, warm-started; L-BFGS, auto
crfsuite  CRFsuite's algorithms and ours, ours – theirs – ours
l1        OWL-QN: CRFsuite's and ours

Work is counted in evaluations of value and gradient: a product counts by its measured time, an epoch as one.
Solvers run on all cores, CRFsuite on one. Its seconds are what it logs: processor time of the optimisation alone.
Writes JSON, into which parts that are run later are merged, a Markdown table and a plot.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import platform
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pycrfsuite

from crfkit import L2, Template, evaluate, penalties, read_columns
from crfkit._core import available_kernels
from crfkit.arrays import norm, using_threads
from crfkit.data import TaggedCorpus, learn
from crfkit.errors import StopTraining
from crfkit.fields import ChainField
from crfkit.inference.chain import ChainInference, count_threads
from crfkit.losses import ChainLikelihood
from crfkit.result import Result, TraceRow
from crfkit.solvers import LBFGS, SOLVERS, Auto, Iteration, PeriodDecrease, Tron, make_solver

HERE = Path(__file__).resolve().parent
PENALTY = L2.from_crfsuite(c2=1.0)
GAPS = {"1 %": 1e-2, "0.1 %": 1e-3, "0.01 %": 1e-4, "0.001 %": 1e-5}
BEST = 12_887.12  # the least value known of CoNLL-2000, observed pairs, L2(2)
CLOSE = 12_887.3  # where CRFsuite's L-BFGS stops
L1_CLOSE = {"16834.2": 16_834.2, "16802.5": 16_802.5}  # where CRFsuite's OWL-QN stops; near the optimum
DENSE = ("bfgs", "dfp")  # need a matrix of all weights
# CRFsuite's algorithm: its options, our solver
ONLINE = {
    "l2sgd": ({"c2": 1.0, "max_iterations": 60}, "sgd"),
    "ap": ({"max_iterations": 20}, "averaged-perceptron"),
    "pa": ({"max_iterations": 20}, "passive-aggressive"),
    "arow": ({"max_iterations": 20}, "arow"),
}
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")  # Okabe & Ito
Report = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Problem:
    """A training set with a test set, and the observed parameter set."""

    train: tuple[list[Any], list[list[str]]]
    test: tuple[list[Any], list[list[str]]]
    template: Template
    whole: bool  # not just some of the sequences

    @classmethod
    def read(cls, train: Path, test: Path, template: Path, sequences: int | None) -> Problem:
        parts = [tuple(part[:sequences] for part in read_columns(path)) for path in (train, test)]
        return cls(*parts, Template.read(template), sequences is None)

    @cached_property
    def corpus(self) -> TaggedCorpus:
        return learn(*self.train, self.template, 1)

    @cached_property
    def field(self) -> ChainField:
        corpus = self.corpus
        n_labels, n_attributes = len(corpus.classes), len(corpus.vocabulary.attributes)
        return ChainField.from_data(corpus.data, n_labels, n_attributes, all_states=False, all_transitions=False)

    def loss(self, **options: Any) -> ChainLikelihood:
        return ChainLikelihood(self.corpus.data, self.field, **options)

    def minimize(self, solver: Any, penalty: Any = PENALTY, callbacks: Sequence[Any] = (), w0: Any = None) -> Result:
        w0 = np.zeros(self.field.size) if w0 is None else w0
        with using_threads(count_threads(None)):
            return solver.minimize(self.loss(), penalty, w0, callbacks)

    @cached_property
    def _test_data(self) -> Any:
        return self.corpus.vocabulary.encode(self.test[0])

    def f1(self, w: Any) -> float:
        """Of the phrases of the test set."""
        labels, _ = ChainInference(self.field, w).decode(self._test_data)
        names = self.corpus.classes.tolist()
        return evaluate(self.test[1], [[names[j] for j in row] for row in self._test_data.split(labels)]).overall.f1

    def attributes(self, rows: list[Any]) -> Any:
        """For CRFsuite."""
        return ([u for u, _ in self.template.expand([list(r) for r in x])] for x in rows)


class Bench:
    """The data sets, read when first asked for."""

    def __init__(self, data: Path, limit: float, sequences: int | None, folder: Path) -> None:
        self.data, self.limit, self.sequences, self.folder = data, limit, sequences, folder

    def _read(self, train: str, test: str) -> Problem:
        template = self.data / "conll2000" / "chunking.template"
        return Problem.read(self.data / train, self.data / test, template, self.sequences)

    @cached_property
    def conll(self) -> Problem:
        return self._read("conll2000/train.txt", "conll2000/test.txt")

    def problems(self) -> dict[str, Problem]:
        found = {"CoNLL-2000": self.conll}
        if (self.data / "conll2002_spanish").is_dir():
            found["Spanish NER"] = self._read("conll2002_spanish/esp.train", "conll2002_spanish/esp.testb")
        else:
            say(f"without Spanish: there is no conll2002_spanish in {self.data}")
        return found

    @cached_property
    def crfsuite(self) -> CRFsuite:
        return CRFsuite(self.conll, self.folder)


class Never:
    """A stopping rule: callbacks end the run."""

    def satisfied(self, trace: Sequence[TraceRow], w: Any) -> bool:
        return False


@dataclass(frozen=True)
class GradientBelow:
    """A stopping rule: ‖g‖ ≤ bound."""

    bound: float

    def satisfied(self, trace: Sequence[TraceRow], w: Any) -> bool:
        return trace[-1].optimality <= self.bound


@dataclass(frozen=True)
class Until:
    """Callback: ends a run at a value of the objective or after so many seconds."""

    value: float
    limit: float

    def __call__(self, iteration: Iteration) -> None:
        if iteration.row.value <= self.value or iteration.row.seconds >= self.limit:
            raise StopTraining()


class TestF1:
    """Callback: the test set's F1 at each iteration, with the solver's seconds until then."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.rows: list[tuple[float, float]] = []

    def __call__(self, iteration: Iteration) -> None:
        self.rows.append((iteration.row.seconds, self.problem.f1(iteration.w)))

    def seconds_to(self, f1: float) -> float | None:
        return next((seconds for seconds, found in self.rows if found >= f1), None)


def clocked(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def interleaved(works: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each, one after the other, in each round."""
    for work in works.values():
        work()
    times = [{name: clocked(work) for name, work in works.items()} for _ in range(rounds)]
    return {name: [row[name] for row in times] for name in works}


def ratio(times: dict[str, list[float]], name: str, base: str) -> float:
    return statistics.median(a / b for a, b in zip(times[name], times[base], strict=True))


def relative(x: Any, y: Any) -> float:
    return float(np.linalg.norm(np.subtract(x, y)) / np.linalg.norm(y))


def divided(a: float | None, b: float | None) -> float | None:
    return a / b if a and b else None


def say(text: str) -> None:
    print(f"  {text}", flush=True)


def summary(result: Result) -> Report:
    return {
        "status": result.status.name,
        "value": result.value,
        "optimality": result.optimality,
        "iterations": result.iterations,
        "evaluations": result.evaluations,
        "products": result.products,
        "seconds": result.seconds,
    }


# hessian


def near_start(problem: Problem) -> Any:
    """Weights after five iterations of L-BFGS."""
    return problem.minimize(LBFGS(max_iterations=5, stopping=Never())).w


def product_ratio(problem: Problem, w: Any, rounds: int = 11) -> float:
    """Seconds of a Hessian-vector product by those of value and gradient."""
    plain, held = problem.loss(), problem.loss().at(w)
    works = {"evaluation": lambda: plain.at(w).value, "product": lambda: held.hessp(w)}
    return ratio(interleaved(works, rounds), "product", "evaluation")


def hessian(bench: Bench, rounds: int = 15) -> Report:
    problem = bench.conll
    w = near_start(problem)
    v = np.random.default_rng(0).normal(size=len(w))
    plain, keeping = problem.loss(), problem.loss()
    keeping.at(w).hessp(v)
    cached, uncached = problem.loss().at(w), problem.loss(cache_bytes=0).at(w)
    step = 1e-6 * norm(w) / norm(v)

    def differences() -> Any:
        return (plain.at(w + step * v).grad - plain.at(w - step * v).grad) / (2 * step)

    works: dict[str, Callable[[], Any]] = {
        "value and gradient": lambda: plain.at(w).value,
        "value and gradient, kept for products": lambda: keeping.at(w).value,
        "product": lambda: cached.hessp(v),
        "product without the cache": lambda: uncached.hessp(v),
        "diagonal": lambda: plain.at(w).hess_diag(),
        "product by finite differences": differences,
    }
    exact = cached.hessp(v)
    agreement = {
        "product without the cache": relative(uncached.hessp(v), exact),
        "product by finite differences": relative(differences(), exact),
    }
    report: Report = {}
    if importlib.util.find_spec("jax"):
        import autodiff

        value_gradient, product = autodiff.compiled(problem.corpus.data, problem.field)
        report["JAX compilation"] = {
            "value and gradient": clocked(lambda: value_gradient(w)),
            "product": clocked(lambda: product(w, v)),
        }
        value, gradient = value_gradient(w)
        agreement["JAX value"] = abs(value / plain.at(w).value - 1)
        agreement["JAX gradient"] = relative(gradient, plain.at(w).grad)
        agreement["JAX product"] = relative(product(w, v), exact)
        if max(error for name, error in agreement.items() if name.startswith("JAX")) > 1e-8:
            raise SystemExit(f"JAX and crfkit disagree: {agreement}")
        works["value and gradient in JAX"] = lambda: value_gradient(w)
        works["product in JAX"] = lambda: product(w, v)
    else:
        say("jax is not installed: without automatic differentiation")
    for name, error in agreement.items():
        say(f"{name} agrees to {error:.1e}")
    times = interleaved(works, rounds)
    return report | {
        "weights": len(w),
        "agreement": agreement,
        "seconds": {name: statistics.median(row) for name, row in times.items()},
        "ratios": {name: ratio(times, name, "value and gradient") for name in times},
    }


# smooth


def able(solver: Any) -> bool:
    """Whether it minimises loss + L2 without a dense matrix."""
    takes = getattr(solver, "handles_smooth", None)
    return solver.name not in DENSE and (takes is None or "l2" in takes)


def least(problem: Problem, limit: float) -> float:
    """The optimum, by TRON, preconditioned: ‖g‖ ≤ 1e-6‖g₀‖ leaves less than 1e-7 of it."""
    bound = 1e-6 * first_gradient(problem)
    solver = Tron(stopping=GradientBelow(bound), preconditioned=True)
    result = problem.minimize(solver, callbacks=[Until(-math.inf, limit)])
    say(f"best value: {result.value:.4f}, {result.status.name}")
    return result.value


def first_gradient(problem: Problem) -> float:
    w = np.zeros(problem.field.size)
    return norm(problem.loss().at(w).grad)


def work_until(solver: Any, row: TraceRow, product: float, n_sequences: int) -> float:
    """Everything until a row, in evaluations; SMD counts a product for each mini-batch."""
    epochs, products = 0, row.products
    if isinstance(solver, Auto) and n_sequences >= solver.least_sequences:
        epochs = solver.epochs
    elif "online" in solver.needs:
        epochs = row.iteration
    elif "subset" in solver.needs:
        epochs = products = row.iteration
    return row.evaluations + product * products + epochs


def thinned(rows: list[Report]) -> dict[str, list[float]]:
    """Columns of the trace, without rows that follow within 2 % of the seconds of the last one."""
    kept = rows[:1]
    for row in rows[1:]:
        if row["seconds"] >= 1.02 * kept[-1]["seconds"] or row is rows[-1]:
            kept.append(row)
    return {name: [row[name] for row in kept] for name in ("seconds", "work", "value")}


def reached(rows: list[Report], value: float) -> Report | None:
    """The first row at or below a value."""
    return next((row for row in rows if row["value"] <= value), None)


def smooth_run(problem: Problem, name: str, best: float, product: float, limit: float) -> Report:
    solver = make_solver(name, stopping=Never(), max_iterations=1_000_000)
    result = problem.minimize(solver, callbacks=[Until(best * (1 + min(GAPS.values())), limit)])
    n = len(problem.corpus.data)
    rows = [
        {
            "seconds": row.seconds,
            "evaluations": row.evaluations,
            "products": row.products,
            "work": work_until(solver, row, product, n),
            "value": row.value,
        }
        for row in result.trace
    ]
    to = {name: reached(rows, best * (1 + gap)) for name, gap in GAPS.items()}
    say(f"{name:20s} {result.seconds:6.2f} s  gap {result.value / best - 1:.2e}  {result.status.name}")
    return summary(result) | {"to": to, "trace": thinned(rows)}


def smooth(bench: Bench) -> Report:
    report: Report = {}
    for title, problem in bench.problems().items():
        say(f"{title}: {problem.field.size:,} weights")
        known = problem.whole and problem is bench.conll
        best = BEST if known else least(problem, 20 * bench.limit)
        product = product_ratio(problem, near_start(problem))
        names = [name for name, solver in SOLVERS.items() if able(solver)]
        report[title] = {
            "weights": problem.field.size,
            "best": best,
            "product": product,
            "solvers": {name: smooth_run(problem, name, best, product, bench.limit) for name in names},
        }
    return report


# tron


def tron(bench: Bench) -> Report:
    problem, limit = bench.conll, 10 * bench.limit
    rule = GradientBelow(1e-6 * first_gradient(problem))
    warm = problem.minimize(Auto(max_iterations=0))
    many = {"stopping": rule, "max_iterations": 100_000}
    runs = {
        "tron": (Tron(**many), None),
        "tron, preconditioned": (Tron(preconditioned=True, **many), None),
        "tron, warm start": (Tron(**many), warm),
        "tron, preconditioned, warm start": (Tron(preconditioned=True, **many), warm),
        "lbfgs": (LBFGS(**many), None),
        "auto": (Auto(**many), None),
    }
    report: Report = {"bound": rule.bound, "warm start": {"seconds": warm.seconds, "epochs": Auto().epochs}}
    for name, (solver, start) in runs.items():
        result = problem.minimize(solver, callbacks=[Until(-math.inf, limit)], w0=start.w if start else None)
        row = summary(result)
        row["seconds"] += start.seconds if start else 0.0
        say(f"{name:34s} {row['seconds']:6.2f} s  {row['evaluations']} + {row['products']}  {row['status']}")
        report[name] = row
    return report


# crfsuite


class CRFsuite:
    """python-crfsuite with the training set appended anew for each training."""

    def __init__(self, problem: Problem, folder: Path) -> None:
        self.problem, self.model = problem, folder / "model.crfsuite"
        self.X = list(problem.attributes(problem.train[0]))
        self.X_test = list(problem.attributes(problem.test[0]))

    def train(self, algorithm: str, **options: Any) -> Report:
        trainer = pycrfsuite.Trainer(algorithm, options, verbose=False)
        for x, y in zip(self.X, self.problem.train[1], strict=True):
            trainer.append(x, y)
        wall = clocked(lambda: trainer.train(str(self.model)))
        tagger = pycrfsuite.Tagger()
        tagger.open(str(self.model))
        log = trainer.logparser.iterations
        report = {
            "seconds": trainer.logparser.training_seconds,
            "wall seconds with features and storing": wall,
            "iterations": len(log),
            "seconds per iteration": statistics.median(row["time"] for row in log),
            "value": log[-1]["loss"],
            "f1": evaluate(self.problem.test[1], [tagger.tag(x) for x in self.X_test]).overall.f1,
        }
        if algorithm == "lbfgs":
            seconds = np.cumsum([row["time"] for row in log])
            report["evaluations"] = 1 + sum(row["linesearch_trials"] for row in log)
            report["nonzeros"] = log[-1]["active_features"]
            report["trace"] = {"seconds": seconds.tolist(), "value": [row["loss"] for row in log]}
        elif algorithm == "l2sgd":
            report["value"] = self.objective(tagger)  # what it logs is summed up while the weights change
        say(f"CRFsuite {algorithm:22s} {report['seconds']:6.2f} s  F1 {report['f1']:.4f}")
        return report

    def objective(self, tagger: Any) -> float:
        """Ours, at the weights of its model."""
        field, corpus, info = self.problem.field, self.problem.corpus, tagger.info()
        label = {name: j for j, name in enumerate(corpus.classes.tolist())}
        find, L = corpus.vocabulary.attributes.find, field.n_labels
        state = {find(a) * L + label[b]: weight for (a, b), weight in info.state_features.items()}
        pair = {label[a] * L + label[b]: weight for (a, b), weight in info.transitions.items()}
        attribute, names = field.state_names()
        codes = attribute.astype(np.int64) * L + names
        w = [state.get(c, 0.0) for c in codes.tolist()] + [pair.get(c, 0.0) for c in field.transition_codes.tolist()]
        return self.problem.loss().at(np.array(w)).value + PENALTY.value(np.array(w))


def first_below(trace: dict[str, list[float]], value: float) -> float | None:
    return next((s for s, v in zip(trace["seconds"], trace["value"], strict=True) if v <= value), None)


def our_auto(problem: Problem, targets: dict[str, float], limit: float) -> tuple[Report, TestF1]:
    """Until the least of the targets."""
    scores = TestF1(problem)
    result = problem.minimize(
        Auto(stopping=Never(), max_iterations=1_000_000), callbacks=[scores, Until(min(targets.values()), limit)]
    )
    trace = {"seconds": [row.seconds for row in result.trace], "value": [row.value for row in result.trace]}
    to = {name: first_below(trace, value) for name, value in targets.items()}
    say(f"crfkit   {'auto':22s} {result.seconds:6.2f} s  F1 {scores.rows[-1][1]:.4f}")
    return summary(result) | {"to": to, "f1": scores.rows[-1][1]}, scores


def our_epochs(problem: Problem, name: str, epochs: int) -> tuple[Report, TestF1]:
    scores = TestF1(problem)
    penalty = PENALTY if able(SOLVERS[name]) else penalties.NoPenalty()
    result = problem.minimize(
        make_solver(name, stopping=Never(), max_iterations=epochs), penalty, [scores] if name == "sgd" else []
    )
    f1 = problem.f1(result.w)
    say(f"crfkit   {name:22s} {result.seconds:6.2f} s  F1 {f1:.4f}")
    per_epoch = statistics.median(np.diff([row.seconds for row in result.trace]).tolist())
    return summary(result) | {"seconds per iteration": per_epoch, "f1": f1}, scores


def crfsuite(bench: Bench) -> Report:
    problem, theirs = bench.conll, bench.crfsuite
    best = BEST if problem.whole else least(problem, 20 * bench.limit)
    close = CLOSE if problem.whole else best * CLOSE / BEST
    targets = {"0.1 %": best * 1.001, f"{close:.1f}": close}
    first, scores = our_auto(problem, targets, 3 * bench.limit)
    lbfgs = theirs.train("lbfgs", c1=0.0, c2=1.0, max_iterations=1000)
    second, _ = our_auto(problem, targets, 3 * bench.limit)
    lbfgs["to"] = {name: first_below(lbfgs["trace"], value) for name, value in targets.items()}
    report: Report = {
        "lbfgs": {
            "crfkit": [first, second],
            "crfsuite": lbfgs,
            "times faster": {name: divided(lbfgs["to"][name], first["to"][name]) for name in targets},
        }
    }
    for algorithm, (options, name) in ONLINE.items():
        if name not in SOLVERS:
            say(f"{name} is not there")
            continue
        first, ours = our_epochs(problem, name, options["max_iterations"])
        peer = theirs.train(algorithm, **options)
        second, _ = our_epochs(problem, name, options["max_iterations"])
        mean = statistics.mean(run["seconds per iteration"] for run in (first, second))
        report[algorithm] = {
            "crfkit": [first, second],
            "crfsuite": peer,
            "times faster": {"per epoch": divided(peer["seconds per iteration"], mean)},
        }
        if algorithm == "l2sgd":
            f1 = peer["f1"]
            report[algorithm]["seconds to its F1"] = {"auto": scores.seconds_to(f1), "sgd": ours.seconds_to(f1)}
    return report


# l1


def l1(bench: Bench) -> Report:
    if not hasattr(penalties, "L1") or "owlqn" not in SOLVERS:
        say("there is no L1 or no owlqn: skipped")
        return {}
    problem = bench.conll
    theirs: Report = {}
    runs: dict[str, list[Result]] = {"owlqn": [], "auto": []}

    def ours(name: str) -> None:
        solver = make_solver(name, stopping=PeriodDecrease(1e-7), max_iterations=100_000)
        result = problem.minimize(solver, penalties.L1(1.0), [Until(-math.inf, 3 * bench.limit)])
        say(f"crfkit   {name:22s} {result.seconds:6.2f} s  {result.value:.2f}  {result.trace[-1].nonzeros} non-zero")
        runs[name].append(result)

    ours("owlqn")
    ours("auto")
    theirs = bench.crfsuite.train("lbfgs", c1=1.0, c2=0.0, max_iterations=300)
    ours("owlqn")
    ours("auto")
    targets = {"CRFsuite's last": theirs["value"], **(L1_CLOSE if problem.whole else {})}
    theirs["to"] = {name: first_below(theirs["trace"], value) for name, value in targets.items()}

    def row(result: Result) -> Report:
        rows = [{"seconds": row.seconds, "evaluations": row.evaluations, "value": row.value} for row in result.trace]
        to = {name: reached(rows, value) for name, value in targets.items()}
        return summary(result) | {"nonzeros": result.trace[-1].nonzeros, "to": to}

    report = {name: [row(result) for result in results] for name, results in runs.items()}
    faster = {name: divided(theirs["seconds"], seconds_at(rows[0], "CRFsuite's last")) for name, rows in report.items()}
    return {"crfsuite": theirs, **report, "times faster": faster}


def seconds_at(run: Report, target: str) -> float | None:
    row = run["to"][target]
    return row["seconds"] if row else None


# tables and plots


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def number(x: float | None, digits: int = 2, unit: str = "") -> str:
    return "–" if x is None else f"{x:,.{digits}f}{unit}"


def hessian_table(r: Report) -> str:
    rows = [(name, f"{1e3 * s:.1f} ms", number(r["ratios"][name])) for name, s in r["seconds"].items()]
    return table(["", "time", "× value and gradient"], rows)


def smooth_table(r: Report) -> str:
    def cell(run: Report, gap: str) -> str:
        row = run["to"][gap]
        return f"{row['seconds']:.2f} s, {row['work']:.0f}" if row else "–"

    tables = []
    for title, part in r.items():
        rows = [
            (name, *(cell(run, gap) for gap in GAPS), f"{run['evaluations']} + {run['products']}")
            for name, run in part["solvers"].items()
        ]
        text = f"{title}: {part['weights']:,} weights, best {part['best']:.2f}, a product costs {part['product']:.2f}"
        tables += [text, table(["time, work to", *GAPS, "evaluations + products in all"], rows)]
    return "\n\n".join(tables)


def tron_table(r: Report) -> str:
    rows = [
        (name, f"{x['seconds']:.2f} s", f"{x['evaluations']}", f"{x['products']}", f"{x['value']:.4f}", x["status"])
        for name, x in r.items()
        if isinstance(x, dict) and "status" in x
    ]
    return table(["", "time", "evaluations", "products", "objective", ""], rows)


def crfsuite_table(r: Report) -> str:
    ours, peer = r["lbfgs"]["crfkit"][0], r["lbfgs"]["crfsuite"]
    rows = [
        (f"lbfgs, auto: to {name}", number(ours["to"][name], 2, " s"), number(peer["to"][name], 2, " s"), number(x, 1))
        for name, x in r["lbfgs"]["times faster"].items()
    ]
    rows.append(("F1 there", number(100 * ours["f1"]), number(100 * peer["f1"]), ""))
    for algorithm, part in r.items():
        if algorithm == "lbfgs":
            continue
        ours, peer = part["crfkit"][0], part["crfsuite"]
        cells = (number(x["seconds per iteration"], 3, " s") for x in (ours, peer))
        rows.append(
            (f"{algorithm}, {ONLINE[algorithm][1]}: epoch", *cells, number(part["times faster"]["per epoch"], 1))
        )
        rows.append((f"F1 after {peer['iterations']}", number(100 * ours["f1"]), number(100 * peer["f1"]), ""))
        for name, seconds in part.get("seconds to its F1", {}).items():
            cells = (number(seconds, 2, " s"), number(peer["seconds"], 2, " s"))
            rows.append((f"{name}: to that F1", *cells, number(divided(peer["seconds"], seconds), 1)))
    return table(["", "crfkit", "python-crfsuite", "times faster"], rows)


def l1_table(r: Report) -> str:
    if not r:
        return "not run"
    targets = list(r["crfsuite"]["to"])
    peer = r["crfsuite"]
    rows = [
        (
            "CRFsuite lbfgs",
            *(number(peer["to"][t], 2, " s") for t in targets),
            number(peer["value"]),
            str(peer["nonzeros"]),
        )
    ]
    for name in ("owlqn", "auto"):
        run = r[name][0]
        cells = [f"{x['seconds']:.2f} s, {x['evaluations']}" if (x := run["to"][t]) else "–" for t in targets]
        rows.append((name, *cells, number(run["value"]), str(run["nonzeros"])))
    return table(["time, evaluations to", *targets, "objective", "non-zero"], rows)


def plot(r: Report, path: Path) -> None:
    """The gap against seconds and against work, a row for each data set."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    names = [name for name in SOLVERS if any(name in part["solvers"] for part in r.values())]
    styles = {
        name: {
            "color": COLOURS[k % len(COLOURS)],
            "linestyle": "-" if k < len(COLOURS) else "--",
            "marker": "osD^vPX<>*p"[k % 11],
        }
        for k, name in enumerate(names)
    }
    figure, axes = plt.subplots(len(r), 2, figsize=(11, 4 * len(r)), sharey="row", squeeze=False, layout="constrained")
    lines: dict[str, Any] = {}
    for (title, part), pair in zip(r.items(), axes, strict=True):
        for ax, against, unit in zip(pair, ("seconds", "work"), ("seconds", "evaluations' worth of work"), strict=True):
            for name, run in part["solvers"].items():
                gaps = np.maximum(np.array(run["trace"]["value"]) / part["best"] - 1, 1e-6)
                x = run["trace"][against]
                every = max(1, len(x) // 8)
                (lines[name],) = ax.plot(x, gaps, **styles[name], markersize=5, markevery=every, linewidth=1.6)
            ax.set(xscale="log", yscale="log", xlabel=unit, title=title)
            ax.grid(alpha=0.3)
        pair[0].set_ylabel("objective above the best, relative")
        pair[0].set_ylim(min(GAPS.values()) / 3, 3)
    figure.legend([lines[name] for name in names], names, loc="outside right upper", fontsize=11)
    figure.savefig(path, dpi=110)
    plt.close(figure)


PARTS: dict[str, tuple[Callable[[Bench], Report], Callable[[Report], str]]] = {
    "hessian": (hessian, hessian_table),
    "smooth": (smooth, smooth_table),
    "tron": (tron, tron_table),
    "crfsuite": (crfsuite, crfsuite_table),
    "l1": (l1, l1_table),
}


def machine() -> Report:
    return {
        "cores": count_threads(None),
        "processor": platform.processor() or platform.machine(),
        "kernels": available_kernels()[0],
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def write(results: Report, output: Path) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(results, indent=1)
    text = re.sub(r"\[[-\d.e,+\s]+\]", lambda numbers: " ".join(numbers[0].split()), text)  # a line for each list
    output.with_suffix(".json").write_text(text + "\n")
    tables = [f"## {name}\n\n{show(results[name])}" for name, (_, show) in PARTS.items() if name in results]
    output.with_suffix(".md").write_text("\n\n".join(tables) + "\n")
    if results.get("smooth"):
        plot(results["smooth"], output.with_suffix(".png"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "solvers")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for each solver of the part smooth")
    parser.add_argument("--sequences", type=int, help="only the first so many of each file")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    options = parser.parse_args()
    parts = options.parts.split(",")
    if unknown := sorted(set(parts) - set(PARTS)):
        parser.error(f"unknown parts: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if not (options.data / "conll2000").is_dir():
        print(f"skipped: there is no conll2000 in {options.data}; see benchmarks/README.md")
        return
    saved = options.output.with_suffix(".json")
    results: Report = json.loads(saved.read_text()) if saved.exists() else {"runs": {}}
    results["machine"] = machine()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.data, options.limit, options.sequences, Path(folder))
        for name in parts:
            print(f"{name} …", flush=True)
            begin = time.perf_counter()
            results[name] = PARTS[name][0](bench)
            run = {"limit": options.limit, "sequences": options.sequences, "seconds": time.perf_counter() - begin}
            results["runs"][name] = run
            write(results, options.output)
            print(PARTS[name][1](results[name]), flush=True)


if __name__ == "__main__":
    main()
