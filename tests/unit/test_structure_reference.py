"""StructureLearner with form="reference": no weights for the last label and the last pair of labels (Xue & Zhang)."""

import numpy as np
import pytest

from crfkit import StructureLearner
from crfkit.errors import ParameterError
from crfkit.penalties import L2, Blockwise, GroupLinf
from crfkit.solvers import AGPM, GradientNorm
from crfkit.structure.losses.likelihood import StructureLikelihood
from crfkit.structure.losses.ordinal import pseudo_likelihood
from crfkit.structure.losses.pseudo import StructurePseudoLikelihood
from crfkit.structure.observations import Observations

STATES = [2, 3, 2, 4]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, STATES, size=(300, 4))
    same = rng.random(300) < 0.6
    Y[:, 2] = np.where(same, Y[:, 0], Y[:, 2])
    Y[:, 3] = np.where(rng.random(300) < 0.5, Y[:, 1], Y[:, 3])
    return Y


def losses(table, inputs=None):
    both = (Observations.of(table, STATES, inputs, reference=reference) for reference in (True, False))
    return [pseudo_likelihood(table, active=[1, 2, 7]) for table in both]


@pytest.mark.parametrize("with_inputs", [False, True])
def test_it_is_full_with_the_weights_of_last_states_fixed_at_zero(table, with_inputs):
    rng = np.random.default_rng(1)
    X = np.hstack([np.ones((300, 1)), rng.normal(size=(300, 2))]) if with_inputs else None
    reference, full = losses(table, X)
    assert type(full) is StructurePseudoLikelihood
    F = 3 if with_inputs else 1
    assert reference.field.n_node_weights == F * (1 + 2 + 1 + 3)
    assert reference.field.n_edge_weights == F * (5 + 3 + 11)  # K_i·K_j − 1 of the edges 0–1, 0–2, 1–3
    w, v = rng.normal(size=(2, reference.size))
    nodes, edges = reference.field.unpack(w)
    same = full.field.pack(nodes, edges)
    assert (same == 0).sum() == full.size - reference.size
    a, b = reference.at(w), full.at(same)
    assert a.value == b.value
    np.testing.assert_array_equal(reference.field.unpack(a.grad)[1], full.field.unpack(b.grad)[1] * (edges != 0))
    long = full.field.pack(*reference.field.unpack(v))
    np.testing.assert_allclose(a.hessp(v) @ v, b.hessp(long) @ long, rtol=1e-10)
    np.testing.assert_allclose(a.hessian() @ v, a.hessp(v), atol=1e-8)
    assert reference.lipschitz() <= full.lipschitz() * 1.01


def test_two_binary_columns_have_three_tables():
    rng = np.random.default_rng(2)
    table = Observations.of(
        rng.integers(0, 2, (30, 3)), 2, np.ones((30, 1)), own=rng.normal(size=(30, 3, 5)), reference=True
    )
    loss = pseudo_likelihood(table, active=[1])
    assert loss.field.n_node_weights == 3 * (1 + 5)
    assert loss.field.n_edge_weights == 3 * (1 + 5 + 5)  # [1, f_i, f_j] for 00, 01, 10


@pytest.mark.parametrize("method", ["agpm", "grafting-light", "grafting", "full"])
@pytest.mark.parametrize("loss", ["pl", "likelihood"])
def test_every_method_has_the_same_optimum(table, method, loss):
    options = {"edge_strength": 40.0, "tolerance": 1e-9, "standardize": False, "inference": "junction"}
    found = StructureLearner(form="reference", method=method, loss=loss, **options).fit(table)
    rows = Observations.of(table, STATES, reference=True)
    make = pseudo_likelihood if loss == "pl" else StructureLikelihood
    whole = make(rows, active=[1, 2, 3, 6, 7, 11])
    groups = whole.block_index[whole.layout["edge"]]
    penalty = Blockwise({"node": L2(found.node_strength), "edge": GroupLinf(40.0, groups)})
    best = AGPM(stopping=GradientNorm(1e-7)).minimize(whole, penalty, np.zeros(whole.size))
    assert found.result_.value == pytest.approx(best.value, rel=1e-6)
    assert {4 * i + j for i, j, _ in found.edges_} == set(whole.nonzero_ids(best.w).tolist())
    assert 0 < len(found.edges_) < 6


@pytest.mark.parametrize("rule", ["cv", "stability"])
def test_every_rule_chooses_the_edges(table, rule):
    options = {} if rule != "stability" else {"n_subsamples": 10}
    found = StructureLearner(form="reference", edge_strength=rule, n_strengths=6, **options).fit(table)
    strongest = {edge[:2] for edge in found.edges_[:2]}
    assert strongest == {(0, 2), (1, 3)}


def test_weights_have_the_same_meaning_in_every_form(table):
    """The refitted model has no edge penalty, and the families are one: the same centred tables, but for the ridge."""
    reference, full = (StructureLearner(form=form).fit(table) for form in ("reference", "full"))
    sizes = [{edge[:2]: edge[2] for edge in learner.edges_} for learner in (reference, full)]
    assert sizes[0].keys() == sizes[1].keys()
    for pair, size in sizes[0].items():
        assert size == pytest.approx(sizes[1][pair], rel=0.05)
    assert reference.score(table) == pytest.approx(full.score(table), abs=1e-3)


def test_inputs_and_files(table, tmp_path):
    x = np.random.default_rng(3).normal(size=(300, 2))
    learner = StructureLearner(form="reference", edge_strength=20.0).fit(table, inputs=x)
    assert learner.model_.field.edge_form == "reference"
    learner.save(tmp_path / "m.crf")
    loaded = StructureLearner.load(tmp_path / "m.crf")
    assert loaded.form == "reference"
    assert loaded.edges_ == learner.edges_
    np.testing.assert_array_equal(loaded.model_.w, learner.model_.w)


def test_newton_is_for_the_ising_form(table):
    with pytest.raises(ParameterError, match="newton"):
        StructureLearner(form="reference", method="newton").fit(table)
