"""What the tables of the paper do not show: step rules, line searches, constants, curves, the cost of inference."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from agpm_store import Store
from halves import Halves
from problem import METHODS, Problem, paper_rule

from crfkit.graph.inference.junction import Junction
from crfkit.solvers import ADMM, AGPM, FISTA, PQN, SPG, GradientNorm, Zhou
from crfkit.solvers.parts.line_searches.nonmonotone import SEARCHES
from crfkit.solvers.parts.step_rules import STEP_RULES

Settings = list[tuple[int, int]]


def engines(store: Store, settings: Settings, draws: int, repeats: int) -> None:
    """Measure CPU seconds per evaluation with 100 samples and 10 features; the least of `repeats`."""
    del draws
    for nodes in sorted({nodes for nodes, _ in settings}):
        row = store.at("engines", str(nodes))
        if row:
            continue
        begin = time.process_time()
        rng = np.random.default_rng(0)
        for name, kind, engine in (
            ("junction", "likelihood", Junction(n_threads=1)),
            ("halves", "likelihood", Halves()),
            ("pseudo-likelihood", "pl", None),
        ):
            problem = Problem(kind, nodes, 10, 100, 0, engine)
            count = 1 if name == "junction" and nodes > 10 else 10
            times = []
            for _ in range(repeats):
                w = 0.1 * rng.normal(size=(count, problem.loss.size))
                start = time.process_time()
                for point in w:
                    problem.evaluate(point)
                times.append((time.process_time() - start) / count)
            row[name] = round(min(times), 6)
        print("engines", nodes, row, flush=True)
        store.spent("engines", begin)


def rules(store: Store, settings: Settings, draws: int, repeats: int) -> None:
    """Run every step rule with every line search, and other solvers, at 10 nodes and 10 features."""
    del settings, repeats
    for draw in range(draws):
        rows = store.at("rules", str(draw))
        if rows:
            continue
        begin = time.process_time()
        problem = Problem("pl", 10, 10, 100, draw)
        solvers: dict[str, Any] = {
            f"{rule}, {search}": paper_rule(SPG, step_rule=rule, search=search)
            for rule in STEP_RULES
            for search in SEARCHES
        }
        solvers["pqn"] = paper_rule(PQN)
        near = _Near(problem.minimize(paper_rule(AGPM))[0].value)  # for those that have no projected gradient
        solvers |= {"fista": FISTA(stopping=near), "admm": ADMM(stopping=near)}
        for name, solver in solvers.items():
            result, cpu = problem.minimize(solver)
            rows[name] = {"evaluations": result.evaluations, "cpu": round(cpu, 4), "status": result.status.name}
        print("rules", draw, {name: row["evaluations"] for name, row in rows.items()}, flush=True)
        store.spent("rules", begin)


class _Near:
    """Stop at a value."""

    def __init__(self, value: float) -> None:
        self.value = value

    def satisfied(self, trace: Any, w: Any) -> bool:
        return bool(trace[-1].value <= self.value * (1 + 1e-7))


def variants(store: Store, settings: Settings, draws: int, repeats: int) -> None:
    """Count evaluations with other constants and line searches, on draws of each setting of Table 1."""
    del repeats
    solvers: dict[str, Any] = {
        "M-[14]": paper_rule(SPG),
        "M-[23]": paper_rule(Zhou),
        "AGPM": paper_rule(AGPM),
        "AGPM, η = .95": paper_rule(AGPM, eta=0.95),
        "AGPM, armijo": paper_rule(AGPM, search="armijo"),
        "AGPM, gll": paper_rule(AGPM, search="gll"),
        "AGPM, dai-fletcher": paper_rule(AGPM, search="dai-fletcher"),
        "AGPM, huang": paper_rule(AGPM, search="huang"),
        "AGPM, κ = .3": paper_rule(AGPM, kappa=0.3),
        "AGPM, κ = .9": paper_rule(AGPM, kappa=0.9),
        "AGPM as printed": paper_rule(AGPM, step_rule="agpm-printed"),
        "yu, zhang-hager": paper_rule(SPG, step_rule="yu", search="zhang-hager"),
        "M-[14], zhang-hager": paper_rule(SPG, search="zhang-hager"),
        "M-[14], dai-fletcher": paper_rule(SPG, search="dai-fletcher"),
        "M-[14], huang": paper_rule(SPG, search="huang"),
    }
    for nodes, features in settings:
        for draw in range(draws):
            row = store.at("variants", f"{nodes}/{features}", str(draw))
            missing = [name for name in solvers if name not in row]
            if not missing:
                continue
            begin = time.process_time()
            problem = Problem("pl", nodes, features, 100, draw)
            for name in missing:
                row[name] = problem.minimize(solvers[name])[0].evaluations
            print("variants", nodes, features, draw, row, flush=True)
            store.spent("variants", begin)


def traces(store: Store, settings: Settings, draws: int, repeats: int) -> None:
    """Keep the objective against evaluations: 10 nodes, 10 features, 500 and 1,000 samples, the first draw."""
    del settings, draws, repeats
    for n_train in (500, 1000):
        rows = store.at("traces", str(n_train))
        if rows:
            continue
        begin = time.process_time()
        problem = Problem("pl", 10, 10, n_train)
        runs = {name: problem.minimize(paper_rule(make))[0] for name, make in METHODS.items()}
        long = AGPM(eps=1e-6, stopping=GradientNorm(0.0), max_iterations=20_000)
        best = min(problem.minimize(long)[0].value, *(run.value for run in runs.values()))
        for name, run in runs.items():
            steps = [run.trace[k] for k in np.unique(np.geomspace(1, len(run.trace), 150).astype(int)) - 1]
            rows[name] = {
                "evaluations": [step.evaluations for step in steps],
                "gap": [float(f"{max(step.value / best - 1, 1e-12):.3g}") for step in steps],
            }
        store.spent("traces", begin)
