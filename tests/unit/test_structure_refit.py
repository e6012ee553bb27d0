"""The model after the search: right as a distribution, however dense its graph is."""

import warnings

import numpy as np
import pytest
from structure_cases import ISING, planted

from crfkit import StructureLearner
from crfkit.errors import ParameterError
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.annealed import Annealed
from crfkit.graph.inference.junction import Junction
from crfkit.graph.inference.marginals import InferenceStatus
from crfkit.structure import refit as structure_refit
from crfkit.structure.options import Tunables


def clusters(seed=0, p=14, rows=700, n_clusters=5, noise=0.08):
    """Rows of a few prototypes with noise: columns depend on each other all over, and the field has several modes."""
    rng = np.random.default_rng(seed)
    prototypes = rng.random((n_clusters, p)) < 0.35
    which = rng.choice(n_clusters, rows, p=rng.dirichlet(np.full(n_clusters, 2.0)))
    return (prototypes[which] ^ (rng.random((rows, p)) < noise)).astype(int)


def independent(train, test):
    q = (train.sum(axis=0) + 0.5) / (len(train) + 1)
    return float((test * np.log(q) + (1 - test) * np.log(1 - q)).sum(axis=1).mean())


def moments(Y):
    S = 2.0 * np.asarray(Y) - 1
    return S.mean(axis=0), S.T @ S / len(S)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_dense_tables_are_matched(seed):
    Y = clusters(seed)
    found = StructureLearner(edge_strength=2.0, refit="likelihood").fit(Y)
    assert found.refit_["by"] == "exact likelihood"
    assert len(found.edges_) > 30
    marginals = np.array([p[0, 1] for p in found.predict_marginals()])
    np.testing.assert_allclose(marginals, Y.mean(axis=0), atol=0.01)
    assert found.score(Y) >= independent(Y, Y)
    plain = StructureLearner(edge_strength=2.0, refit="pl").fit(Y)
    assert found.score(Y) > plain.score(Y)


def test_the_refit_is_the_optimum_of_the_likelihood():
    Y = clusters(3, p=8)
    found = StructureLearner(tolerance=1e-8).fit(Y)
    edges = found.model_.encoder.structure.edges
    drawn = Junction().run(found.model_.potentials(found.model_.encoder.encode(None)))
    mean, products = moments(Y)
    w, p = found.model_.w, Y.shape[1]
    expected = drawn.nodes @ [-1.0, 1.0]
    np.testing.assert_allclose(len(Y) * (expected - mean) + 1.0 * w[:p], 0, atol=0.1)
    pairs = np.einsum("eab,ab->e", drawn.edges, ISING)
    np.testing.assert_allclose(len(Y) * (pairs - products[tuple(edges.T)]) + 0.01 * w[p:], 0, atol=0.1)


@pytest.mark.parametrize("seed", [0, 1])
def test_particles_stand_in_for_exact_inference(seed, monkeypatch):
    Y = clusters(seed, p=10, rows=1000)
    exact = StructureLearner(ebic_gamma=0.0).fit(Y)
    monkeypatch.setattr(StructureLearner, "tunables", Tunables(exact_seconds=0.0))
    monkeypatch.setattr(structure_refit.Graph, "is_forest", False)
    sampled = StructureLearner(ebic_gamma=0.0).fit(Y)
    assert [e[:2] for e in sorted(sampled.edges_)] == [e[:2] for e in sorted(exact.edges_)]
    assert sampled.refit_["by"] in ("sampled likelihood", "pseudo-likelihood")
    assert sampled.refit_["mismatch"] < 0.05
    assert sampled.score(Y) == pytest.approx(exact.score(Y), abs=0.05)
    assert sampled.refit_["log_likelihood"] == pytest.approx(sampled.score(Y), abs=0.15)


def test_a_field_that_does_not_match_is_said(monkeypatch):
    Y = clusters(0)
    monkeypatch.setattr(StructureLearner, "tunables", Tunables(exact_seconds=0.0, mismatch_limit=0.0))
    monkeypatch.setattr(structure_refit, "sampled_weights", lambda likelihood, ridge, start, options: (start, 0))
    with pytest.warns(UserWarning, match=r"does not match the data: a marginal differs .* by 0\.\d"):
        StructureLearner().fit(Y)


