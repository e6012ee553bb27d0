"""Tagging on a device: the labels and marginals of the compiled core."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from optional import optional
from oracle import make_problem

torch = optional("torch")

from tensor_cases import chains  # noqa: E402

from crfkit import ChainCRF  # noqa: E402
from crfkit.chain.inference import ChainInference  # noqa: E402
from crfkit.errors import ParameterError  # noqa: E402
from crfkit.torch.tagging import TensorTagger  # noqa: E402


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("spread", [1.0, 300.0])
@pytest.mark.parametrize("seed", range(3))
def test_labels_and_marginals_are_those_of_the_core(seed, spread, precision):
    data, field = chains(seed, states="all")
    w = spread * np.random.default_rng(seed).normal(size=field.size)
    there, here = TensorTagger(field, w, "torch:cpu", precision), ChainInference(field, w)
    assert there.decode(data).tolist() == here.decode(data)[0].tolist()
    if precision == "double" or spread == 1.0:  # single floats hold four decimals of scores of thousands
        tolerance = 1e-9 if precision == "double" else 1e-5
        assert_allclose(there.marginals(data), here.node_marginals(data), atol=tolerance)


@pytest.mark.parametrize("n_labels", [1, 2, 40, 100])
def test_label_counts(n_labels):
    problem = make_problem(0, n_labels, (4, 1, 0, 6))
    found = TensorTagger(problem.field, problem.w, "torch:cpu").decode(problem.data)
    assert found.tolist() == ChainInference(problem.field, problem.w).decode(problem.data)[0].tolist()


def test_constraints():
    data, field = chains(0)
    allowed = np.ones((4, 4), dtype=bool)
    allowed[1, 2] = allowed[2, 2] = allowed[3, 0] = False
    masked = replace(field, allowed=allowed, allowed_start=np.array([1, 0, 1, 1], bool))
    w = np.random.default_rng(0).normal(size=field.size)
    tagger, core = TensorTagger(masked, w, "torch:cpu"), ChainInference(masked, w)
    assert tagger.decode(data).tolist() == core.decode(data)[0].tolist()
    assert_allclose(tagger.marginals(data), core.node_marginals(data), atol=1e-9)


def test_models():
    X = [[["w=the"], ["w=cat"]], [["w=a"], ["w=dog"], ["w=barks"]]]
    model = ChainCRF().fit(X, [["D", "N"], ["D", "N", "V"]]).trained_model()
    tagger, data = TensorTagger.of_model(model, "torch:cpu"), model.encode(X)
    rows = tagger.upload(data)
    assert model.classes[tagger.decode(rows)].tolist() == ["D", "N", "D", "N", "V"]
    assert tagger.marginals(rows).sum(axis=1).tolist() == pytest.approx([1.0] * 5)


def test_errors():
    _, field = chains(0)
    with pytest.raises(ParameterError, match="precision must be 'double' or 'single', not 'half'"):
        TensorTagger(field, np.zeros(field.size), "torch:cpu", "half")
    with pytest.raises(ParameterError, match=rf"there are \(3,\) weights, but the field has {field.size}"):
        TensorTagger(field, np.zeros(3), "torch:cpu")
