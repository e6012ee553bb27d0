"""All solvers, and python-crfsuite's, on CoNLL-2000 chunking and Spanish named entities.

    python benchmarks/solvers.py [--output results/solvers] [--limit 20] [--sequences N] [--parts a,b] [--resume]

hessian   what a Hessian-vector product costs: ours, by finite differences, by automatic differentiation (JAX)
smooth    every solver of loss + L2: time and work until the objective is 1 %, 0.1 %, … above the best known
tron      to a gradient of 1e-6 of the first: TRON plain, preconditioned, warm-started; L-BFGS; auto
crfsuite  CRFsuite's online algorithms and ours, run ours – theirs – ours; its L-BFGS and OWL-QN are in speed.py
l1        our solvers of loss + L1: evaluations and weights that are not zero

Work is counted in evaluations of value and gradient: a product counts by its measured time, an epoch as one.
Our seconds are wall-clock time on all cores; CRFsuite's, which uses one, are the processor time that it logs for the
optimisation alone. Writes JSON, into which parts that are run later are merged, Markdown tables and a plot. --resume
keeps the parts that were measured on this machine with these sources.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
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
from common import Store
from solvers_report import (
    GAPS,
    ONLINE,
    Report,
    crfsuite_table,
    hessian_table,
    l1_table,
    plot,
    smooth_table,
    tron_table,
)

from crfkit import L2, Template, evaluate, penalties, read_columns
from crfkit._threads import count_threads, using_threads
from crfkit.arrays import norm
from crfkit.chain.encoding.sequences import learn
from crfkit.chain.fields.field import ChainField
from crfkit.chain.inference import ChainInference
from crfkit.errors import CapabilityError, StopTraining
from crfkit.losses import ChainLikelihood
from crfkit.result import Result, TraceRow
from crfkit.solvers import LBFGS, SOLVERS, Auto, Iteration, PeriodDecrease, Tron, make_solver

HERE = Path(__file__).resolve().parent
PENALTY = L2.from_crfsuite(c2=1.0)
BEST = 12_887.12  # the least value known of CoNLL-2000, observed pairs, L2(2)
L1_CLOSE = {"16834.2": 16_834.2, "16802.5": 16_802.5}  # where CRFsuite's OWL-QN stops; near the optimum
DENSE = ("bfgs", "dfp")  # they need a matrix of all pairs of weights
MANY = 1_000_000
Works = dict[str, Callable[[], Any]]


class Problem:
    """A training set, a test set and the observed parameter set."""

    def __init__(self, train: Path, test: Path, template: Path, sequences: int | None) -> None:
        self.whole = sequences is None
        self.template = Template.read(template)
        self.rows, self.labels = (part[:sequences] for part in read_columns(train))
        self.test_rows, self.test_labels = (part[:sequences] for part in read_columns(test))
        self.corpus = learn(self.rows, self.labels, self.template, 1)
        self.test = self.corpus.vocabulary.encode(self.test_rows)
        n_labels, n_attributes = len(self.corpus.classes), len(self.corpus.vocabulary.attributes)
        self.field = ChainField.from_data(
            self.corpus.data, n_labels, n_attributes, all_states=False, all_transitions=False
        )

    def loss(self, **options: Any) -> ChainLikelihood:
        return ChainLikelihood(self.corpus.data, self.field, **options)

    def minimize(self, solver: Any, penalty: Any = PENALTY, callbacks: Sequence[Any] = (), w0: Any = None) -> Result:
        with using_threads(count_threads(None)):
            return solver.minimize(self.loss(), penalty, np.zeros(self.field.size) if w0 is None else w0, callbacks)

    def f1(self, w: Any) -> float:
        """Of the phrases of the test set."""
        labels, _ = ChainInference(self.field, w).decode(self.test)
        names = self.corpus.classes
        return evaluate(self.test_labels, [names[row].tolist() for row in self.test.split(labels)]).overall.f1


class Bench:
    """The options, and the data sets when they are first asked for."""

    def __init__(self, data: Path, limit: float, sequences: int | None, folder: Path) -> None:
        self.data, self.limit, self.sequences, self.folder = data, limit, sequences, folder

    def read(self, train: str, test: str) -> Problem:
        template = self.data / "conll2000" / "chunking.template"
        return Problem(self.data / train, self.data / test, template, self.sequences)

    @cached_property
    def conll(self) -> Problem:
        return self.read("conll2000/train.txt", "conll2000/test.txt")

    @cached_property
    def crfsuite(self) -> CRFsuite:
        return CRFsuite(self.conll, self.folder / "model.crfsuite")

    def problems(self) -> dict[str, Problem]:
        found = {"CoNLL-2000": self.conll}
        if (self.data / "conll2002_spanish").is_dir():
            found["Spanish NER"] = self.read("conll2002_spanish/esp.train", "conll2002_spanish/esp.testb")
        else:
            say(f"there is no conll2002_spanish in {self.data}: skipped")
        return found


class Never:
    """A stopping rule: callbacks end the run."""

    def satisfied(self, trace: Sequence[TraceRow], w: Any) -> bool:
        return False


@dataclass(frozen=True)
class GradientBelow:
    """A stopping rule: ‖g‖ ≤ bound."""

    bound: float

    @classmethod
    def of_first(cls, problem: Problem, share: float = 1e-6) -> GradientBelow:
        """The bound is a share of the gradient at w = 0."""
        return cls(share * norm(problem.loss().at(np.zeros(problem.field.size)).grad))

    def satisfied(self, trace: Sequence[TraceRow], w: Any) -> bool:
        return trace[-1].optimality <= self.bound


@dataclass(frozen=True)
class Until:
    """Callback: ends a run at a value of the objective or after so many seconds."""

    limit: float
    value: float = -math.inf

    def __call__(self, iteration: Iteration) -> None:
        if iteration.row.value <= self.value or iteration.row.seconds >= self.limit:
            raise StopTraining()


class Scores:
    """Callback: the test set's F1 at each iteration, with the solver's seconds until then."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.rows: list[tuple[float, float]] = []

    def __call__(self, iteration: Iteration) -> None:
        self.rows.append((iteration.row.seconds, self.problem.f1(iteration.w)))

    def seconds_to(self, f1: float) -> float | None:
        return next((seconds for seconds, found in self.rows if found >= f1), None)


