"""Learning structure by adaptive gradient projection: the experiments of Xue & Zhang (2016).

    python experiments/agpm/run.py [--losses pl,likelihood] [--parts table,figures,rules,seeds] [--nodes 5,10,15]
        [--repeats 1] [--output DIR]

Random pairwise CRFs (every pair an edge with probability .5), all pairs as candidates, λ₁‖v‖² + λ₂Σ‖w_s‖_∞ with
λ₁ = λ₂ = .5, from zero until ‖P(x − ∇f) − x‖ < 10⁻⁴. Table 1: 5, 10, 15 nodes × 5, 10, 15, 20 features, 100 training
and 100 test samples. Figure 1: the same with 500 training samples, figure 2: 10 nodes, 10, 15, 20 features, 1,000
samples. Methods take turns; on one thread, whose CPU seconds count: others may use the machine as well. The test error
is the share of nodes whose most probable label by exact marginals is wrong. The likelihood is by exact inference and
left out at 15 nodes, where one evaluation takes .6 s and the three methods would take hours. Seeds: the settings of
Table 1 with three draws of the data each. Writes results.json, which is merged with what is there, results.md and two
figures.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import math
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from crfkit.fields.graph import untied_field
from crfkit.inference.junction import Junction
from crfkit.losses import GraphLikelihood, PseudoLikelihood
from crfkit.penalties import L2, Blockwise, GroupLinf
from crfkit.solvers import ADMM, AGPM, FISTA, PQN, SPG, GradientNorm, Zhou
from crfkit.solvers.parts.step_rules import STEP_RULES
from crfkit.synthetic import PairwiseTable, random_pairwise

HERE = Path(__file__).resolve().parent
METHODS = {"M-[14] (spg)": SPG, "M-[23] (zhou)": Zhou, "AGPM": AGPM}
SETTINGS = [(nodes, features) for nodes in (5, 10, 15) for features in (5, 10, 15, 20)]
PAPER = [0.832, 1.155, 1.538, 1.981, 3.423, 5.000, 6.779, 9.379, 8.943, 13.923, 20.124, 25.623]  # seconds of AGPM
LAMBDA_1, LAMBDA_2, EPSILON = 0.5, 0.5, 1e-4
N_TEST = 100


EXACT_NODES = 10  # the most that the likelihood is run with
SEEDS = (0, 1, 2)


@cache
def table_of(nodes: int, features: int, n_train: int, seed: int = 0) -> PairwiseTable:
    return random_pairwise(nodes, features, n_train + N_TEST, seed=100_000 * seed + 1000 * nodes + features)


class Problem:
    """One data set with one loss."""

    def __init__(self, kind: str, nodes: int, features: int, n_train: int, seed: int = 0) -> None:
        self.table = table_of(nodes, features, n_train, seed)
        train, self.test = self.table[:n_train].data(), self.table[n_train:].data()
        self.field = untied_field(train, 2)
        engine = Junction(n_threads=1)
        self.loss: Any = (
            PseudoLikelihood(train, self.field, 1) if kind == "pl" else GraphLikelihood(train, self.field, engine)
        )
        self.pairs = train.graph.take([0])[0].edges.tolist()
        groups = np.repeat(np.arange(len(self.pairs)), self.field.n_edge_weights // len(self.pairs))
        self.penalty = Blockwise({"node": L2(2 * LAMBDA_1), "edge": GroupLinf(LAMBDA_2, groups)})
        self.loss.at(np.zeros(self.loss.size)).grad  # builds what is built once  # noqa: B018

    def minimize(self, solver: Any) -> Any:
        return solver.minimize(self.loss, self.penalty, np.zeros(self.loss.size))

    def run(self, solver: Any) -> tuple[dict[str, Any], Any]:
        begin = time.process_time()
        result = self.minimize(solver)
        cpu = time.process_time() - begin
        kept = result.w[self.field.layout["edge"]].reshape(len(self.pairs), -1).any(axis=1)
        true = set(map(tuple, self.table.edges.tolist()))
        marginals = Junction(n_threads=1).run(self.field.potentials(self.test, result.w)).nodes
        return {
            "evaluations": result.evaluations,
            "iterations": result.iterations,
            "seconds": result.seconds,
            "cpu": cpu,
            "objective": result.value,
            "error": float(((marginals[:, 1] > 0.5) != self.test.labels).mean()),
            "edges": int(kept.sum()),
            "true": len(true),
            "candidates": len(self.pairs),
            "hits": sum(tuple(pair) in true for pair, k in zip(self.pairs, kept, strict=True) if k),
            "status": result.status.name,
        }, result


def paper_rule(make: Any, **options: Any) -> Any:
    return make(eps=EPSILON, stopping=GradientNorm(0.0), **options)


def compare(kind: str, nodes: int, features: int, n_train: int, repeats: int) -> dict[str, Any]:
    """All methods on one problem; of several repeats the quickest."""
    problem = Problem(kind, nodes, features, n_train)
    rows: dict[str, Any] = {}
    for _ in range(repeats):
        for name, make in METHODS.items():
            row, _ = problem.run(paper_rule(make))
            if name not in rows or row["cpu"] < rows[name]["cpu"]:
                rows[name] = row
    ended = [row["objective"] for row in rows.values() if row["status"] == "CONVERGED"]
    assert not ended or max(ended) < min(ended) * (1 + 1e-4) + 1e-4, rows
    return rows


def rules(repeats: int) -> dict[str, Any]:
    """Every step rule with every line search, and the other solvers, at 10 nodes and 10 features."""
    problem = Problem("pl", 10, 10, 100)
    solvers: dict[str, Any] = {
        f"{rule}, {search}": paper_rule(SPG, step_rule=rule, search=search)
        for rule in STEP_RULES
        for search in ("armijo", "gll", "zhang-hager")
    }
    target = problem.run(paper_rule(AGPM))[1].value
    solvers["pqn"] = paper_rule(PQN)
    near = _Near(target)  # those that have no projected gradient stop at the value of AGPM
    solvers |= {"fista (to AGPM's objective)": FISTA(stopping=near), "admm (to AGPM's objective)": ADMM(stopping=near)}
    rows = {}
    for name, solver in solvers.items():
        tries = [problem.run(solver)[0] for _ in range(repeats)]
        rows[name] = min(tries, key=lambda row: row["cpu"])
        print(name, rows[name]["evaluations"], f"{rows[name]['cpu']:.2f}", flush=True)
    return rows


def seeds(chosen: list[tuple[int, int]]) -> dict[str, Any]:
    """Evaluations of rules and line searches on several draws of each setting: the rules are chaotic."""
    solvers: dict[str, Any] = {
        "M-[14] (bb1, gll)": paper_rule(SPG),
        "M-[23] (zhou, gll)": paper_rule(Zhou),
        "AGPM (κ = .5, zhang-hager η = .7)": paper_rule(AGPM),
        "AGPM, η = .95": paper_rule(AGPM, eta=0.95),
        "AGPM, gll": paper_rule(AGPM, search="gll"),
        "AGPM, κ = .3": paper_rule(AGPM, kappa=0.3),
        "AGPM, κ = .9": paper_rule(AGPM, kappa=0.9),
        "yu (κ = .9), zhang-hager": paper_rule(SPG, step_rule="yu", search="zhang-hager"),
        "bs1, gll": paper_rule(SPG, step_rule="bs1"),
    }
    rows: dict[str, Any] = {name: {} for name in solvers}
    for nodes, features in chosen:
        for seed in SEEDS:
            problem = Problem("pl", nodes, features, 100, seed)
            for name, solver in solvers.items():
                evaluations = problem.minimize(solver).evaluations
                rows[name].setdefault(f"{nodes}/{features}", []).append(evaluations)
        print("seeds", nodes, features, {name: row[f"{nodes}/{features}"] for name, row in rows.items()}, flush=True)
    return rows


class _Near:
    def __init__(self, value: float) -> None:
        self.value = value

    def satisfied(self, trace: Any, w: Any) -> bool:
        return bool(trace[-1].value <= self.value * (1 + 1e-7))


def mean(values: Any) -> float:
    """Geometric."""
    return math.exp(float(np.mean(np.log(list(values)))))


def results_table(title: str, rows: dict[str, Any], paper: list[float] | None = None) -> str:
    names = list(METHODS)
    lines = [f"### {title}\n", "| nodes/features | " + " | ".join(f"{n}: evaluations, CPU s, error" for n in names)]
    lines[-1] += " | edges kept (true ones), true, candidates |" + (" paper, s |" if paper else "")
    lines.append("|" + "---|" * (len(names) + 2 + bool(paper)))
    for k, (setting, row) in enumerate(rows.items()):
        stars = {n: "" if row[n]["status"] == "CONVERGED" else "*" for n in names}
        cells = [f"{row[n]['evaluations']}{stars[n]}, {row[n]['cpu']:.3f}, {row[n]['error']:.3f}" for n in names]
        last = row["AGPM"]
        cells.append(f"{last['edges']} ({last['hits']}), {last['true']}, {last['candidates']}")
        lines.append(f"| {setting} | " + " | ".join(cells) + " |" + (f" {paper[k]:.2f} |" if paper else ""))
    cells = [f"{mean(r[n]['evaluations'] for r in rows.values()):.0f}, " for n in names]
    cells = [c + f"{mean(r[n]['cpu'] for r in rows.values()):.3f}, " for c, n in zip(cells, names, strict=True)]
    cells = [c + f"{np.mean([r[n]['error'] for r in rows.values()]):.4f}" for c, n in zip(cells, names, strict=True)]
    lines.append(
        "| **mean** (geometric; of errors arithmetic) | " + " | ".join(cells) + " | |" + (" |" if paper else "")
    )
    seconds, cpu = ([sum(r[n][what] for r in rows.values()) for n in names] for what in ("seconds", "cpu"))
    sums = [f"{own:.2f} s ({wall:.2f} s by the clock)" for wall, own in zip(seconds, cpu, strict=True)]
    lines.append("| **sum** | " + " | ".join(sums) + " | |" + (f" {sum(paper):.1f} |" if paper else ""))
    gap = max(max(row[n]["error"] for n in names) - min(row[n]["error"] for n in names) for row in rows.values())
    lines.append(f"\nLargest difference of test errors within a setting: {gap:.4f}.\n")
    if any(row[n]["status"] != "CONVERGED" for row in rows.values() for n in names):
        lines.append("*: stopped after 10,000 iterations.\n")
    return "\n".join(lines)


def write(results: dict[str, Any], output: Path) -> None:
    (output / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    parts = []
    for key, rows in results.items():
        if key == "rules":
            lines = ["### Step rules and line searches, 10 nodes, 10 features, 100 samples, pseudo-likelihood\n"]
            lines += ["| | evaluations | CPU seconds | objective |", "|---|---|---|---|"]
            for name, row in sorted(rows.items(), key=lambda item: item[1]["evaluations"]):
                lines.append(f"| {name} | {row['evaluations']} | {row['cpu']:.2f} | {row['objective']:.6f} |")
            parts.append("\n".join(lines) + "\n")
        elif key == "seeds":
            settings = list(next(iter(rows.values())))
            lines = [f"### Evaluations, geometric means of {len(SEEDS)} draws, 100 samples, pseudo-likelihood\n"]
            lines += ["| | " + " | ".join(settings) + " | all |", "|" + "---|" * (len(settings) + 2)]
            for name, row in rows.items():
                means = [mean(row[setting]) for setting in settings]
                lines.append(f"| {name} | " + " | ".join(f"{m:.0f}" for m in [*means, mean(means)]) + " |")
            parts.append("\n".join(lines) + "\n")
        else:
            parts.append(results_table(key, rows, PAPER if key.startswith("Table 1") and len(rows) == 12 else None))
    (output / "results.md").write_text("\n".join(parts))


def draw(results: dict[str, Any], output: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    bars = [key for key in results if key.startswith("Figure")]
    if bars:
        figure, axes = plt.subplots(len(bars), 2, figsize=(11, 3.2 * len(bars)), squeeze=False)
        for (left, right), key in zip(axes, bars, strict=True):
            settings = list(results[key])
            for k, name in enumerate(METHODS):
                place = np.arange(len(settings)) + 0.27 * (k - 1)
                left.bar(place, [results[key][s][name]["cpu"] for s in settings], 0.25, label=name)
                right.bar(place, [results[key][s][name]["error"] for s in settings], 0.25, label=name)
            for axis, what in ((left, "CPU seconds"), (right, "test error")):
                axis.set_xticks(range(len(settings)), settings, rotation=45 if len(settings) > 6 else 0)
                axis.set_ylabel(what)
                axis.set_title(key, fontsize=9)
            left.legend(fontsize=8)
        figure.tight_layout()
        figure.savefig(output / "times.png", dpi=110)
        plt.close(figure)


def convergence(output: Path) -> None:
    """Objective against evaluations, 10 nodes, 10 features, 500 and 1,000 samples."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 3.6))
    for n_train, axis in zip((500, 1000), axes, strict=True):
        problem = Problem("pl", 10, 10, n_train)
        runs = {name: problem.minimize(paper_rule(make)) for name, make in METHODS.items()}
        least = problem.minimize(AGPM(eps=1e-6, stopping=GradientNorm(0.0)))
        best = min(least.value, *(run.value for run in runs.values()))
        for name, run in runs.items():
            gap = [max(step.value / best - 1, 1e-12) for step in run.trace]
            axis.semilogy([step.evaluations for step in run.trace], gap, label=name, lw=1)
        axis.set_xlabel("evaluations")
        axis.set_ylabel("objective / least − 1")
        axis.set_title(f"10 nodes, 10 features, {n_train} samples, pseudo-likelihood", fontsize=9)
        axis.set_ylim(1e-9, None)
        axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(output / "convergence.png", dpi=100)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--losses", default="pl,likelihood")
    parser.add_argument("--parts", default="table,figures,rules,seeds")
    parser.add_argument("--nodes", default="5,10,15")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--output", type=Path, default=HERE)
    options = parser.parse_args()
    file = options.output / "results.json"
    results: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    plans: list[tuple[str, str, list[tuple[int, int]], int]] = []
    names = {"pl": "pseudo-likelihood", "likelihood": "likelihood"}
    chosen = [setting for setting in SETTINGS if str(setting[0]) in options.nodes.split(",")]
    if "table" in options.parts:
        kinds = options.losses.split(",")
        exact = [setting for setting in chosen if setting[0] <= EXACT_NODES]
        which = {"pl": chosen, "likelihood": exact}
        plans += [(f"Table 1, {names[kind]}, 100 samples", kind, which[kind], 100) for kind in kinds]
    if "figures" in options.parts:
        plans.append(("Figure 1, pseudo-likelihood, 500 samples", "pl", chosen, 500))
        plans.append(("Figure 2, pseudo-likelihood, 1000 samples", "pl", [(10, d) for d in (10, 15, 20)], 1000))
    for key, kind, settings, n_train in plans:
        rows = results.setdefault(key, {})
        for nodes, features in settings:
            rows[f"{nodes}/{features}"] = row = compare(kind, nodes, features, n_train, options.repeats)
            told = ", ".join(f"{n} {r['evaluations']} {r['cpu']:.2f} s {r['error']:.3f}" for n, r in row.items())
            print(key, f"{nodes}/{features}", told, flush=True)
            write(results, options.output)
    if "rules" in options.parts:
        results["rules"] = rules(options.repeats)
        write(results, options.output)
    if "seeds" in options.parts:
        results["seeds"] = seeds(chosen)
        write(results, options.output)
    draw(results, options.output)
    if "figures" in options.parts:
        convergence(options.output)


if __name__ == "__main__":
    main()
