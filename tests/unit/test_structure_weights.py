"""Parameters by name: signs, tables, nodes, inputs; whatever the form in which weights are stored."""

from itertools import product

import numpy as np
import pytest
from structure_cases import planted

from crfkit import StructureLearner
from crfkit.errors import ParameterError


@pytest.fixture(scope="module")
def repelled():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 1500)
    b = np.where(rng.random(1500) < 0.83, 1 - a, a)
    c = np.where(rng.random(1500) < 0.7, b, 1 - b)
    return np.stack([a, b, c], axis=1), rng.integers(0, 3, 1500)


def test_signs_survive_a_column_of_three_labels(repelled):
    binary, other = repelled
    alone = StructureLearner().fit(binary)
    mixed = StructureLearner().fit(np.column_stack([binary, other]))
    assert {e[:2] for e in alone.edges_} == {e[:2] for e in mixed.edges_} == {(0, 1), (1, 2)}
    before, after = ({e[:2]: e[2] for e in found.edges_} for found in (alone, mixed))
    assert before[0, 1] < -0.7
    for pair, weight in before.items():
        assert after[pair] == pytest.approx(weight, abs=0.01)
    np.testing.assert_allclose(mixed.weight_matrix_[:3, :3], alone.weight_matrix_, atol=0.01)
    assert not mixed.weight_matrix_[3].any()
    assert mixed.edge_weights_[(0, 1), "intercept", (0, 0)] == pytest.approx(before[0, 1], abs=0.01)
    assert mixed.edge_weights_[(0, 1), "intercept", (0, 1)] == pytest.approx(-before[0, 1], abs=0.01)


@pytest.mark.parametrize("labels", [2, 3])
def test_parameters_are_the_field(labels):
    rng = np.random.default_rng(labels)
    Y = rng.integers(0, labels, (400, 3))
    Y[:, 1] = np.where(rng.random(400) < 0.6, Y[:, 0], Y[:, 1])
    Y[:, 2] = np.where(rng.random(400) < 0.5, labels - 1 - Y[:, 1], Y[:, 2])
    found = StructureLearner().fit(Y)
    nodes, edges = found.node_weights_, found.edge_weights_
    rows = np.array(list(product(range(labels), repeat=3)))
    scores = np.array(
        [
            sum(nodes[i, "intercept", y[i]] for i in range(3))
            + sum(edges[pair, "intercept", (y[pair[0]], y[pair[1]])] for pair in {e[:2] for e in found.edges_})
            for y in rows.tolist()
        ]
    )
    np.testing.assert_allclose(scores - np.logaddexp.reduce(scores), found.log_likelihood(rows), atol=1e-10)
    for i in range(3):
        assert sum(nodes[i, "intercept", k] for k in range(labels)) == pytest.approx(0, abs=1e-10)


def test_parameters_with_inputs_are_the_field():
    rng = np.random.default_rng(0)
    shared, own = 3.0 + rng.normal(size=(300, 1)), rng.normal(size=(300, 3, 1))
    Y = (own[:, :, 0] + 0.5 * shared - 1.5 + rng.normal(size=(300, 3)) > 0).astype(int)
    Y[:, 2] = np.where(own[:, 2, 0] > 0, Y[:, 0], Y[:, 2])
    found = StructureLearner(n_strengths=10, form="full").fit(Y, inputs=(shared, own))
    assert [e[:2] for e in found.edges_] == [(0, 2)]
    nodes, edges = found.node_weights_, found.edge_weights_
    x = {"intercept": 1.0, "x0": shared[0, 0]}
    z = own[0, :, 0]
    ends = {"f0 of y0": z[0], "f0 of y2": z[2], **x}
    rows = np.array(list(product([0, 1], repeat=3)))
    names = {f for _, f, _ in nodes}
    assert names == {"intercept", "x0", "f0"}
    scores = [
        sum(nodes[i, f, y[i]] * (z[i] if f == "f0" else x[f]) for i in range(3) for f in names)
        + sum(edges[(0, 2), f, (y[0], y[2])] * value for f, value in ends.items())
        for y in rows.tolist()
    ]
    # a table of the feature of one end says something about the other end, which no weight of a node can
    joint = np.array(scores) - np.logaddexp.reduce(scores)
    exact = found.log_likelihood(rows, inputs=(np.repeat(shared[:1], 8, 0), np.repeat(own[:1], 8, 0)))
    np.testing.assert_allclose(joint, exact, atol=1e-8)


def test_which_inputs_drive_an_edge():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1500, 3)) * [1.0, 100.0, 1.0]
    Y = rng.integers(0, 2, (1500, 2))
    agree = rng.random(1500) < 1 / (1 + np.exp(-X[:, 1] / 40))
    Y[:, 1] = np.where(agree, Y[:, 0], 1 - Y[:, 0])
    found = StructureLearner(n_strengths=10).fit(Y, inputs=X)
    (record,) = found.edge_records_
    assert next(iter(record["inputs"])) == "x1"
    assert record["inputs"]["x1"] > 5 * record["inputs"]["x0"]
    # on the original scale: the log-odds of agreement are X/40 = 4·weight·X/4
    assert found.edge_weights_[(0, 1), "x1", (1, 1)] == pytest.approx(1 / 160 * 2, rel=0.25)


def test_records_and_frames(repelled):
    binary, other = repelled
    other = np.where(np.random.default_rng(3).random(1500) < 0.6, 2 * binary[:, 2], other)
    found = StructureLearner().fit(np.column_stack([binary, other]))
    records = {(r["first"], r["second"]): r for r in found.edge_records_}
    assert records[0, 1]["kind"] == "coupling"
    assert records[0, 1]["strongest"] in ((0, 1), (1, 0))
    assert records[2, 3]["kind"] == "table"
    assert records[2, 3]["strongest"] in ((1, 2), (0, 0))
    assert [r["weight"] for r in found.edge_records_] == [e[2] for e in found.edges_]
    try:
        import pandas
    except ImportError:
        with pytest.raises(ParameterError, match=r"crfkit\[frames\].*edge_records_"):
            found.edges_frame()
    else:
        assert isinstance(found.edges_frame(), pandas.DataFrame)
        assert len(found.edges_frame(parameters=True)) == len(found.edge_weights_)


def test_matrix_and_edges_say_the_same():
    found = StructureLearner().fit(planted(0)[0])
    for i, j, weight in found.edges_:
        assert found.weight_matrix_[i, j] == found.weight_matrix_[j, i] == weight
    assert np.count_nonzero(found.weight_matrix_) == 2 * len(found.edges_)
