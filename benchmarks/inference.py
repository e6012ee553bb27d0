"""Inference and training on graphs: messages per second, memory, pseudo-likelihood, multi-label data.

    python benchmarks/inference.py [--parts messages,trees,large,exact,pseudo,scene] [--data DIR]
        [--output results/inference] [--rounds 5]

Rates are medians over rounds in which the cases take turns. `large` runs in a process of its own and gives its peak
memory. PGMax is measured beside ours where it is installed. Writes JSON and a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import Store, machine

from crfkit import _core
from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import tied_field, untied_field
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.belief_propagation import native_arrays
from crfkit.graph.inference.engines import make_engine
from crfkit.graph.inference.tree_reweighted import _appearances, edge_appearances
from crfkit.losses import GraphLikelihood, PseudoLikelihood
from crfkit.penalties import L2
from crfkit.solvers import make_solver

HERE = Path(__file__).resolve().parent
ISING = np.array([[[1.0, -1.0], [-1.0, 1.0]]])
THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def seconds(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def medians(cases: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median seconds of each case; they take turns, after one round that is not counted."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(rounds + 1):
        for name, work in cases.items():
            taken = seconds(work)
            if turn:
                times[name].append(taken)
    return {name: statistics.median(values) for name, values in times.items()}


# --- messages


def random_edges(n: int, degree: int, rng: np.random.Generator) -> Graph:
    pairs = np.unique(np.sort(rng.integers(0, n, (n * degree // 2, 2)), axis=1), axis=0)
    return Graph(n, pairs[pairs[:, 0] != pairs[:, 1]])


def field(graph: Graph, K: int, form: str, rng: np.random.Generator) -> Potentials:
    unary = rng.normal(size=(graph.n_nodes, K))
    if form == "ising":
        return Potentials(graph, unary, 0.3 * rng.normal(size=(graph.n_edges, 1)), ISING)
    if form == "potts":
        return Potentials(graph, unary, 0.3 * rng.random((graph.n_edges, 1)), np.eye(K)[None])
    if form == "shared":
        table = 0.2 * rng.normal(size=(K, K))
        return Potentials(graph, unary, np.ones((graph.n_edges, 1)), (table + table.T)[None])
    return Potentials.from_tables(graph, unary, 0.2 * rng.normal(size=(graph.n_edges, K, K)))


def sweeper(engine: str, p: Potentials, sweeps: int, threads: int) -> Callable[[], Any]:
    """So many sweeps, whatever has converged."""
    arrays = native_arrays(p)
    if engine == "bp":
        messages = _core.SumProduct(p.graph.native, p.graph.blocks, *arrays, "auto", threads)
        return lambda: messages.run(sweeps, -1.0, 0.0, False, threads)
    if engine == "trw":
        rho = edge_appearances(p.graph, 16)
        weighted = _core.Reweighted(p.graph.native, p.graph.blocks, *arrays, rho, "auto", threads)
        return lambda: weighted.run(sweeps, -1.0, 0.0, False, threads)
    means = _core.MeanField(p.graph.native, p.graph.blocks, *arrays, "auto", threads)
    return lambda: means.run(sweeps, -1.0, 0.0, threads)


def pgmax(p: Potentials, shape: tuple[int, int], sweeps: int) -> Callable[[], Any] | None:
    try:
        import jax
        from pgmax import fgraph, fgroup, infer, vgroup
    except ImportError:
        return None
    if not hasattr(jax.lib, "xla_bridge"):  # where PGMax 0.6 looks for what newer versions of JAX keep elsewhere
        from jax.extend import backend

        jax.lib.xla_bridge = backend
    variables = vgroup.NDVarArray(num_states=2, shape=shape)
    graph = fgraph.FactorGraph(variable_groups=variables)
    names = [(i // shape[1], i % shape[1]) for i in range(p.graph.n_nodes)]
    pairs = [[variables[names[i]], variables[names[j]]] for i, j in p.graph.edges]
    graph.add_factors(fgroup.PairwiseFactorGroup(variables_for_factors=pairs, log_potential_matrix=p.tables))
    bp = infer.BP(graph.bp_state, temperature=1.0)
    start = bp.init(evidence_updates={variables: p.unary.reshape(*shape, 2)})
    run = jax.jit(lambda arrays: bp.run(arrays, num_iters=sweeps, damping=0.0, temperature=1.0))
    return lambda: jax.block_until_ready(run(start))


def messages(rounds: int, **_: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    grid = Graph.grid((200, 200))
    kinds = {
        "grid 200×200": (grid, 2, "ising", 400),
        "edge list, 20,000 nodes of degree 8": (random_edges(20_000, 8, rng), 2, "ising", 200),
        "edge list, 100,000 nodes of degree 6": (random_edges(100_000, 6, rng), 2, "ising", 60),
        "grid, K = 5, one table": (grid, 5, "shared", 60),
        "grid, K = 5, Potts": (grid, 5, "potts", 60),
        **{f"grid, K = {K}, a table per edge": (grid, K, "tables", 40) for K in (3, 4, 5, 8)},
    }
    cases: dict[str, Callable[[], Any]] = {}
    work: dict[str, float] = {}
    for name, (graph, K, form, sweeps) in kinds.items():
        p = field(graph, K, form, rng)
        for engine in ("bp", "trw", "mean-field"):
            for threads in sorted({1, THREADS}):
                label = f"{engine}, {name}, {threads} thread(s)"
                cases[label] = sweeper(engine, p, sweeps, threads)
                work[label] = 2.0 * graph.n_edges * sweeps
    peer = pgmax(field(grid, 2, "ising", rng), (200, 200), 50)
    if peer is not None:
        cases["PGMax bp, grid 200×200"] = peer
        work["PGMax bp, grid 200×200"] = 2.0 * grid.n_edges * 50
    return {label: work[label] / taken for label, taken in medians(cases, rounds).items()}


# --- how often edges appear in spanning trees, which tree-reweighted messages need once for every graph


def trees(rounds: int, **_: Any) -> dict[str, Any]:
    """Seconds until spanning trees cover all edges."""
    graphs = {f"complete graph of {n}": Graph.complete(n) for n in (200, 300, 400)}
    graphs["grid 300×300"] = Graph.grid((300, 300))
    return medians({name: (lambda g=g: _appearances(g, 16)) for name, g in graphs.items()}, rounds)


# --- a large grid, in a process of its own


def large_child(side: int) -> None:
    begin = time.perf_counter()
    graph = Graph.grid((side, side))
    rng = np.random.default_rng(0)
    unary = np.zeros((graph.n_nodes, 2))
    unary[:, 1] = rng.normal(size=graph.n_nodes)
    p = Potentials(graph, unary, np.full((graph.n_edges, 1), 0.3), ISING)
    found = make_engine("bp", max_iterations=100, tolerance=1e-4).run(p)
    report = {
        "side": side,
        "status": found.status.name,
        "sweeps": found.iterations,
        "log_z": found.log_z[0],
        "mean_marginal": found.nodes[:, 1].mean(),
        "seconds": time.perf_counter() - begin,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    print(json.dumps(report))


def large(**_: Any) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", "4000"]
    result: dict[str, Any] = json.loads(subprocess.check_output(command, text=True))
    return result


# --- exact engines


def exact(rounds: int, **_: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    fields = {
        "junction, 1,211 complete graphs of 6": ("junction", field(Graph.complete(6).repeat(1211), 2, "tables", rng)),
        "enumerate, the same": ("enumerate", field(Graph.complete(6).repeat(1211), 2, "tables", rng)),
        "junction, grid 10×100": ("junction", field(Graph.grid((10, 100)), 2, "tables", rng)),
        "tree, path of 1,000,000": ("tree", field(Graph.path(1_000_000), 2, "tables", rng)),
    }
    return medians({name: (lambda e=e, p=p: make_engine(e).run(p)) for name, (e, p) in fields.items()}, rounds)


# --- likelihoods of images


def images(n_images: int, height: int, width: int, n_features: int) -> GraphData:
    rng = np.random.default_rng(0)
    graph = Graph.join([Graph.grid((height, width))] * n_images)
    H = rng.normal(size=(graph.n_nodes, n_features - 1))
    i, j = graph.edges.T
    return GraphData.make(graph, H, np.abs(H[i] - H[j]), rng.integers(0, 2, graph.n_nodes))


def pseudo(rounds: int, **_: Any) -> dict[str, Any]:
    """Value and gradient of 35 grids of 40×50 nodes with 163 features."""
    data = images(35, 40, 50, 163)
    losses: dict[str, Any] = {}
    for form in ("ising", "full"):
        crf = tied_field(data, 2, form, form)
        losses[f"pseudo-likelihood, {form}"] = PseudoLikelihood(data, crf)
        for engine in ("bp", "trw", "mean-field"):
            losses[f"likelihood by {engine}, {form}"] = GraphLikelihood(data, crf, make_engine(engine, tolerance=1e-6))
    points = {name: 0.01 * np.random.default_rng(1).normal(size=loss.size) for name, loss in losses.items()}
    cases: dict[str, Callable[[], Any]] = {
        name: (lambda name=name, loss=loss: loss.at(points[name]).grad) for name, loss in losses.items()
    }
    loss = losses["pseudo-likelihood, ising"]
    cases["hessp of the pseudo-likelihood, ising"] = lambda: loss.at(points["pseudo-likelihood, ising"]).hessp(
        points["pseudo-likelihood, ising"]
    )
    return medians(cases, rounds)


# --- multi-label data


def scene(data: Path, **_: Any) -> dict[str, Any]:
    """Six labels of images: exact training of a complete graph against independent logistic regressions."""
    from sklearn.linear_model import LogisticRegression

    folder = data / "scene"
    if not folder.is_dir():
        print(f"no {folder}: scene is left out", file=sys.stderr)
        return {}
    X, X_test = (np.loadtxt(folder / f"scene_{part}_X.csv.gz", delimiter=",") for part in ("train", "test"))
    Y, Y_test = (np.loadtxt(folder / f"scene_{part}_Y.csv.gz", delimiter=",").astype(int) for part in ("train", "test"))
    results: dict[str, Any] = {"rows": len(X), "test_rows": len(X_test)}

    def scores(marginal: Any, best: Any) -> dict[str, float]:
        return {
            "hamming_loss": float((marginal != Y_test).mean()),
            "subset_accuracy": float((best == Y_test).all(axis=1).mean()),
        }

    for strength in (0.1, 1.0, 10.0):
        inputs, test_inputs = (np.hstack([np.ones((len(x), 1)), x]) for x in (X, X_test))
        begin = time.perf_counter()
        # The same features, the constant among them, and the same penalty on all weights.
        models = [
            LogisticRegression(C=1 / strength, fit_intercept=False, tol=1e-6, max_iter=2000).fit(inputs, y) for y in Y.T
        ]
        taken = time.perf_counter() - begin
        guess = np.stack([model.predict(test_inputs) for model in models], axis=1)
        results[f"independent, L2({strength:g})"] = {"seconds": taken, **scores(guess, guess)}
        for name, graph in (("complete graph", Graph.complete(6)), ("no edges", Graph(6, []))):
            train = GraphData.table(len(X), graph, X, Y)
            test = GraphData.table(len(X_test), graph, X_test)
            crf = untied_field(train, 2)
            engine = make_engine("auto", train.graph, 2)
            begin = time.perf_counter()
            result = make_solver("lbfgs", max_iterations=2000).minimize(
                GraphLikelihood(train, crf, engine), L2(strength), np.zeros(crf.size)
            )
            taken = time.perf_counter() - begin
            p = crf.potentials(test, result.w)
            nodes = engine.run(p).nodes[:, 1].reshape(-1, 6)
            best = engine.decode(p).reshape(-1, 6)  # type: ignore[attr-defined]
            results[f"{name}, L2({strength:g})"] = {
                "engine": engine.name,
                "seconds": taken,
                "status": result.status.name,
                "objective": result.value,
                "evaluations": result.evaluations,
                **scores((nodes > 0.5).astype(int), best),
            }
    return results


PARTS: dict[str, Callable[..., dict[str, Any]]] = {
    "messages": messages,
    "trees": trees,
    "large": large,
    "exact": exact,
    "pseudo": pseudo,
    "scene": scene,
}


def table(results: dict[str, Any]) -> str:
    lines = ["# Inference on graphs", "", f"{machine()['processor']}, {THREADS} core(s)", ""]
    if results.get("messages"):
        lines += ["| case | million directed updates per second |", "|---|---|"]
        lines += [f"| {name} | {rate / 1e6:.0f} |" for name, rate in results["messages"].items()]
    if results.get("large"):
        r = results["large"]
        lines += ["", f"A grid of {r['side']}×{r['side']} nodes, two states: {r['peak_bytes'] / 1e9:.2f} GB at most, "]
        lines[-1] += f"{r['sweeps']} sweeps to 10⁻⁴ ({r['status'].lower()}), {r['seconds']:.1f} s with building it."
    for part, title in (
        ("trees", "edge weights of tree-reweighted messages"),
        ("exact", "exact inference"),
        ("pseudo", "value and gradient, 35 grids of 40×50, 163 features"),
    ):
        if results.get(part):
            lines += ["", f"| {title} | ms |", "|---|---|"]
            lines += [f"| {name} | {1e3 * taken:.1f} |" for name, taken in results[part].items()]
    if results.get("scene"):
        lines += ["", "| scene | Hamming loss | subset accuracy | seconds |", "|---|---|---|---|"]
        for name, r in results["scene"].items():
            if isinstance(r, dict):
                lines.append(f"| {name} | {r['hamming_loss']:.4f} | {r['subset_accuracy']:.4f} | {r['seconds']:.2f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "inference")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--resume", action="store_true", help="keep parts of this machine and these sources")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        large_child(options.child)
        return
    file = options.output.with_suffix(".json")
    store = Store(file, options.resume)
    for part in options.parts.split(","):
        if part not in PARTS:
            parser.error(f"unknown part {part!r}; one of {', '.join(PARTS)}")
        store.part(part, lambda part=part: PARTS[part](rounds=options.rounds, data=options.data))
    results = store.results
    options.output.with_suffix(".md").write_text(table(results))
    print(table(results))


if __name__ == "__main__":
    main()