def say(text: str) -> None:
    print(f"  {text}", flush=True)


def clocked(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def interleaved(works: Works, rounds: int) -> dict[str, list[float]]:
    """Seconds of each, one after the other in every round."""
    for work in works.values():
        work()
    times = [{name: clocked(work) for name, work in works.items()} for _ in range(rounds)]
    return {name: [row[name] for row in times] for name in works}


def ratio(numerator: Sequence[float], denominator: Sequence[float]) -> float:
    return statistics.median(a / b for a, b in zip(numerator, denominator, strict=True))


def difference(x: Any, y: Any) -> float:
    """Relative."""
    return float(np.linalg.norm(np.subtract(x, y)) / np.linalg.norm(y))


def outcome(result: Result) -> Report:
    counts = {name: getattr(result, name) for name in ("iterations", "evaluations", "products", "seconds")}
    return {"status": result.status.name, "value": result.value, "optimality": result.optimality, **counts}


def first_at(rows: Sequence[Report], value: float) -> Report | None:
    """The first row at or below a value."""
    return next((row for row in rows if row["value"] <= value), None)


def seconds_at(rows: Sequence[Report], value: float) -> float | None:
    row = first_at(rows, value)
    return row["seconds"] if row else None


def columns(rows: Sequence[Report], names: Sequence[str]) -> dict[str, list[float]]:
    """Of a trace, without rows within 2 % of the seconds of the one before."""
    kept = list(rows[:1])
    for row in rows[1:]:
        if row["seconds"] >= 1.02 * kept[-1]["seconds"] or row is rows[-1]:
            kept.append(row)
    return {name: [row[name] for row in kept] for name in names}


# --- hessian ----------------------------------------------------------------------------------------------------------


def hessian(bench: Bench, rounds: int = 15) -> Report:
    problem = bench.conll
    w = few_iterations(problem)
    v = np.random.default_rng(0).normal(size=len(w))
    works, exact = our_products(problem, w, v)
    agreement = {
        name: difference(works[name](), exact) for name in ("product without cache", "product by finite differences")
    }
    times = interleaved(works, rounds)
    ratios = {name: ratio(row, times["value and gradient"]) for name, row in times.items()}
    seconds = {name: statistics.median(row) for name, row in times.items()}
    report = {"weights": len(w), "seconds": seconds, "ratios": ratios, "agreement": agreement}
    if importlib.util.find_spec("jax"):
        # in rounds of their own: threads of JAX stay awake for a while and would disturb what comes after
        theirs, found, report["compilation seconds"] = jax_products(problem, w, v, exact)
        agreement |= found
        times = interleaved({"value and gradient": works["value and gradient"], **theirs}, rounds)
        seconds |= {name: statistics.median(times[name]) for name in theirs}
        ratios |= {name: ratio(times[name], times["value and gradient"]) for name in theirs}
    else:
        say("jax is not installed: no automatic differentiation")
    for name, error in agreement.items():
        say(f"{name} agrees to {error:.1e}")
    return report


def few_iterations(problem: Problem) -> Any:
    """Weights after five iterations of L-BFGS."""
    return problem.minimize(LBFGS(max_iterations=5, stopping=Never())).w


def our_products(problem: Problem, w: Any, v: Any) -> tuple[Works, Any]:
    """(what to measure, the product); a loss that was asked for products keeps more of an evaluation."""
    plain, keeping = problem.loss(), problem.loss()
    keeping.at(w).hessp(v)
    cached, uncached = problem.loss().at(w), problem.loss(cache_bytes=0).at(w)
    step = 1e-6 * norm(w) / norm(v)
    works: Works = {
        "value and gradient": lambda: plain.at(w).value,
        "value and gradient, kept for products": lambda: keeping.at(w).value,
        "product": lambda: cached.hessp(v),
        "product without cache": lambda: uncached.hessp(v),
        "diagonal": lambda: plain.at(w).hess_diag(),
        "product by finite differences": lambda: (
            (plain.at(w + step * v).grad - plain.at(w - step * v).grad) / (2 * step)
        ),
    }
    return works, cached.hessp(v)


def jax_products(problem: Problem, w: Any, v: Any, exact: Any) -> tuple[Works, dict[str, float], dict[str, float]]:
    """(what to measure, how well it agrees, seconds to compile)."""
    import autodiff

    value_gradient, product = autodiff.compiled(problem.corpus.data, problem.field)
    works: Works = {
        "value and gradient in JAX": lambda: value_gradient(w),
        "product in JAX": lambda: product(w, v),
    }
    compilation = {name: clocked(work) for name, work in works.items()}
    ours = problem.loss().at(w)
    value, gradient = value_gradient(w)
    agreement = {
        "value in JAX": abs(value / ours.value - 1),
        "gradient in JAX": difference(gradient, ours.grad),
        "product in JAX": difference(product(w, v), exact),
    }
    if max(agreement.values()) > 1e-8:
        raise SystemExit(f"JAX and crfkit disagree: {agreement}")
    return works, agreement, compilation


# --- smooth -----------------------------------------------------------------------------------------------------------


def smooth(bench: Bench) -> Report:
    report: Report = {}
    for title, problem in bench.problems().items():
        say(f"{title}: {problem.field.size:,} weights")
        best = BEST if problem.whole and problem is bench.conll else least(problem, 20 * bench.limit)
        product = product_ratio(problem)
        runs = {name: smooth_run(problem, name, best, product, bench.limit) for name in SOLVERS if able(name)}
        report[title] = {
            "weights": problem.field.size,
            "best": best,
            "product": product,
            "solvers": {name: run for name, run in runs.items() if run},
        }
    return report


def able(name: str) -> bool:
    """Whether a solver minimises loss + L2 without a dense matrix."""
    takes = getattr(SOLVERS[name], "handles_smooth", None)
    return name not in DENSE and (takes is None or "l2" in takes)


def least(problem: Problem, limit: float) -> float:
    """The optimum by TRON: ‖g‖ ≤ 1e-6‖g₀‖ leaves some 1e-7 of it."""
    start = problem.minimize(Auto(epochs=10, max_iterations=10)).w
    solver = Tron(stopping=GradientBelow.of_first(problem))
    result = problem.minimize(solver, callbacks=[Until(limit)], w0=start)
    say(f"best value {result.value:.4f}: {result.status.name}")
    return result.value


def product_ratio(problem: Problem) -> float:
    """Seconds of a Hessian-vector product by those of value and gradient."""
    w = few_iterations(problem)
    plain, held = problem.loss(), problem.loss().at(w)
    times = interleaved({"evaluation": lambda: plain.at(w).value, "product": lambda: held.hessp(w)}, 11)
    return ratio(times["product"], times["evaluation"])


def smooth_run(problem: Problem, name: str, best: float, product: float, limit: float) -> Report | None:
    solver = make_solver(name, stopping=Never(), max_iterations=MANY)
    try:
        result = problem.minimize(solver, callbacks=[Until(limit, best * (1 + min(GAPS.values())))])
    except CapabilityError as error:
        say(f"{name}: {error}")
        return None
    n = len(problem.corpus.data)
    rows = [row.as_dict() | {"work": work_until(solver, row, product, n)} for row in result.trace]
    kept = ("seconds", "evaluations", "products", "work", "value")
    reached = {gap: first_at(rows, best * (1 + share)) for gap, share in GAPS.items()}
    to = {gap: {key: row[key] for key in kept} if row else None for gap, row in reached.items()}
    say(f"{name:20s} {result.seconds:6.2f} s  gap {result.value / best - 1:.1e}  {result.status.name}")
    return outcome(result) | {"to": to, "trace": columns(rows, ("seconds", "work", "value"))}


def work_until(solver: Any, row: TraceRow, product: float, n_sequences: int) -> float:
    """Everything until a row, in evaluations. SMD counts the products with mini-batches: an epoch makes one."""
    epochs, products = 0, row.products
    if isinstance(solver, Auto) and n_sequences >= solver.least_sequences:
        epochs = solver.epochs
    elif "online" in solver.needs:
        epochs = row.iteration
    elif "subset" in solver.needs:
        epochs = products = row.iteration
    return row.evaluations + product * products + epochs


# --- tron -------------------------------------------------------------------------------------------------------------


def tron(bench: Bench) -> Report:
    problem = bench.conll
    rule = GradientBelow.of_first(problem)
    warm = problem.minimize(Auto(epochs=10, max_iterations=10))
    options: Report = {"stopping": rule, "max_iterations": MANY}
    runs = {
        "tron": (Tron(**options), None),
        "tron, preconditioned": (Tron(preconditioned=True, **options), None),
        "tron, warm start": (Tron(**options), warm),
        "tron, preconditioned, warm start": (Tron(preconditioned=True, **options), warm),
        "lbfgs": (LBFGS(**options), None),
        "auto": (Auto(**options), None),
    }
    solvers: Report = {}
    for name, (solver, start) in runs.items():
        result = problem.minimize(solver, callbacks=[Until(3 * bench.limit)], w0=start.w if start else None)
        row = outcome(result) | {"seconds": result.seconds + (start.seconds if start else 0.0)}
        say(f"{name:34s} {row['seconds']:6.2f} s  {row['evaluations']} + {row['products']}  {row['status']}")
        solvers[name] = row
    return {"bound": rule.bound, "warm start seconds": warm.seconds, "solvers": solvers}


# --- crfsuite ---------------------------------------------------------------------------------------------------------


class CRFsuite:
    """python-crfsuite on the same data."""

    def __init__(self, problem: Problem, model: Path) -> None:
        self.problem, self.model = problem, model
        self.X, self.X_test = self._attributes(problem.rows), self._attributes(problem.test_rows)

    def _attributes(self, rows: Any) -> list[list[list[str]]]:
        return [[u for u, _ in self.problem.template.expand([list(r) for r in x])] for x in rows]

    def train(self, algorithm: str, **options: float) -> tuple[Report, list[Report]]:
        """(how it went, the trace)."""
        trainer = pycrfsuite.Trainer(algorithm, options, verbose=False)
        for x, y in zip(self.X, self.problem.labels, strict=True):
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
            "f1": evaluate(self.problem.test_labels, [tagger.tag(x) for x in self.X_test]).overall.f1,
        }
        if algorithm == "lbfgs":
            report["evaluations"] = 1 + sum(row["linesearch_trials"] for row in log)
            report["nonzeros"] = log[-1]["active_features"]
        if algorithm == "l2sgd":
            report["value"] = self.objective(tagger)  # it logs a sum over changing weights
        say(f"CRFsuite {algorithm:22s} {report['seconds']:7.2f} s  {report['value']:.2f}  F1 {report['f1']:.4f}")
        seconds = np.cumsum([row["time"] for row in log]).tolist()
        return report, [{"seconds": s, "value": row["loss"]} for s, row in zip(seconds, log, strict=True)]

    def objective(self, tagger: Any) -> float:
        """Ours, at the weights of its model."""
        field, corpus, info = self.problem.field, self.problem.corpus, tagger.info()
        find, label = corpus.vocabulary.attributes.find, {name: j for j, name in enumerate(corpus.classes.tolist())}
        state = {(find(a), label[b]): weight for (a, b), weight in info.state_features.items()}
        pair = {(label[a], label[b]): weight for (a, b), weight in info.transitions.items()}
        names = (zip(*map(np.ndarray.tolist, of), strict=True) for of in (field.state_ids(), field.transition_ids()))
        w = np.array([known.get(name, 0.0) for known, of in zip((state, pair), names, strict=True) for name in of])
        return self.problem.loss().at(w).value + PENALTY.value(w)


