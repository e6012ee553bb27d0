"""Tagger and Model of CRF++'s Python module."""

import math

import numpy as np
import pytest
from crfpp_cases import LABELS, binary_model
from numpy.testing import assert_allclose

import crfkit.compat.crfpp as CRFPP  # noqa: N812 - the name that people use
from crfkit.compat.crfpp import tag
from crfkit.convert import crfpp

LINES = ["a n", "bé\tv  gold", "a n x"]
ROWS = [[("a", "n"), ("bé", "v"), ("a", "n")]]


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").write_bytes(binary_model())
    return "model"


def test_labels_and_probabilities(path):
    tagger, model = CRFPP.Tagger("-m model -v 2"), crfpp.read(path)
    for line in LINES:
        assert tagger.add(line)
    assert (tagger.size(), tagger.xsize(), tagger.ysize(), tagger.dsize()) == (3, 2, 3, len(model.w))
    assert (tagger.empty(), tagger.vlevel(), tagger.nbest(), tagger.what()) == (False, 2, 0, "")
    assert tagger.parse()
    assert [tagger.y2(i) for i in range(3)] == model.predict(ROWS)[0]
    assert [LABELS[tagger.y(i)] for i in range(3)] == [tagger.yname(tagger.result(i)) for i in range(3)]
    assert tagger.x(1, 0) == "bé"
    assert tagger.x(1, 2) == "gold"
    marginals = model.predict_marginals(ROWS)[0]
    assert [[tagger.prob(i, j) for j in range(3)] for i in range(3)] == marginals.tolist()
    assert [tagger.prob(i) for i in range(3)] == [marginals[i, tagger.y(i)] for i in range(3)]
    assert tagger.prob() == pytest.approx(math.exp(-tagger.cost() - tagger.Z()))
    assert not tagger.next()
    assert tagger.clear()
    assert tagger.empty()


@pytest.mark.parametrize("lines", [LINES, LINES[:1], LINES * 2])
def test_forward_and_backward_sums(path, lines):
    tagger = CRFPP.Tagger("-m model")
    for line in lines:
        tagger.add(line)
    tagger.parse()
    T, L = tagger.size(), tagger.ysize()
    alpha, beta, cost, prob = (
        np.array([[get(i, j) for j in range(L)] for i in range(T)])
        for get in (tagger.alpha, tagger.beta, tagger.emission_cost, tagger.prob)
    )
    assert_allclose(alpha + beta - cost - tagger.Z(), np.log(prob), atol=1e-10)
    assert_allclose(np.logaddexp.reduce(alpha[-1]), tagger.Z())
    assert_allclose(np.logaddexp.reduce(beta[0]), tagger.Z())
    assert_allclose(alpha[0], cost[0])
    assert_allclose(beta[-1], cost[-1])


def test_levels_can_be_set(path):
    tagger = CRFPP.Tagger("-m model")
    tagger.set_vlevel(1)
    tagger.set_nbest(2)
    assert (tagger.vlevel(), tagger.nbest()) == (1, 2)
    text = "a n\nbé v\n\n"
    assert tagger.parse(text) == CRFPP.Tagger("-m model -v1 -n2").parse(text)


def test_nbest(path):
    tagger = CRFPP.Model("-m model -n 4").createTagger()
    for line in LINES:
        tagger.add(line)
    tagger.parse()
    best = [tagger.y(i) for i in range(3)]
    found = []
    while tagger.next():
        found.append(([tagger.y(i) for i in range(3)], tagger.prob()))
    assert len(found) == 4
    assert found[0][0] == best
    assert np.all(np.diff([p for _, p in found]) <= 0)
    assert len({tuple(labels) for labels, _ in found}) == 4


@pytest.mark.parametrize("flags", ["", "-v1", "-v 2", "-n 3", "-n2 -v1"])
def test_the_text_is_that_of_the_command(path, tmp_path, capfdbinary, flags):
    text = "a n\nbé v\n\n"
    (tmp_path / "test").write_text(text, "utf-8")
    tag.tag([*flags.split(), "-m", "model", "test"])
    expected = capfdbinary.readouterr().out.decode()
    tagger = CRFPP.Tagger(f"-m model {flags}")
    assert tagger.parse(text) == expected
    assert tagger.toString() == expected
    assert tagger.size() == 2


def test_errors(path):
    for arguments in ("-m nosuch", "", "-m model -n -1", "-m model --verbos 1"):
        with pytest.raises(RuntimeError, match=r"nosuch|no model was given|nbest|did you mean --verbose"):
            CRFPP.Tagger(arguments)
    tagger = CRFPP.Tagger("-m model")
    with pytest.raises(RuntimeError, match="fewer columns"):
        tagger.add("a")
    with pytest.raises(RuntimeError, match="no result yet"):
        tagger.prob()
    assert tagger.parse()
    with pytest.raises(AttributeError, match="Nosuch"):
        CRFPP.Nosuch  # noqa: B018
