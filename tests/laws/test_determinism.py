"""The same data, options, seed and number of threads give the same bits; other numbers of threads, 12 digits."""

from __future__ import annotations

import pickle
from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from oracle import make_problem

from crfkit import losses
from crfkit._threads import using_threads
from crfkit.errors import CapabilityError
from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import GraphField
from crfkit.graph.graph import Graph
from crfkit.graph.inference.belief_propagation import BeliefPropagation
from crfkit.graph.inference.decoding import decode
from crfkit.graph.inference.engines import ENGINES, make_engine
from crfkit.graph.inference.junction import Junction
from crfkit.losses import LOSSES
from crfkit.penalties import L1, L2, NoPenalty
from crfkit.protocols import Capability
from crfkit.solvers import SOLVERS, make_solver
from crfkit.structure.observations import Observations

ITERATIONS = 3
SHORT = {"gibbs": {"n_sweeps": 50, "burn_in": 10, "ais_steps": 20}}


@cache
def chain():
    """Enough sequences for two threads to share them."""
    return make_problem(3, 5, tuple(np.arange(120) % 13 + 1), 30, per_position=4)


@cache
def weak():
    data = chain().data
    targets = np.random.default_rng(0).random((data.n_positions, 5)) < 0.4
    targets[np.arange(data.n_positions), data.labels] = True
    return replace(data, labels=None, targets=targets, token_weights=np.linspace(0.5, 2.0, data.n_positions))


@cache
def grids():
    """Grids of 4 × 6 nodes with three labels, and the field that all of them share."""
    rng = np.random.default_rng(0)
    graph = Graph.join([Graph.grid((4, 6))] * 10)
    features = rng.normal(size=(graph.n_nodes, 3))
    labels = np.argmax(features + rng.normal(size=features.shape), axis=1).astype(np.int32)
    data = GraphData.make(graph, features, labels=labels)
    return data, GraphField(np.array([3], np.int32), data.node_features.shape[1], data.edge_features.shape[1])


@cache
def table():
    return Observations.of(np.random.default_rng(0).integers(0, 2, size=(300, 6)), [2] * 6)


def chain_loss(kind):
    return lambda threads: kind(chain().data, chain().field, n_threads=threads)


MAKE = {
    "chain-likelihood": chain_loss(losses.ChainLikelihood),
    "chain-softmax-margin": chain_loss(losses.SoftmaxMargin),
    "chain-hinge": chain_loss(losses.StructuredHinge),
    "chain-marginal-likelihood": lambda threads: losses.MarginalLikelihood(weak(), chain().field, threads),
    "chain-candidates": chain_loss(losses.CandidateChain),
    "chain-margin-candidates": chain_loss(losses.CandidateMargin),
    "graph-likelihood": lambda threads: losses.GraphLikelihood(*grids(), Junction(n_threads=threads)),
    "graph-softmax-margin": lambda threads: losses.GraphSoftmaxMargin(*grids(), BeliefPropagation(n_threads=threads)),
    "graph-hinge": lambda threads: losses.GraphHinge(*grids(), n_threads=threads),
    "pseudo-likelihood": lambda threads: losses.PseudoLikelihood(*grids(), n_threads=threads),
    "composite-likelihood": lambda threads: losses.CompositeLikelihood(*grids(), n_threads=threads),
    "contrastive-divergence": lambda threads: losses.ContrastiveDivergence(*grids(), n_threads=threads),
    "structure-likelihood": lambda threads: losses.StructureLikelihood(table(), engine=Junction(n_threads=threads)),
    "structure-pseudo-likelihood": lambda threads: losses.StructurePseudoLikelihood(table()),
}
for new in LOSSES.keys() - MAKE.keys():  # a new loss is tried on its example
    MAKE[new] = lambda threads, name=new: LOSSES[name].example()


@pytest.mark.parametrize("name", MAKE)
def test_value_and_gradient_do_not_depend_on_the_number_of_threads(name):
    answers = {}
    for threads in (1, 2):
        with using_threads(threads):
            loss = MAKE[name](threads)
            at = loss.at(np.random.default_rng(1).normal(scale=0.3, size=loss.size))
            answers[threads] = (at.value if Capability.SMOOTH in loss.capabilities else 0.0, at.grad)
    (value, gradient), (other, others) = answers[1], answers[2]
    assert abs(other - value) <= 1e-12 * abs(value)
    assert np.abs(others - gradient).max(initial=0.0) <= 1e-12 * max(1.0, np.abs(gradient).max(initial=0.0))


def trained(name, solver):
    """Return the result on two threads; None if the solver cannot minimise this loss."""
    with using_threads(2):
        loss = MAKE[name](2)
        for penalty in (L2(0.5), L1(0.5), NoPenalty()):
            with suppress(CapabilityError):
                return make_solver(solver, max_iterations=ITERATIONS).minimize(loss, penalty, np.zeros(loss.size))
    return None


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_same_threads_give_the_same_bits(solver):
    """Every solver on every loss that it takes, the state included from which it would go on."""
    met = 0
    for name in MAKE:
        first, again = (trained(name, solver) for _ in range(2))
        if first is None:
            continue
        met += 1
        assert_array_equal(first.w, again.w, err_msg=name)
        assert [row.value for row in first.trace] == pytest.approx(
            [row.value for row in again.trace], rel=0, nan_ok=True
        )
        assert pickle.dumps(dict(first.state)) == pickle.dumps(dict(again.state)), name
    assert met > 0


@pytest.mark.parametrize("engine", [name for name in ENGINES if name not in ("enumerate", "tree", "halves")])
def test_engines_give_the_same_bits(engine):
    data, field = grids()
    potentials = field.potentials(data, np.random.default_rng(2).normal(size=field.size))
    first, again = (make_engine(engine, n_threads=2, **SHORT.get(engine, {})).run(potentials) for _ in range(2))
    assert_array_equal(first.nodes, again.nodes)


def test_decoders_give_the_same_bits():
    data, field = grids()
    potentials = field.potentials(data, np.random.default_rng(2).normal(size=field.size))
    assert_array_equal(*(decode(potentials, n_threads=2).labels for _ in range(2)))