def crfsuite(bench: Bench) -> Report:
    best = BEST if bench.conll.whole else least(bench.conll, 20 * bench.limit)
    scores = Scores(bench.conll)
    until = Until(3 * bench.limit, best * (1 + min(GAPS.values())))
    bench.conll.minimize(Auto(stopping=Never(), max_iterations=MANY), callbacks=[scores, until])
    report: Report = {}
    for algorithm in ONLINE:
        report[algorithm], ours_scored = online_training(bench, algorithm)
        if algorithm == "l2sgd":
            f1 = report[algorithm]["crfsuite"]["f1"]
            to = {"auto": scores.seconds_to(f1), "sgd": ours_scored.seconds_to(f1)}
            report[algorithm]["seconds to its F1"] = to
    return report


def online_training(bench: Bench, algorithm: str) -> tuple[Report, Scores]:
    """Ours – CRFsuite's – ours, for so many epochs; SGD evaluates the objective after each."""
    epochs, options, name = ONLINE[algorithm]
    scores = Scores(bench.conll)

    def ours(callbacks: Sequence[Any]) -> Report:
        solver = make_solver(name, stopping=Never(), max_iterations=epochs)
        penalty = PENALTY if able(name) else penalties.NoPenalty()
        result = bench.conll.minimize(solver, penalty, callbacks)
        f1 = bench.conll.f1(result.w)
        say(f"crfkit   {name:22s} {result.seconds:7.2f} s  {result.value:.2f}  F1 {f1:.4f}")
        per_epoch = statistics.median(np.diff([row.seconds for row in result.trace]).tolist())
        return outcome(result) | {"seconds per iteration": per_epoch, "f1": f1}

    first = ours([scores] if name == "sgd" else [])
    theirs, _ = bench.crfsuite.train(algorithm, max_iterations=epochs, **options)
    runs = [first, ours([])]
    faster = theirs["seconds per iteration"] / statistics.mean(run["seconds per iteration"] for run in runs)
    return {"crfkit": runs, "crfsuite": theirs, "times faster": faster}, scores


