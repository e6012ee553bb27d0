"""The exact inference by halves that the experiments of AGPM use."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crfkit.data.graph import Graph
from crfkit.fields.potentials import Potentials
from crfkit.inference.junction import Junction

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "experiments" / "agpm"))
from halves import Halves


@pytest.mark.parametrize("nodes", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_halves_are_exact(nodes, scale):
    rng = np.random.default_rng(nodes)
    graph = Graph.complete(nodes).repeat(7)
    potentials = Potentials.from_tables(
        graph, scale * rng.normal(size=(graph.n_nodes, 2)), scale * rng.normal(size=(graph.n_edges, 2, 2))
    )
    exact, found = Junction(n_threads=1).run(potentials), Halves().run(potentials)
    assert_allclose(found.log_z, exact.log_z, rtol=1e-12)
    assert_allclose(found.nodes, exact.nodes, atol=1e-10)
    assert_allclose(found.edges, exact.edges, atol=1e-10)


def test_edges_may_point_either_way_and_must_be_the_same_in_every_sample():
    rng = np.random.default_rng(0)
    tables = rng.normal(size=(2, 2, 2))
    graph = Graph(3, [(2, 0), (1, 2)])
    potentials = Potentials.from_tables(graph, rng.normal(size=(3, 2)), tables)
    assert_allclose(Halves().run(potentials).edges, Junction(n_threads=1).run(potentials).edges, atol=1e-12)
    with pytest.raises(ValueError, match="no label is fixed"):
        Halves().run(potentials.clamp([0, -1, -1]))
    with pytest.raises(ValueError, match="two states"):
        Halves().run(Potentials.from_tables(graph, np.zeros((3, 3))))
