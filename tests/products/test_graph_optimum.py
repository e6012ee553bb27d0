"""Graph losses × solvers × penalties with and without corners: one optimum, or an error that says why there is none."""

from functools import cache

import numpy as np
import pytest
from compatibility import compatible
from optima import reach

from crfkit.errors import CapabilityError
from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import tied_field
from crfkit.graph.graph import Graph
from crfkit.graph.inference.engines import make_engine
from crfkit.losses import CompositeLikelihood, GraphLikelihood, PseudoLikelihood
from crfkit.penalties import L1, L2, ElasticNet
from crfkit.solvers import SOLVERS, GradientNorm, make_solver

PENALTIES = [L2(0.5), L1(0.8), ElasticNet(0.5, 0.5)]
APPROXIMATE = {"smd": 1e-3}  # relative; 1e-6 for the others
BATCHES = {"rda"}  # four graphs are too few for its mini-batches; it has laws of its own


@cache
def problem():
    rng = np.random.default_rng(2)
    graph = Graph.join([Graph.grid((2, 3)), Graph.complete(4), Graph.path(5), Graph.grid((3, 3), 8)])
    H = rng.normal(size=(graph.n_nodes, 3))
    labels = (H[:, 0] + 0.5 * rng.normal(size=graph.n_nodes) > 0).astype(int) + (H[:, 1] > 1)
    data = GraphData.make(graph, H, rng.normal(size=(graph.n_edges, 2)), labels, [1, 2, 1, 0.5])
    return data, tied_field(data, 3, "full", "symmetric")


@cache
def loss_of(name):
    data, field = problem()
    if name == "pseudo-likelihood":
        return PseudoLikelihood(data, field, n_threads=1)
    if name == "composite likelihood":
        return CompositeLikelihood(data, field, n_threads=1)
    return GraphLikelihood(data, field, make_engine(name, n_threads=1))


@cache
def optimum(name, penalty):
    solver = make_solver("owlqn", stopping=GradientNorm(1e-9), max_iterations=5000)
    result = solver.minimize(loss_of(name), penalty, np.zeros(loss_of(name).size))
    assert result.optimality < 1e-5
    return result.value


# Every solver meets every loss and every penalty; of the two penalties with corners, each loss has one.
LOSSES = ("pseudo-likelihood", "composite likelihood", "junction", "trw")
CASES = [(name, penalty) for k, name in enumerate(LOSSES) for penalty in (PENALTIES[0], PENALTIES[1 + k % 2])]


@pytest.mark.parametrize(("name", "penalty"), CASES, ids=lambda p: getattr(p, "name", p))
@pytest.mark.parametrize("solver", sorted(set(SOLVERS) - BATCHES))
def test_one_optimum(solver, name, penalty):
    loss = loss_of(name)
    slow = solver in APPROXIMATE
    eps = 1e-3 if slow else 1e-6
    chosen = make_solver(solver, stopping=GradientNorm(eps), max_iterations=2000 if slow else 20000)
    start = np.zeros(loss.size)
    if not compatible(chosen, loss, penalty):
        with pytest.raises(CapabilityError, match=solver):
            chosen.minimize(loss, penalty, start)
        return
    reach(chosen, loss, penalty, start, optimum(name, penalty), APPROXIMATE.get(solver, 1e-6))
