"""Label classes: attributes may have weights for groups of labels, which is tying the weights of these labels."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose
from oracle import (
    KERNELS,
    Problem,
    check_inference,
    check_likelihood,
    check_long_likelihood,
    indices,
    make_problem,
    recursion,
    small_problems,
)

from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.chain.inference import ChainInference
from crfkit.errors import DataError
from crfkit.losses import ChainLikelihood

every_order = pytest.mark.parametrize("order", [1, 2])
with_classes = small_problems(classes=(1, 2, 3, 20))


def untied(problem: Problem) -> tuple[ChainField, np.ndarray]:
    """(the field with state weights for all labels and no classes, M): its weights M·w give the same scores."""
    field = problem.field
    free = replace(
        field, state_offsets=None, state_labels=None, label_classes=None, class_offsets=None, class_codes=None
    )
    source, target = indices(field), indices(free)
    M = np.zeros((free.size, field.size + 1))  # the last column takes what has no weight
    for a in range(field.n_attributes):
        for j in range(field.n_labels):
            M[target.state[a, j], source.state[a, j]] += 1.0
            M[target.state[a, j], source.by_class[a, field.label_classes[j]]] += 1.0
    for block in ("transition", "pair", "triple"):
        to, of = free.layout[block], field.layout[block]
        M[to, of] = np.eye(of.stop - of.start)
    return free, M[:, :-1]


@settings(max_examples=25)
@given(problem=with_classes)
def test_classes_tie_the_weights_of_their_labels(problem):
    free, M = untied(problem)
    v = np.random.default_rng(0).normal(size=problem.field.size)
    for kernels in KERNELS:
        tied = ChainLikelihood(problem.data, problem.field, 2, kernels).at(problem.w)
        each = ChainLikelihood(problem.data, free, 2, kernels).at(M @ problem.w)
        assert_allclose(tied.value, each.value, rtol=1e-10, atol=1e-10)
        assert_allclose(tied.grad, M.T @ each.grad, rtol=1e-9, atol=1e-9)
        assert_allclose(tied.hessp(v), M.T @ each.hessp(M @ v), rtol=1e-9, atol=1e-9)
        assert_allclose(tied.hess_diag(), M.T @ each.hess_diag(), rtol=1e-9, atol=1e-9)
        a = ChainInference(problem.field, problem.w, 2, kernels)
        b = ChainInference(free, M @ problem.w, 2, kernels)
        for name in ("log_partition", "node_marginals", "edge_marginals"):
            assert_allclose(getattr(a, name)(problem.data), getattr(b, name)(problem.data), rtol=1e-10, atol=1e-10)
        assert_allclose(a.decode(problem.data)[1], b.decode(problem.data)[1], rtol=1e-10, atol=1e-10)


@given(problem=with_classes)
def test_likelihood_equals_enumeration(problem):
    check_likelihood(problem, n_threads=(1, 2, 3), caches=(0, 1 << 30))


@given(problem=with_classes)
def test_inference_equals_enumeration(problem):
    check_inference(problem)


@pytest.mark.parametrize("n_classes", [1, 3, 8, 9, 20])
@pytest.mark.parametrize("n_labels", [9, 20])
@every_order
def test_class_counts_around_vector_widths(n_labels, n_classes, order):
    for states in ("all", "observed", "subset"):
        problem = make_problem(n_classes, n_labels, (4, 2), 9, states=states, order=order, n_classes=n_classes)
        check_long_likelihood(problem)
        check_inference(problem, solver=recursion)


def test_one_class_for_all_labels_has_no_effect():
    problem = make_problem(1, 4, (5, 3), n_classes=1)
    w = problem.w.copy()
    w[problem.field.layout["class"]] += 10.0
    loss = ChainLikelihood(problem.data, problem.field, 1)
    assert_allclose(loss.at(w).value, loss.at(problem.w).value, rtol=1e-11)
    assert_allclose(loss.at(w).grad[problem.field.layout["class"]], 0.0, atol=1e-11)


def test_a_field_of_classes_only():
    problem = make_problem(2, 5, (4, 3), n_classes=2, values=True)
    none = np.zeros(problem.field.n_attributes + 1, dtype=np.int64)
    field = replace(problem.field, state_offsets=none, state_labels=np.zeros(0, dtype=np.int32))
    assert field.n_state == 0
    problem = Problem(problem.data, field, np.random.default_rng(0).normal(size=field.size))
    check_likelihood(problem)
    check_inference(problem)


# --- the field


def test_classes_of_a_training_set():
    data = SequenceData([0, 3], [0, 1, 2, 3], [0, 0, 1], labels=[0, 1, 2])
    options = {"all_transitions": True, "label_classes": [1, 1, 0]}
    observed = ChainField.from_data(data, 3, 2, all_states=False, **options)
    assert observed.n_classes == 2
    assert observed.class_offsets.tolist() == [0, 1, 2]
    assert observed.class_codes.tolist() == [1, 0]
    assert observed.layout["class"] == slice(3 + 9, 3 + 9 + 2)
    every = ChainField.from_data(data, 3, 2, all_states=True, **options)
    assert every.class_codes is None
    assert every.layout["class"] == slice(6 + 9, 6 + 9 + 4)
    assert every.size == 6 + 9 + 4


def test_without_classes_there_are_none():
    field = ChainField(3, 2)
    assert field.n_classes == 0
    assert field.layout["class"] == slice(6, 6)


def ids(*codes: int) -> np.ndarray:
    return np.array(codes, dtype=np.int32)


@pytest.mark.parametrize(
    "options",
    [
        {"label_classes": ids(0, 1)},
        {"label_classes": ids(0, -1, 1)},
        {"class_offsets": np.array([0, 1]), "class_codes": ids(0)},
        {"label_classes": ids(0, 1, 1), "class_codes": ids(0)},
        {"label_classes": ids(0, 1, 1), "class_offsets": np.array([0, 1]), "class_codes": ids(2)},
        {"label_classes": ids(0, 1, 1), "class_offsets": np.array([0, 2]), "class_codes": ids(1, 0)},
    ],
)
def test_malformed_fields_are_refused(options):
    with pytest.raises(DataError):
        ChainField(3, 1, **options)
