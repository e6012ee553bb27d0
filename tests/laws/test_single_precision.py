"""Single precision: the same loss to its rounding errors, the same optimum, and double where floats cannot hold it.

Stated tolerances of "single": values and gradients to 2e-6 of the oracle's, relative to the largest number in them.
The optimum of "auto" is that of "double" to 1e-8 of the objective.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal
from oracle import likelihood, make_problem, problems

from crfkit import L1, L2, ChainCRF, _core
from crfkit.chain.losses.examples import weak_chain_example
from crfkit.chain.losses.precision import DOUBLE, SINGLE
from crfkit.chain.losses.weak import MarginalLikelihood
from crfkit.errors import ParameterError
from crfkit.losses import ChainLikelihood, SoftmaxMargin
from crfkit.solvers import LBFGS, OWLQN, SGD, GradientNorm, Tron

KERNELS = _core.available_kernels()
ERROR = 2e-6


def parts(seed: int):
    problem = make_problem(seed=seed)
    return problem.data, problem.field, problem.w


def close(found, expected) -> None:
    value, gradient = expected
    assert_allclose(found.value, value, rtol=ERROR, atol=ERROR)
    assert_allclose(found.grad, gradient, rtol=0, atol=ERROR * max(1.0, np.abs(gradient).max(initial=0.0)))


@settings(max_examples=60)
@given(problem=problems())
def test_single_precision_equals_the_oracle(problem):
    data, field, w = problem.data, problem.field, problem.w
    for kernels in KERNELS:
        for threads in (1, 3):
            loss = ChainLikelihood(data, field, threads, kernels, precision="single")
            close(loss.at(w), likelihood(data, field, w))


def test_margins_and_weak_labels_have_it_too():
    data, field, w = parts(3)
    close(SoftmaxMargin(data, field, precision="single").at(w), both(SoftmaxMargin(data, field).at(w)))
    data, field = weak_chain_example()
    w = np.random.default_rng(0).normal(size=field.size)
    close(MarginalLikelihood(data, field, precision="single").at(w), both(MarginalLikelihood(data, field).at(w)))


def both(evaluation):
    return evaluation.value, evaluation.grad


def test_the_same_options_give_the_same_bits():
    data, field, w = parts(5)
    values = {ChainLikelihood(data, field, 2, precision="single").at(w).grad.tobytes() for _ in range(5)}
    assert len(values) == 1


@pytest.mark.parametrize(
    ("solver", "penalty"),
    [(LBFGS(), L2(0.5)), (OWLQN(), L1(0.5)), (Tron(), L2(0.5)), (SGD(max_iterations=3), L2(0.5))],
    ids=["lbfgs", "owlqn", "tron", "sgd"],
)
def test_auto_reaches_the_optimum_of_double(solver, penalty):
    data, field, _ = parts(1)
    start = np.zeros(field.size)
    eps = 1e-9
    if solver.name != "sgd":
        solver = replace(solver, stopping=GradientNorm(eps))
    found = {
        precision: solver.minimize(ChainLikelihood(data, field, precision=precision), penalty, start)
        for precision in ("double", "auto")
    }
    # the objective of a run that does not end by itself is not evaluated again
    assert_allclose(found["auto"].value, found["double"].value, rtol=ERROR if solver.name == "sgd" else 1e-8)
    if solver.name != "sgd":
        assert found["auto"].optimality <= eps * max(1.0, np.linalg.norm(found["auto"].w))  # the rule, in double


def test_auto_says_when_it_went_over_to_double():
    data, field, _ = parts(1)
    loss = ChainLikelihood(data, field, precision="auto")
    assert (loss.used, loss.tolerance) == ("single", SINGLE)
    loss.tolerance = 0.1 * loss.tolerance
    assert (loss.used, loss.tolerance) == ("single, then double", DOUBLE)


@pytest.mark.parametrize("size", [1e5, np.inf, np.nan])
def test_weights_that_floats_cannot_hold_are_taken_in_double(size):
    data, field, w = parts(2)
    w = w.copy()
    w[0] = size
    expected = both(ChainLikelihood(data, field).at(w))
    loss = ChainLikelihood(data, field, precision="single")
    with pytest.warns(RuntimeWarning, match="single precision cannot hold these weights"):
        found = loss.at(w).value
    assert_array_equal(found, expected[0])
    assert loss.used == "single, then double"


def test_the_estimator_takes_it_and_the_model_says_it():
    X, y = [[["a"], ["b"]]] * 4, [["A", "B"]] * 4
    for precision, used in (("auto", "double"), ("double", "double"), ("single", "single")):
        crf = ChainCRF(precision=precision).fit(X, y)
        assert crf.model_.training["precision"] == used
        assert crf.predict(X) == y
    with pytest.raises(ParameterError, match="precision must be 'auto', 'double' or 'single', not 'half'"):
        ChainCRF(precision="half").fit(X, y)
    with pytest.raises(ParameterError, match="the loss 'hinge' has no single precision"):
        ChainCRF(precision="single", loss="hinge", solver="sgd").fit(X, y)