# --- l1 ---------------------------------------------------------------------------------------------------------------


def l1(bench: Bench) -> Report:
    def report(result: Result) -> Report:
        rows = [row.as_dict() for row in result.trace]
        reached = {name: first_at(rows, value) for name, value in L1_CLOSE.items()}
        return outcome(result) | {"nonzeros": result.trace[-1].nonzeros, "to": reached}

    return {name: report(l1_run(bench, name)) for name in ("owlqn", "auto")}


def l1_run(bench: Bench, name: str) -> Result:
    solver = make_solver(name, stopping=PeriodDecrease(1e-7), max_iterations=MANY)
    result = bench.conll.minimize(solver, penalties.L1(1.0), [Until(3 * bench.limit)])
    say(f"crfkit   {name:22s} {result.seconds:7.2f} s  {result.value:.2f}  {result.trace[-1].nonzeros} non-zero")
    return result


# ----------------------------------------------------------------------------------------------------------------------

PARTS: dict[str, tuple[Callable[[Bench], Report | None], Callable[[Report], str]]] = {
    "hessian": (hessian, hessian_table),
    "smooth": (smooth, smooth_table),
    "tron": (tron, tron_table),
    "crfsuite": (crfsuite, crfsuite_table),
    "l1": (l1, l1_table),
}