def test_refit_is_an_option():
    Y, _ = planted(0)
    with pytest.raises(ParameterError, match="unknown refit 'ml'; expected one of auto, likelihood, pseudo-likelihood"):
        StructureLearner(refit="ml").fit(Y)
    assert StructureLearner(refit="pl").fit(Y).refit_ == {"by": "pseudo-likelihood"}
    assert StructureLearner(edge_strength=100.0).fit(Y).refit_ == {"by": "penalised pseudo-likelihood"}
    shrunk = StructureLearner(edge_strength=100.0).fit(Y)
    free = StructureLearner(edge_strength=100.0, refit="likelihood").fit(Y)
    assert {e[:2] for e in shrunk.edges_} == {e[:2] for e in free.edges_}
    assert sum(abs(e[2]) for e in free.edges_) > sum(abs(e[2]) for e in shrunk.edges_)


def test_files_keep_how_weights_were_made(tmp_path):
    found = StructureLearner().fit(planted(0)[0])
    found.save(tmp_path / "m.crf")
    assert StructureLearner.load(tmp_path / "m.crf").refit_ == {"by": "exact likelihood"}


def test_inputs_are_refitted_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1))
    Y = (X + rng.normal(size=(300, 3)) > 0).astype(int)
    Y[:, 2] = np.where(rng.random(300) < 0.8, Y[:, 1], Y[:, 2])
    exact = StructureLearner(n_strengths=8, edge_features=False).fit(Y, inputs=X)
    assert exact.refit_ == {"by": "exact likelihood"}
    assert exact.score(Y, inputs=X) >= StructureLearner(n_strengths=8, edge_features=False, refit="pl").fit(
        Y, inputs=X
    ).score(Y, inputs=X)


# --- scores


def dense_field(seed=0, p=12, scale=0.5):
    rng = np.random.default_rng(seed)
    graph = Graph.complete(p)
    bias, couplings = rng.normal(size=p), scale * rng.normal(size=graph.n_edges)
    return Potentials.from_tables(graph, np.stack([-bias, bias], 1), couplings[:, None, None] * ISING)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("scale", [0.2, 0.6])
def test_particles_estimate_log_z_and_marginals(seed, scale):
    field = dense_field(seed, scale=scale)
    exact, found = Junction().run(field), Annealed(seed=seed).run(field)
    assert found.status is InferenceStatus.SAMPLED
    assert found.log_z[0] == pytest.approx(exact.log_z[0], abs=max(0.05, 4 * found.errors[0]))
    np.testing.assert_allclose(found.nodes, exact.nodes, atol=0.05)
    np.testing.assert_allclose(found.edges, exact.edges, atol=0.05)
    drawn = Annealed(seed=seed).sample(field, 2000, seed)
    np.testing.assert_allclose(drawn.mean(axis=0), exact.nodes[:, 1], atol=0.06)


def test_particles_of_more_labels_known_labels_and_lone_nodes():
    rng = np.random.default_rng(0)
    graph = Graph(5, np.array([[0, 1], [1, 2], [0, 2]], dtype=np.int32))
    unary = rng.normal(size=(5, 3))
    unary[1, 2] = -np.inf  # two labels
    field = Potentials.from_tables(graph, unary, rng.normal(size=(3, 3, 3))).clamp([-1, -1, 1, -1, 0])
    exact, found = Junction().run(field), Annealed().run(field)
    assert found.log_z[0] == pytest.approx(exact.log_z[0], abs=0.05)
    np.testing.assert_allclose(found.nodes, exact.nodes, atol=0.04)
    assert (Annealed().sample(field, 50)[:, 2] == 1).all()


def test_two_seeds_of_a_sampled_score_agree(monkeypatch):
    Y = clusters(1, p=12)
    found = StructureLearner().fit(Y)
    exact = found.score(Y)
    monkeypatch.setattr("crfkit.structure.scores.default_engine", lambda *_: "trw")
    scores = []
    for seed in (0, 1):
        object.__setattr__(found.model_, "seed", seed)
        scores.append(found.score(Y))
    assert scores[0] != scores[1]
    np.testing.assert_allclose(scores, exact, atol=0.1)


def test_score_uses_the_inference_that_was_named():
    Y = clusters(1, p=10)
    found = StructureLearner().fit(Y)
    exact = found.score(Y)
    for name, message in (("trw", "lower bound"), ("mean-field", "upper bound"), ("bp", "approximation by bp")):
        found.inference = name
        with pytest.warns(UserWarning, match=message):
            value = found.score(Y)
        assert value <= exact + 1e-6 if name == "trw" else value >= exact - 1e-6 if name == "mean-field" else True
    found.inference = "gibbs"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert found.score(Y) == pytest.approx(exact, abs=0.2)
    assert found.score_error_ > 0
