"""What the kernels of this process compute for a chain, a grid and a table: python kernel_answers.py FILE.npz

CRFKIT_KERNELS chooses the kernels; nothing here names any.
"""

from __future__ import annotations

import sys

import numpy as np
from oracle import make_problem

from crfkit.chain.inference import ChainInference
from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import untied_field
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.engines import make_engine
from crfkit.graph.losses.pseudo import PseudoLikelihood
from crfkit.losses import ChainLikelihood


def chain(n_labels: int, order: int) -> dict[str, np.ndarray]:
    lengths = (*range(1, 25), 60)
    problem = make_problem(n_labels, n_labels, lengths, 40, n_pair_attributes=2, order=order, per_position=6, scale=0.3)
    data, field, w = problem.data, problem.field, problem.w
    at = ChainLikelihood(data, field).at(w)
    inference = ChainInference(field, w)
    labels, scores = inference.decode(data)
    return {
        "value": at.value,
        "gradient": at.grad,
        "product": at.hessp(np.ones(field.size)),
        "marginals": inference.node_marginals(data),
        "labels": labels,
        "scores": scores,
    }


def grid(n_states: int, engine: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(n_states)
    graph = Graph.grid((7, 9))
    pairs = 0.3 * rng.standard_normal((graph.n_edges, n_states, n_states))
    potentials = Potentials.from_tables(graph, rng.standard_normal((graph.n_nodes, n_states)), pairs)
    found = make_engine(engine, tolerance=1e-13, max_iterations=2000).run(potentials)
    return {"log_z": found.log_z, "nodes": found.nodes, "edges": found.edges}


def table(n_states: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(n_states)
    graph = Graph(5, [(i, j) for i in range(5) for j in range(i)])
    data = GraphData.table(300, graph, None, rng.integers(n_states, size=(300, 5)))
    loss = PseudoLikelihood(data, untied_field(data, n_states))
    at = loss.at(0.3 * rng.standard_normal(loss.size))
    return {"value": at.value, "gradient": at.grad}


def answers() -> dict[str, np.ndarray]:
    found = {}
    for n_labels, order in ((2, 1), (9, 1), (17, 1), (3, 2)):
        found |= {f"chain {n_labels} {order} {key}": value for key, value in chain(n_labels, order).items()}
    for n_states in (2, 3, 5):
        for engine in ("bp", "trw", "mean-field"):
            found |= {f"{engine} {n_states} {key}": value for key, value in grid(n_states, engine).items()}
        found |= {f"pseudo {n_states} {key}": value for key, value in table(n_states).items()}
    return found


if __name__ == "__main__":
    np.savez(sys.argv[1], **answers())