def write_report(results: Report, output: Path) -> None:
    tables = [f"## {name}\n\n{show(results[name])}\n" for name, (_, show) in PARTS.items() if results.get(name)]
    output.with_suffix(".md").write_text("\n".join(tables), encoding="utf-8")
    if results.get("smooth"):
        plot(results["smooth"], output.with_suffix(".png"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "solvers")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds for each solver; some parts allow more")
    parser.add_argument("--sequences", type=int, help="only the first so many of each file")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--resume", action="store_true", help="keep parts of this machine and these sources")
    options = parser.parse_args()
    parts = options.parts.split(",")
    if unknown := sorted(set(parts) - set(PARTS)):
        parser.error(f"unknown parts: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if not (options.data / "conll2000").is_dir():
        print(f"skipped: there is no conll2000 in {options.data}; see benchmarks/README.md")
        return
    store = Store(options.output.with_suffix(".json"), options.resume)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.data, options.limit, options.sequences, Path(folder))
        for name in parts:
            make, show = PARTS[name]
            store.part(name, lambda make=make: make(bench))
            store.results.setdefault("options", {})[name] = {"limit": options.limit, "sequences": options.sequences}
            store.write()
            write_report(store.results, options.output)
            print(show(store.results[name]), flush=True)


if __name__ == "__main__":
    main()
