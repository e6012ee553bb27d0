"""Products with the chain likelihood's Hessian, and its diagonal: against enumeration, and laws for any data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracle import (
    KERNELS,
    Exact,
    Problem,
    check_likelihood,
    check_long_likelihood,
    derivative,
    diagonal_formula,
    make_problem,
    problems,
    select,
    small_problems,
)

from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.losses import ChainLikelihood

every_kernel = pytest.mark.parametrize("kernels", KERNELS)
every_order = pytest.mark.parametrize("order", [1, 2])

BIG = {"n_pair_attributes": 3, "values": True, "weights": True}


def directions(problem: Problem, n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, problem.field.size))


# --- against enumeration


@settings(max_examples=60)
@given(problem=small_problems())
def test_products_equal_enumeration(problem):
    check_likelihood(problem, n_threads=(1, 2, 3), caches=(0, 1000, 1 << 30))


@pytest.mark.parametrize("scale", [5.0, 30.0, 100.0, 300.0])
@every_order
def test_products_at_large_scores_equal_enumeration(order, scale):
    for seed in range(4):
        forbidden = 0.4 if seed % 2 else None
        problem = make_problem(seed, 3, (5, 2, 4), order=order, scale=scale, forbidden=forbidden, **BIG)
        check_likelihood(problem, n_threads=(1, 2), caches=(0, 1 << 30))


@pytest.mark.parametrize("states", ["all", "observed", "subset"])
@pytest.mark.parametrize("n_labels", [1, 2, 7, 8, 9, 17, 33])
@every_order
def test_label_counts_around_vector_widths(order, n_labels, states):
    options = {"states": states, "transitions": "observed", "order": order}
    problem = make_problem(n_labels, n_labels, (3 if n_labels < 33 else 2, 2), 4, 1, values=True, **options)
    check_likelihood(problem, caches=(0, 1 << 30))


@pytest.mark.parametrize("n_labels", [16, 31, 64])
@every_order
def test_many_labels_with_all_weights(order, n_labels):
    problem = make_problem(n_labels, n_labels // (2 * order - 1), (4, 3), order=order, scale=0.3)
    check_long_likelihood(problem, n_threads=(2,))


@every_order
@pytest.mark.parametrize(("scale", "forbidden"), [(0.1, None), (1.0, 0.3), (20.0, None), (100.0, 0.3)])
def test_long_sequences_equal_the_recursion(order, scale, forbidden):
    problem = make_problem(3, 4, (2000, 3), 30, order=order, forbidden=forbidden, values=True)
    w = np.random.default_rng(1).uniform(-scale, scale, problem.field.size)
    check_long_likelihood(Problem(problem.data, problem.field, w), n_threads=(2,), caches=(0, 1 << 30))


# --- laws


@every_kernel
@given(problem=problems(scales=(0.1, 1.0)), seed=st.integers(0, 1000))
def test_products_are_the_change_of_the_gradient(kernels, problem, seed):
    loss = ChainLikelihood(problem.data, problem.field, 2, kernels)
    (v,) = directions(problem, 1, seed)
    change = derivative(lambda h: loss.at(problem.w + h * v).grad)
    assert_allclose(loss.at(problem.w).hessp(v), change, rtol=1e-6, atol=1e-6)


@every_kernel
@every_order
def test_products_are_the_change_of_the_gradient_of_a_long_sequence(kernels, order):
    problem = make_problem(3, 4, (2000, 3), 30, order=order, forbidden=0.3, scale=0.3, values=True)
    loss, (v,) = ChainLikelihood(problem.data, problem.field, 2, kernels), directions(problem, 1)
    change = derivative(lambda h: loss.at(problem.w + h * v).grad)
    assert_allclose(loss.at(problem.w).hessp(v), change, rtol=1e-6, atol=1e-6 * np.abs(change).max())


def test_the_value_bends_as_the_products_say():
    problem = make_problem(4, 5, (6, 4, 3), order=2, **BIG)
    loss, (v,) = ChainLikelihood(problem.data, problem.field, 1), directions(problem, 1)
    bend = derivative(lambda h: derivative(lambda k: loss.at(problem.w + (h + k) * v).value, 1e-2), 1e-2)
    assert_allclose(v @ loss.at(problem.w).hessp(v), bend, rtol=1e-5)


@every_kernel
@given(problem=small_problems(scales=(1.0, 100.0)), seed=st.integers(0, 1000))
def test_symmetric_semidefinite_and_linear(kernels, problem, seed):
    here = ChainLikelihood(problem.data, problem.field, 2, kernels).at(problem.w)
    u, v = directions(problem, 2, seed)
    Hu, Hv = here.hessp(u), here.hessp(v)
    size = 1e-10 * (1 + np.abs(u) @ np.abs(Hu) + np.abs(v) @ np.abs(Hv) + np.abs(u) @ np.abs(Hv))
    assert_allclose(u @ Hv, v @ Hu, rtol=0, atol=size)
    assert v @ Hv >= -size
    assert_allclose(here.hessp(2 * u - 3 * v), 2 * Hu - 3 * Hv, rtol=0, atol=size)
    assert (here.hessp(np.zeros_like(u)) == 0).all()


def test_what_all_labels_share_has_no_curvature():
    problem = make_problem(9, 4, (5, 4), transitions="none")
    shift = np.repeat(np.random.default_rng(0).normal(size=problem.field.n_attributes), 4)
    product = ChainLikelihood(problem.data, problem.field, 1).at(problem.w).hessp(shift)
    assert_allclose(product, 0.0, atol=1e-12)


@every_kernel
@every_order
@pytest.mark.parametrize("states", ["all", "observed"])
def test_threads_and_caches_agree_and_repetition_gives_the_same_bits(kernels, order, states):
    problem = make_problem(7, 9, tuple(range(12)) * 4, 40, states=states, order=order, company=True, **BIG)
    (v,) = directions(problem, 1)
    one = ChainLikelihood(problem.data, problem.field, 1, kernels).at(problem.w)
    expected = one.hessp(v), one.hess_diag()
    for n_threads in (1, 2, 3, 7):
        for cache_bytes in (0, 10_000, 1 << 30):
            loss = ChainLikelihood(problem.data, problem.field, n_threads, kernels, cache_bytes)
            first, again = loss.at(problem.w), loss.at(problem.w.copy())
            found = first.hessp(v), first.hess_diag()
            for a, b, c in zip(found, (again.hessp(v), again.hess_diag()), expected, strict=True):
                assert (a == b).all()
                assert_allclose(a, c, rtol=1e-12, atol=1e-12 * np.abs(c).max())


def test_kernels_agree():
    problem = make_problem(8, 17, (6, 30, 2), 20, order=2, **BIG)
    (v,) = directions(problem, 1)
    a, *others = (ChainLikelihood(problem.data, problem.field, 1, kernels).at(problem.w) for kernels in KERNELS)
    for b in others:
        for x, y in ((a.hessp(v), b.hessp(v)), (a.hess_diag(), b.hess_diag())):
            assert_allclose(x, y, rtol=1e-10, atol=1e-11 * np.abs(x).max())


@given(problem=small_problems(), seed=st.integers(0, 1000))
def test_weights_of_sequences_are_repetitions(problem, seed):
    repeats = np.random.default_rng(seed).integers(0, 4, len(problem.data))
    repeated = select(problem.data.with_weights(np.ones(len(repeats))), np.repeat(np.arange(len(repeats)), repeats))
    a, b = (
        ChainLikelihood(data, problem.field, 2).at(problem.w)
        for data in (problem.data.with_weights(repeats.astype(float)), repeated)
    )
    (v,) = directions(problem, 1)
    assert_allclose(a.hessp(v), b.hessp(v), rtol=1e-10, atol=1e-10)
    assert_allclose(a.hess_diag(), b.hess_diag(), rtol=1e-10, atol=1e-10)


# --- the diagonal


@settings(max_examples=60)
@given(problem=small_problems())
def test_the_diagonal_is_the_sum_of_the_variances_of_all_occurrences(problem):
    expected = diagonal_formula(problem)
    for kernels in KERNELS:
        for n_threads, cache_bytes in ((1, 0), (2, 1 << 30), (3, 1000)):
            loss = ChainLikelihood(problem.data, problem.field, n_threads, kernels, cache_bytes)
            found = loss.at(problem.w).hess_diag()
            assert (found >= 0).all()
            assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=kernels)


@every_kernel
@every_order
@pytest.mark.parametrize("masked", [False, True])
def test_the_diagonal_is_exact_for_what_occurs_once_in_a_sequence(kernels, order, masked):
    """Every position has an attribute of its own, and no sequence has two label pairs (in order 2: triples)."""
    L, T = 4, 2 * order + 3
    for seed in range(5):
        rng = np.random.default_rng(seed)
        starts, labels, values = [0, order + 1, order + 2, T], rng.integers(0, L, T), rng.normal(size=T)
        data = SequenceData(starts, np.arange(T + 1), np.arange(T), values, labels=labels, weights=[1.0, 2.0, 0.5])
        allowed = rng.random((L, L)) < 0.5
        allowed[labels[:-1], labels[1:]] = True
        options = {"order": order, "allowed": allowed if masked else None, "label_classes": [0, 1, 1, 0]}
        field = ChainField.from_data(data, L, T, all_states=True, all_transitions=True, **options)
        w, layout = rng.normal(size=field.size), field.layout
        exact = Exact(Problem(data, field, w)).hess_diag()
        found = ChainLikelihood(data, field, 2, kernels).at(w).hess_diag()
        for block in ("state", "transition" if order == 1 else "triple"):
            assert_allclose(found[layout[block]], exact[layout[block]], atol=1e-10)
        assert (found[layout["class"]] >= exact[layout["class"]] - 1e-10).all()


# --- the contract


def test_capabilities_and_layout():
    problem = make_problem(order=2, n_classes=2, n_pair_attributes=1)
    loss = ChainLikelihood(problem.data, problem.field)
    assert {"smooth", "hessp", "hess_diag", "online", "subset"} <= loss.capabilities
    assert list(loss.layout) == ["state", "transition", "pair", "triple", "class"]
    covered = np.concatenate([np.arange(loss.size)[block] for block in loss.layout.values()])
    assert covered.tolist() == list(range(loss.size))


@pytest.mark.parametrize("cache_bytes", [0, 1 << 30])
@every_order
def test_an_evaluation_stays_at_its_point(order, cache_bytes):
    """Whatever was asked of which evaluation before; the lattices kept may be those of another point."""
    problem = make_problem(3, 3, (4, 5), order=order, n_pair_attributes=1)
    (v,) = directions(problem, 1)

    def loss():
        return ChainLikelihood(problem.data, problem.field, 2, cache_bytes=cache_bytes)

    here, there = problem.w, -2 * problem.w
    expected = [(e.hessp(v), e.hess_diag(), e.grad, e.value) for e in (loss().at(here), loss().at(there))]
    shared = loss()
    a, b = shared.at(here), shared.at(there)
    a.hessp(v), b.grad, b.value  # what is left of these must not show below
    for _ in range(2):
        for evaluation, known in ((a, expected[0]), (b, expected[1])):
            found = evaluation.hessp(v), evaluation.hess_diag(), evaluation.grad, evaluation.value
            for x, y in zip(found, known, strict=True):
                assert_allclose(x, y, rtol=1e-12, atol=1e-12)


def test_results_belong_to_the_caller():
    problem = make_problem(3, 3, (4, 5))
    here, (v,) = ChainLikelihood(problem.data, problem.field, 1).at(problem.w), directions(problem, 1)
    before, product, diagonal = v.copy(), here.hessp(v), here.hess_diag()
    copies = product.copy(), diagonal.copy()
    product += 1.0
    diagonal += 1.0
    assert (here.hessp(v) == copies[0]).all()
    assert (here.hess_diag() == copies[1]).all()
    assert (v == before).all()


def test_a_direction_of_another_size_is_refused():
    problem = make_problem(3, 3, (4, 5))
    here, size = ChainLikelihood(problem.data, problem.field, 1).at(problem.w), problem.field.size
    with pytest.raises(ValueError, match=f"{size} weights, but {size + 1}"):
        here.hessp(np.zeros(size + 1))


# --- a sample


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("states", ["all", "observed"])
@every_order
def test_the_sample_has_every_kind_of_weight(order, states, seed):
    """Pair attributes, values, weights of sequences, constraints, either order: AᵀA is the Hessian on average."""
    problem = make_problem(seed, 3, (3, 1, 4), order=order, states=states, forbidden=0.2 if seed else None, **BIG)
    at = ChainLikelihood(problem.data, problem.field, 1).at(problem.w)
    hessian = np.array([at.hessp(e) for e in np.eye(problem.field.size)])
    samples = (at.hess_sample(len(problem.data), k).toarray() for k in range(2000))
    products = np.array([a.T @ a for a in samples])
    error = products.std(axis=0) / np.sqrt(len(products))  # six of them, and what is too rare for a standard error
    assert (np.abs(products.mean(axis=0) - hessian) <= 6 * error + 1e-2 * hessian.max()).all()
