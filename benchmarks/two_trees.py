"""Compare the solvers of two source trees: objective, iterations, evaluations and CPU seconds.

    python benchmarks/two_trees.py --against OTHER/src [--rounds 3] [--solvers lbfgs,tron] [--sequences 3000]

Use it after a refactoring that should change nothing. Each run is a process of its own with one thread; the runs of the
two trees alternate, so that other work on the machine slows both alike. Seconds are processor time; the ratio is the
median over the rounds. `same` says whether the weights agree to the last bit. Data are generated: no download.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CHAIN, GRAPH, TABLE = "chain", "pseudo-likelihood", "structure"
RUNS = {
    "lbfgs": (CHAIN, "L2(1.0)", {}),
    "tron": (CHAIN, "L2(1.0)", {}),
    "owlqn": (CHAIN, "L1(1.0)", {}),
    "fista": (CHAIN, "L1(1.0)", {"max_iterations": 150}),
    "ogm": (CHAIN, "L1(1.0)", {"max_iterations": 60}),
    "admm": (CHAIN, "L1(1.0)", {"max_iterations": 30}),
    "pqn": (CHAIN, "L1(1.0)", {"max_iterations": 30}),
    "grafting-light": (TABLE, "ByBlock(GroupL2, 20.0)", {}),
    "grafting": (TABLE, "ByBlock(GroupL2, 20.0)", {}),
    "gauss-seidel": (TABLE, "ByBlock(GroupL2, 20.0)", {"max_iterations": 60}),
    "ista": (GRAPH, "L1(1.5)", {"max_iterations": 3000}),
    "fista (pseudo-likelihood)": (GRAPH, "L1(1.5)", {"max_iterations": 3000}),
    "ogm (pseudo-likelihood)": (GRAPH, "L1(1.5)", {"max_iterations": 3000}),
}


def chain_loss(sequences: int) -> Any:
    from crfkit.encoders.sequences import learn
    from crfkit.synthetic import entity_corpus
    from crfkit.training.chain import ChainTraining

    sentences = entity_corpus(sequences, seed=3)
    near = [[["", *(word for word, _, _ in s), ""][k : k + 3] for k in range(len(s))] for s in sentences]
    X = [[[f"{k}={word}" for k, word in enumerate(words)] for words in sentence] for sentence in near]
    corpus = learn(X, [[label for _, _, label in s] for s in sentences], None, 1)
    training = ChainTraining(n_threads=1)
    field, _ = training.make_field(corpus.data, corpus.vocabulary, corpus.classes.tolist())
    return training.make_loss(corpus.data, field)


def graph_loss() -> Any:
    import numpy as np

    from crfkit.data.graph import Graph
    from crfkit.data.graphs import GraphData
    from crfkit.fields.graph import tied_field
    from crfkit.losses.pseudo import PseudoLikelihood

    rng = np.random.default_rng(5)
    graph = Graph.grid((60, 60))
    X = rng.normal(size=(graph.n_nodes, 12)) * np.geomspace(1, 6, 12)
    labels = (X[:, 0] + 0.3 * X[:, 1] + rng.normal(size=graph.n_nodes) > 0).astype(int)
    edges = (X[graph.edges[:, 0]] * X[graph.edges[:, 1]])[:, :4]
    data = GraphData.make(graph, X, edges, labels)
    return PseudoLikelihood(data, tied_field(data, 2, "ising", "ising"), 1)


def structure_loss() -> Any:
    import numpy as np

    from crfkit.data.observations import Observations
    from crfkit.losses.structure_pseudo import StructurePseudoLikelihood

    rng = np.random.default_rng(7)
    m, p = 400, 24
    states = rng.integers(0, 3, size=(m, p))
    for k in range(1, p, 2):
        copies = rng.random(m) < 0.6
        states[copies, k] = states[copies, k - 1]
    return StructurePseudoLikelihood(Observations.of(states, [3] * p))


def run(name: str, sequences: int) -> dict[str, Any]:
    """Minimise once with the crfkit that this process imports."""
    import numpy as np

    from crfkit.penalties import L1, L2, ByBlock, GroupL2
    from crfkit.solvers import make_solver

    problem, penalty, options = RUNS[name]
    loss = {CHAIN: lambda: chain_loss(sequences), GRAPH: graph_loss, TABLE: structure_loss}[problem]()
    chosen = eval(penalty, {"L1": L1, "L2": L2, "ByBlock": ByBlock, "GroupL2": GroupL2})
    solver = make_solver(name.split(" ")[0], **options)
    begin = time.process_time()
    result = solver.minimize(loss, chosen, np.zeros(loss.size))
    seconds = time.process_time() - begin
    return {
        "objective": result.value,
        "iterations": result.iterations,
        "evaluations": result.evaluations,
        "seconds": seconds,
        "status": result.status.name,
        "digest": hashlib.sha256(np.asarray(result.w).tobytes()).hexdigest(),
    }


def child(tree: str, name: str, sequences: int) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": tree, "OMP_NUM_THREADS": "1", "CRFKIT_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--run", name, "--sequences", str(sequences)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", help="the src folder of the other tree")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--solvers", default=",".join(RUNS))
    parser.add_argument("--sequences", type=int, default=3000)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        print(json.dumps(run(given.run, given.sequences)))
        return
    here = str(Path(__file__).resolve().parent.parent / "src")
    print(f"{'solver':27}{'objective':>26}{'iterations':>14}{'evaluations':>14}{'seconds':>16}{'ratio':>7}  same")
    for name in given.solvers.split(","):
        rounds = [[child(tree, name, given.sequences) for tree in (given.against, here)] for _ in range(given.rounds)]
        before, after = rounds[-1]
        ratio = statistics.median(new["seconds"] / old["seconds"] for old, new in rounds)
        old, new = (min(pair[k]["seconds"] for pair in rounds) for k in (0, 1))
        print(
            f"{name:27}{before['objective']:13.6g}{after['objective']:13.6g}"
            f"{before['iterations']:7}{after['iterations']:7}{before['evaluations']:7}{after['evaluations']:7}"
            f"{old:8.2f}{new:8.2f}{ratio:7.2f}  {before['digest'] == after['digest']} {after['status']}",
            flush=True,
        )


if __name__ == "__main__":
    main()
