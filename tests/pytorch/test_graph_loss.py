"""The pseudo-likelihood on tensors against the compiled core: data of every kind, fields of every form, solvers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from graph_loss_cases import CASES, make, weights_for
from layer_cases import COMPILED_CORE

from crfkit.errors import CapabilityError, DataError, ParameterError
from crfkit.penalties import L1, L2
from crfkit.result import Status
from crfkit.solvers import GradientNorm, make_solver
from crfkit.torch import grouped_sums
from crfkit.torch.graph_arrays import GraphArrays
from crfkit.torch.graph_loss import TensorPseudoLikelihood

if not COMPILED_CORE:
    pytest.skip("the compiled core is not there", allow_module_level=True)

from crfkit.graph.data import GraphData
from crfkit.graph.fields.calibrated import CalibratedField
from crfkit.graph.fields.field import GraphField, tied_field
from crfkit.graph.graph import Graph
from crfkit.graph.losses.pseudo import PseudoLikelihood


def on_tensors(data, field, **options):
    return TensorPseudoLikelihood(GraphArrays.of(data, field), "torch:cpu", **options)


def close(found, expected, tolerance):
    expected = np.asarray(expected)
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(np.asarray(found, dtype=float), expected, rtol=tolerance, atol=tolerance * scale)


def check(data, field, precision="double", tolerance=1e-9):
    ours, theirs = on_tensors(data, field, precision=precision), PseudoLikelihood(data, field, n_threads=1)
    assert ours.size == theirs.size
    assert dict(ours.layout) == dict(theirs.layout)
    w, v = weights_for(field), weights_for(field, 2)
    found, expected = ours.at(ours.vector(w)), theirs.at(w)
    close(found.value, expected.value, tolerance)
    assert found.grad.dtype == ours.zeros().dtype
    for a, b in (
        (found.grad, expected.grad),
        (found.hessp(ours.vector(v)), expected.hessp(v)),
        (found.hess_diag(), expected.hess_diag()),
    ):
        close(a, b, tolerance)


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_parity_with_the_core(case):
    data, field = make(*case)
    check(data, field)
    check(data, field, "single", 1e-5)


def test_ordinal_fields_with_more_tables_than_states():
    graph = Graph.join([Graph.path(4)] * 5)
    rng = np.random.default_rng(0)
    data = GraphData.make(graph, labels=rng.integers(0, 3, graph.n_nodes))
    types = np.tile([0, 1, 0, 1], 5).astype(np.int32)
    data = GraphData(
        graph,
        rng.random((20, 2)),
        rng.random((15, 2)),
        node_types=types,
        edge_types=np.tile([0, 1, 0], 5),
        labels=data.labels,
    )
    ends = np.array([[0, 1], [1, 0]], dtype=np.int32)
    field = GraphField([3, 3], 2, 2, 2, edge_form="ordinal", edge_ends=ends, scored=np.array([True, False]))
    assert len(field.edge_basis) > 3
    check(data, field)


@pytest.mark.parametrize("forms", [("full", "full"), ("ising", "ising"), ("full", "potts"), ("reference", "symmetric")])
def test_a_grid_of_some_size(forms, monkeypatch):
    """Sums in several levels of chunks, in single precision as well; features of edges, or one row that all share."""
    monkeypatch.setattr(grouped_sums, "CHUNK", 16)
    rng = np.random.default_rng(3)
    graph = Graph.grid((40, 50), 8)
    labels = rng.integers(0, 2, graph.n_nodes)
    for features in (None, rng.random((graph.n_edges, 2))):
        data = GraphData.make(graph, rng.random((graph.n_nodes, 3)), features, labels=labels)
        check(data, tied_field(data, 2, *forms))
        check(data, tied_field(data, 2, *forms), "single", 1e-5)


@pytest.mark.parametrize("kind", ["dense", "sparse", "types", "table", "ragged"])
def test_subsets(kind):
    data, field = make(kind)
    loss, w = on_tensors(data, field), weights_for(field)
    ids = np.array([2, 0])
    part = loss.subset(ids).at(loss.vector(w))
    expected = PseudoLikelihood(data, field).subset(ids).at(w)
    close(part.value, expected.value, 1e-9)
    close(part.grad, expected.grad, 1e-9)


def test_large_weights_and_auto_precision():
    data, field = make("dense")
    w = weights_for(field, scale=1e3)
    loss = on_tensors(data, field, precision="auto")
    expected = PseudoLikelihood(data, field).at(w)
    close(loss.at(loss.vector(w)).value, expected.value, 1e-5)
    loss.tolerance = 0.0
    close(loss.at(loss.vector(w)).value, expected.value, 1e-9)


SOLVERS = ["lbfgs", "owlqn", "fista", "ogm", "tron", "newton", "gradient-descent", "bfgs"]


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_reach_the_optimum_of_the_core(name):
    rng = np.random.default_rng(5)
    graph = Graph.grid((8, 9)).repeat(3)
    h = rng.normal(size=(graph.n_nodes, 2))
    data = GraphData.make(graph, h, labels=(h[:, 0] + rng.normal(size=len(h)) > 0).astype(int))
    field = tied_field(data, 2)
    ours, theirs = on_tensors(data, field), PseudoLikelihood(data, field)
    penalties = [L2(0.5)] + ([L1(0.8)] if name in ("owlqn", "fista") else [])
    for penalty in penalties:
        solver = make_solver(name, stopping=GradientNorm(1e-6), max_iterations=5000)
        best = make_solver(
            "fista" if isinstance(penalty, L1) else "lbfgs", stopping=GradientNorm(1e-8), max_iterations=9999
        )
        expected = best.minimize(theirs, penalty, np.zeros(field.size))
        found = solver.minimize(ours, penalty, ours.zeros())
        assert found.status in (Status.CONVERGED, Status.ROUNDING)
        assert isinstance(found.w, torch.Tensor)
        assert found.value == pytest.approx(expected.value, rel=1e-9)
        np.testing.assert_allclose(found.w.numpy(), expected.w, atol=1e-4)


def test_bad_inputs():
    data, field = make("dense")
    loss = on_tensors(data, field)
    with pytest.raises(ParameterError, match=r"weights are a numpy.ndarray; expected a tensor on cpu"):
        loss.at(np.zeros(field.size))
    with pytest.raises(ParameterError, match="expected shape"):
        loss.at(torch.zeros(3))
    with pytest.raises(ParameterError, match="unknown device 'gpu'"):
        TensorPseudoLikelihood(loss.arrays, "gpu")
    if not torch.cuda.is_available():
        with pytest.raises(ParameterError, match="the device 'cuda' cannot be used"):
            TensorPseudoLikelihood(loss.arrays)
    unlabelled = GraphData.make(Graph.path(3), labels=[0, -1, 1])
    with pytest.raises(DataError, match="node 1 has no label; the pseudo-likelihood needs all"):
        GraphArrays.of(unlabelled, tied_field(unlabelled, 2))
    with pytest.raises(CapabilityError, match="CalibratedField cannot be trained on tensors; drop the device"):
        GraphArrays.of(data, CalibratedField(np.array([3]), 4, 2))
