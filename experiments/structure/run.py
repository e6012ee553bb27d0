"""Which variables depend on each other: StructureLearner beside mutual information and logistic regressions.

    python experiments/structure/run.py [--parts conditional,planted,tables] [--seeds 0-4] [--data DIR] [--output DIR]

conditional: random pairwise CRFs of 15 nodes with 5 features each (every pair an edge with probability .5), 1,000
samples. Average precision of the ranking of all pairs, and F1 of the edges that each method's own rule selects.
planted: Markov random fields of 20 binary variables, 24 edges with couplings of ±.5 to .9, 3,000 exact samples; F1 of
"ebic", "cv" and "stability".
tables: plants and nltcs (DIR/plants/plants.train.data.gz …): seconds, edges, test log-likelihood.

On one thread. Writes results.json, which is merged with what is there, results.md and two figures.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import time
import warnings
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import figures
import numpy as np
from rivals import logistic_regressions, mutual_information
from sklearn.metrics import average_precision_score

from crfkit import StructureLearner
from crfkit.data.graph import Graph
from crfkit.data.graphs import GraphData
from crfkit.encoders.structure_tables import learn_table
from crfkit.fields.graph import GraphField
from crfkit.inference.junction import Junction
from crfkit.synthetic import PairwiseTable, random_pairwise

HERE = Path(__file__).resolve().parent
NODES, FEATURES, SAMPLES = 15, 5, 1000
SHARES = (0.2, 0.13, 0.09, 0.06, 0.04, 0.027)  # of the critical strength: where edges are ranked
Pairs = set[tuple[int, int]]


def f1(found: Pairs, true: Pairs) -> float:
    return 2 * len(found & true) / max(1, len(found) + len(true))


def edges_of(learner: StructureLearner) -> Pairs:
    return {(i, j) for i, j, _ in learner.edges_}


def ranking(table: PairwiseTable, norm: str, form: str) -> dict[tuple[int, int], float]:
    """Length of the weights of every edge, at the strength that predicts a held-out fifth of the rows best."""
    learner = StructureLearner(form=form, group_norm=norm, n_threads=1)
    encoder, states = learn_table(table.Y, table.X, True)
    training = learner._training()
    rows = training.tables(encoder, table.X, states)
    loss, search, n = training.make_loss(rows(None), None), training.search, len(states)
    strengths = search.critical_strength(search.empty(loss)) * np.array(SHARES)
    cut = 4 * n // 5
    test = loss.on(rows(np.arange(cut, n)))
    scores = []
    for step in search.path(loss.on(rows(np.arange(cut))), strengths * cut / n):
        scores.append(test.with_active(step.solution.loss.active_ids).at(step.solution.w).value)
        if scores[-1] > min(scores):
            break
    best = int(np.argmin(scores))
    *_, last = search.path(loss, strengths[: best + 1])
    found, w, p = last.solution.loss, last.solution.w, NODES
    return {divmod(e, p): float(np.linalg.norm(w[found.block_index == e])) for e in found.active_ids.tolist()}


def conditional(seed: int, save: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    table = random_pairwise(NODES, FEATURES, SAMPLES, seed=seed)
    true = {(i, j) for i, j in table.edges.tolist()}
    pairs = list(combinations(range(NODES), 2))
    rows: dict[str, Any] = {}

    def ranked(name: str, make: Callable[[], dict[tuple[int, int], float]]) -> None:
        begin = time.perf_counter()
        sizes = make()
        precision = average_precision_score([pair in true for pair in pairs], [sizes.get(pair, 0.0) for pair in pairs])
        rows.setdefault(name, {}).update(ap=float(precision), ap_seconds=time.perf_counter() - begin)
        save(rows)
        print(seed, name, f"AP {precision:.3f}", f"{rows[name]['ap_seconds']:.1f} s", flush=True)

    def selected(name: str, found: Pairs, seconds: float) -> None:
        score = f1(found, true)
        rows.setdefault(name, {}).update(
            f1=score, edges=len(found), hits=len(found & true), true=len(true), seconds=seconds
        )
        save(rows)
        print(seed, name, f"F1 {score:.3f}, {len(found & true)} of {len(found)} right", f"{seconds:.1f} s", flush=True)

    scores, chosen = mutual_information(table.Y)
    ranked("mutual information", lambda: scores)
    selected("mutual information", chosen, 0.0)
    for form, what in (("ising", "±"), ("full", "indicators")):
        begin = time.perf_counter()
        scores, either, both = logistic_regressions(table, indicators=form == "full")
        seconds = time.perf_counter() - begin
        ranked(f"L1 logistic regressions, {what}", lambda scores=scores: scores)  # type: ignore[misc]
        selected(f"L1 logistic regressions, {what}", both, seconds)
        selected(f"L1 logistic regressions, {what}, OR", either, seconds)
        for norm in ("inf", "2"):
            ranked(f"group L{norm}, {form}", lambda norm=norm, form=form: ranking(table, norm, form))  # type: ignore[misc]
    for norm, rule in (("inf", "ebic"), ("2", "ebic"), ("2", "cv")):
        learner = StructureLearner(group_norm=norm, edge_strength=rule, n_strengths=12, n_folds=3, n_threads=1)
        begin = time.perf_counter()
        learner.fit(table.Y, table.X)
        selected(f"group L{norm}, {rule}", edges_of(learner), time.perf_counter() - begin)
    return rows


def planted(seed: int, save: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    rng = np.random.default_rng(1000 + seed)
    p, rows = 20, 3000
    all_pairs = np.array(list(combinations(range(p), 2)), dtype=np.int32)
    edges = all_pairs[np.sort(rng.choice(len(all_pairs), 24, replace=False))]
    couplings = rng.uniform(0.5, 0.9, 24) * rng.choice([-1.0, 1.0], 24)
    field = GraphField(np.full(p, 2), 1, 1, 24, "ising", "ising", edges)
    data = GraphData.table(1, Graph(p, edges))
    w = np.concatenate([rng.uniform(-0.3, 0.3, p), couplings])
    Y = Junction().sample(field.potentials(data, w), rows, seed=seed).reshape(rows, p)
    true = {(i, j) for i, j in edges.tolist()}
    out = {}
    for rule in ("ebic", "cv", "stability"):
        begin = time.perf_counter()
        found = edges_of(StructureLearner(edge_strength=rule, n_threads=1).fit(Y))
        out[rule] = {"f1": f1(found, true), "edges": len(found), "seconds": time.perf_counter() - begin}
        if len(out) == 3:
            save(out)
        print("planted", seed, rule, f"F1 {out[rule]['f1']:.3f}", f"{out[rule]['seconds']:.1f} s", flush=True)
    return out


def tables(folder: Path, names: list[str]) -> dict[str, Any]:
    out = {}
    for name in names:
        parts = {
            part: np.loadtxt(folder / name / f"{name}.{part}.data.gz", delimiter=",", dtype=np.int32)
            for part in ("train", "test")
        }
        train, test = parts["train"], parts["test"]
        begin = time.perf_counter()
        learner = StructureLearner(n_threads=1).fit(train)
        seconds = time.perf_counter() - begin
        lower, upper = learner.log_likelihood_bounds(test)
        q = (train.sum(axis=0) + 1) / (len(train) + 2)
        alone = float((test * np.log(q) + (1 - test) * np.log(1 - q)).sum(axis=1).mean())
        out[name] = {
            "rows": len(train),
            "variables": train.shape[1],
            "edges": len(learner.edges_),
            "strength": learner.strength_,
            "seconds": seconds,
            "lower": float(lower.mean()),
            "upper": float(upper.mean()),
            "inference": str(learner.inference_status_.name if learner.inference_status_ else ""),
            "independent": alone,
        }
        print(name, out[name], flush=True)
    return out


def report(results: dict[str, Any]) -> str:
    lines = []
    if trials := results.get("conditional"):
        seeds = sorted(trials, key=int)
        names = sorted({name for seed in seeds for name in trials[seed]})
        lines += [f"### 15 nodes, 1,000 samples: means of {len(seeds)} fields (least, largest)\n"]
        lines += ["| | average precision | F1 | edges right, selected, true | seconds |", "|---|---|---|---|---|"]
        for name in names:
            those = [trials[seed].get(name, {}) for seed in seeds]
            chosen = [r for r in those if "f1" in r]
            told = ", ".join(f"{np.mean([r[k] for r in chosen]):.1f}" for k in COUNTS) if chosen else ""
            seconds = np.mean([r.get("seconds", 0.0) or r.get("ap_seconds", 0.0) for r in those if r])
            lines.append(f"| {name} | {spread(those, 'ap')} | {spread(those, 'f1')} | {told} | {seconds:.1f} |")
    if trials := results.get("planted"):
        lines += [f"\n### 20 binary variables, 24 edges, 3,000 samples: means of {len(trials)} fields\n"]
        lines += ["| rule | F1 (least, largest) | edges | seconds |", "|---|---|---|---|"]
        for rule in ("ebic", "cv", "stability"):
            those = [row[rule] for row in trials.values()]
            edges, seconds = (np.mean([r[k] for r in those]) for k in ("edges", "seconds"))
            lines.append(f"| {rule} | {spread(those, 'f1')} | {edges:.1f} | {seconds:.1f} |")
    if found := results.get("tables"):
        lines += ["\n### Tables, edges by the extended BIC of the training rows\n"]
        lines += ["| | rows, variables | edges | seconds | test log-likelihood | independent variables |"]
        lines += ["|---|---|---|---|---|---|"]
        for name, r in found.items():
            bounds = f"{r['lower']:.3f}" if r["upper"] - r["lower"] < 1e-6 else f"{r['lower']:.2f} … {r['upper']:.2f}"
            lines.append(
                f"| {name} | {r['rows']}, {r['variables']} | {r['edges']} | {r['seconds']:.1f} | {bounds} "
                f"({r['inference']}) | {r['independent']:.3f} |"
            )
    return "\n".join(lines) + "\n"


COUNTS = ("hits", "edges", "true")


def spread(rows: list[dict[str, Any]], key: str) -> str:
    values = [row[key] for row in rows if key in row]
    return f"{np.mean(values):.3f} ({min(values):.3f}, {max(values):.3f})" if values else ""


def numbers(text: str) -> list[int]:
    first, _, last = text.partition("-")
    return list(range(int(first), int(last) + 1)) if last else [int(n) for n in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="conditional,planted,tables")
    parser.add_argument("--seeds", default="0-4")
    parser.add_argument("--data", type=Path, help="the folder of plants and nltcs")
    parser.add_argument("--tables", default="nltcs,plants")
    parser.add_argument("--output", type=Path, default=HERE)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    file = options.output / "results.json"
    parts = options.parts.split(",")

    def save(part: str, key: str, value: Any) -> None:
        results: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        results.setdefault(part, {})[key] = value
        file.write_text(json.dumps(results, indent=1) + "\n")
        (options.output / "results.md").write_text(report(results))
        figures.draw(results, options.output)

    for name, run in (("planted", planted), ("conditional", conditional)):
        if name in parts:
            for seed in numbers(options.seeds):
                key = str(seed)
                save(name, key, run(seed, lambda rows, name=name, key=key: save(name, key, rows)))  # type: ignore[misc]
    if "tables" in parts and options.data is not None:
        for name in options.tables.split(","):
            save("tables", name, tables(options.data, [name])[name])
    if file.exists():
        results = json.loads(file.read_text())
        (options.output / "results.md").write_text(report(results))
        figures.draw(results, options.output)
        print(report(results))


if __name__ == "__main__":
    main()
