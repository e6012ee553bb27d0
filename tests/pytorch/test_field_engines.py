"""Mean field and belief propagation on tensors against the compiled core, at their fixed points."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from grid_cases import LAYERS, native_case, random_grid_layer
from layer_cases import COMPILED_CORE

from crfkit.errors import ParameterError
from crfkit.torch.grid_field import GridScores, alikeness
from crfkit.torch.grid_messages import GridMessages, belief_propagation

if not COMPILED_CORE:
    pytest.skip("the compiled core is not there", allow_module_level=True)

from graph_cases import random_field
from hypothesis import given, settings
from hypothesis import strategies as st

from crfkit import GraphCRF
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.belief_propagation import BeliefPropagation
from crfkit.graph.inference.marginals import InferenceStatus
from crfkit.graph.inference.mean_field import MeanField
from crfkit.graph.inference.tree import Tree
from crfkit.torch.graph_engines import TensorBeliefPropagation, TensorMeanField

ON_CPU = "torch:cpu"


def close(found, expected, tolerance=1e-9):
    expected = np.asarray(expected)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)


def same(found, expected, tolerance=1e-9):
    assert found.status.settled
    assert expected.status.settled
    close(found.log_z, expected.log_z, tolerance)
    close(found.nodes, expected.nodes, tolerance)
    close(found.edges, expected.edges, tolerance)


@pytest.mark.parametrize("impossible", [0.0, 0.3])
@pytest.mark.parametrize("n_states", [2, 3, 5])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_belief_propagation_is_exact_on_forests(n_states, impossible, seed):
    field = random_field(seed, n_states, forest=True, n_graphs=3, impossible=impossible)
    same(TensorBeliefPropagation(ON_CPU, damping=0.0).run(field), Tree().run(field))


def grid_potentials(K, seed=0, shape=(6, 7), scale=0.4, shared=False, impossible=False):
    rng = np.random.default_rng(seed)
    graph = Graph.join([Graph.grid(shape), Graph.grid((3, 4), 8), Graph(2, [])])
    tables = scale * rng.standard_normal((K, K) if shared else (graph.n_edges, K, K))
    unary = rng.standard_normal((graph.n_nodes, K))
    if impossible:
        unary[::5, 0] = -np.inf
    return Potentials.from_tables(graph, unary, tables)


PAIRS = [
    (TensorBeliefPropagation, BeliefPropagation(tolerance=1e-12)),
    (TensorMeanField, MeanField(tolerance=1e-13)),
]


@pytest.mark.parametrize("options", [{}, {"shared": True}, {"impossible": True}], ids=str)
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize(("engine", "native"), PAIRS, ids=["bp", "mean-field"])
def test_graphs_have_the_fixed_point_of_the_core(engine, native, K, options):
    field = grid_potentials(K, **options)
    expected = native.run(field)
    same(engine(ON_CPU, tolerance=1e-12).run(field), expected)
    same(engine(ON_CPU, damping=0.4, tolerance=1e-12).run(field), expected)
    single = engine(ON_CPU, tolerance=2e-6, precision="single").run(field)
    same(single, expected, 2e-5)
    assert single.nodes.dtype == np.float64


def test_they_go_on_from_messages_of_an_earlier_run():
    field = grid_potentials(3)
    engine = TensorBeliefPropagation(ON_CPU, tolerance=1e-9)
    first = engine.run(field)
    again = engine.run(field, first)
    assert again.iterations < first.iterations
    same(again, first, 1e-7)
    assert engine.run(grid_potentials(2), first).status.settled  # of another field: not used


def test_they_say_when_they_have_not_converged():
    for engine in (TensorBeliefPropagation, TensorMeanField):
        found = engine(ON_CPU, max_iterations=2, tolerance=1e-12).run(grid_potentials(2, scale=2.0))
        assert found.status is InferenceStatus.NOT_CONVERGED
        assert found.iterations == 2
        assert found.residual > 1e-12


def test_fields_without_edges_or_nodes():
    for graph in (Graph(3, []), Graph(0, [])):
        field = Potentials.from_tables(graph, np.random.default_rng(0).standard_normal((graph.n_nodes, 2)))
        for engine, native in PAIRS:
            found, expected = engine(ON_CPU).run(field), native.run(field)
            close(found.log_z, expected.log_z)
            close(found.nodes, expected.nodes)
            assert found.edges.shape == (0, 2, 2)


def test_an_estimator_takes_them(tmp_path):
    X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    Y = [["sun", "dry"], ["rain", "wet"], ["rain", "wet"], ["sun", "dry"]]
    here = GraphCRF(inference=BeliefPropagation()).fit(X, Y)
    there = GraphCRF(inference=TensorBeliefPropagation(ON_CPU)).fit(X, Y)
    close(there.coef_, here.coef_, 1e-6)
    for a, b in zip(there.predict_marginals(X), here.predict_marginals(X), strict=True):
        close(a, b, 1e-6)
    there.save(tmp_path / "model.crf")
    assert GraphCRF.load(tmp_path / "model.crf").inference == BeliefPropagation()  # opens without PyTorch
    mean_field = GraphCRF(inference=TensorMeanField(ON_CPU, tolerance=1e-8)).fit(X, Y)
    mean_field.save(tmp_path / "model.crf")
    assert GraphCRF.load(tmp_path / "model.crf").inference == MeanField(tolerance=1e-8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"damping": 1.0}, "damping must be a number from 0 to below 1, not 1.0"),
        ({"max_iterations": 0}, "max_iterations must be an integer >= 1, not 0"),
        ({"tolerance": -1}, "the tolerance must be a number >= 0, not -1"),
        ({"precision": "half"}, "precision must be 'double' or 'single', not 'half'"),
        ({"device": "gpu"}, "unknown device 'gpu'"),
    ],
)
def test_bad_options(options, message):
    for engine in (TensorBeliefPropagation, TensorMeanField):
        with pytest.raises(ParameterError, match=message):
            engine(**{"device": ON_CPU, **options})


# --- grids


def grid_case(name, n_labels, scale=0.4):
    """Return (scores of three images with a mask, potentials of the first and the third, which are whole)."""
    layer = random_grid_layer(n_labels, scale=scale, **{**LAYERS[name], "form": "full"})
    u = torch.randn(3, n_labels, 5, 6, dtype=torch.float64)
    image = torch.randn(3, 2, 5, 6, dtype=torch.float64) if layer.contrast else None
    mask = torch.ones(3, 5, 6, dtype=torch.bool)
    mask[1] = torch.rand(5, 6) < 0.7
    mask[2] = False
    mask[2, 2, 1] = True
    scores = layer._scores(u, mask, image)
    labels = torch.zeros(5, 6, dtype=torch.long)
    data, field, w = native_case(layer, u[0], labels, None if image is None else image[0])
    return GridScores(*(x.detach() if isinstance(x, torch.Tensor) else x for x in scores)), field.potentials(data, w)


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("name", LAYERS)
def test_grids_have_the_fixed_point_of_the_core(name, n_labels):
    scores, potentials = grid_case(name, n_labels)
    expected = BeliefPropagation(tolerance=1e-12, damping=0.3).run(potentials)
    for damping in (0.3, None):
        found = belief_propagation(scores, damping, 1000, 1e-12)
        assert found.settled.settled
        close(found.marginals[0].flatten(1).T, expected.nodes)
        close(found.log_z[0], expected.log_z[0])
    close(found.marginals.sum(1), scores.inside[:, 0].double())
    close(found.marginals[2, :, 2, 1], torch.softmax(scores.u[2, :, 2, 1], 0))
    close(found.log_z[2], torch.logsumexp(scores.u[2, :, 2, 1], 0))
    single = GridScores(*(x.float() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in scores))
    single = single._replace(alike=tuple(x.float() for x in scores.alike))
    rounded = belief_propagation(single, 0.3, 1000, 2e-6)
    close(rounded.marginals, found.marginals, 2e-5)
    close(rounded.log_z, found.log_z, 2e-5)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_a_masked_grid_is_the_graph_of_its_pixels(n_labels):
    scores, _ = grid_case("full", n_labels)
    inside = scores.inside[1, 0].numpy()
    numbers = np.cumsum(inside).reshape(inside.shape) - 1
    edges, tables = [], []
    for d, (dy, dx) in enumerate([(0, 1), (1, 0)]):
        for y, x in np.argwhere(inside):
            if y + dy < inside.shape[0] and x + dx < inside.shape[1] and inside[y + dy, x + dx]:
                edges.append((numbers[y, x], numbers[y + dy, x + dx]))
                tables.append(scores.T[d].numpy())
    unary = scores.u[1].permute(1, 2, 0).numpy()[inside]
    field = Potentials.from_tables(Graph(int(inside.sum()), np.array(edges)), unary, np.array(tables))
    expected = BeliefPropagation(tolerance=1e-12, damping=0.3).run(field)
    found = belief_propagation(scores, 0.3, 1000, 1e-12)
    close(found.marginals[1].permute(1, 2, 0).numpy()[inside], expected.nodes)
    close(found.log_z[1], expected.log_z[0])


def test_sums_of_exponentials_are_those_of_logarithms():
    scores, _ = grid_case("potts", 4, 5.0)
    fast, safe = GridMessages(scores), GridMessages(scores)
    assert fast._exponentials is not None
    safe._exponentials = None
    for _ in range(20):
        for messages in (fast, safe):
            messages.sweep(0.5)
    close(fast.marginals(), safe.marginals())
    assert GridMessages(scores._replace(T=20 * scores.T))._exponentials is None


@pytest.mark.parametrize("n_labels", [2, 3])
def test_pair_marginals_of_grids(n_labels):
    scores, potentials = grid_case("full", n_labels)
    expected = BeliefPropagation(tolerance=1e-12, damping=0.3).run(potentials)
    messages = GridMessages(scores)
    for _ in range(200):
        messages.sweep(0.3)
    pairs = [messages.pair_marginals(d)[0].permute(2, 3, 0, 1).reshape(-1, n_labels, n_labels) for d in range(2)]
    close(torch.cat(pairs), expected.edges)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_forbidden_labels_and_strong_couplings(n_labels):
    scores, _ = grid_case("full", n_labels, scale=8.0)
    scores.u[0, 0, 1, 1:4] = -torch.inf
    found = belief_propagation(scores, 0.5, 30, 0.0)
    assert (found.marginals[0, 0, 1, 1:4] == 0).all()
    close(found.marginals.sum(1), scores.inside[:, 0].double())
    assert found.log_z.isfinite().all()


def test_grids_need_no_core_and_images_may_be_thin():
    for shape in ((1, 1), (1, 6), (6, 1)):
        u, T = torch.randn(2, 3, *shape, dtype=torch.float64), torch.randn(4, 3, 3, dtype=torch.float64)
        alike = alikeness(torch.randn(2, 1, *shape, dtype=torch.float64), torch.tensor(1.0), 8)
        found = belief_propagation(GridScores(u, T, T, alike, None), 0.0, 50, 1e-10)
        assert found.settled.settled
        close(found.marginals.sum(1), np.ones((2, *shape)))
