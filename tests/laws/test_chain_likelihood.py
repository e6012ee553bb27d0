"""The chain likelihood: value and gradient against enumeration, and laws that hold for any data."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracle import likelihood, make_problem, problems, select

from crfkit import _core
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.losses import ChainLikelihood
from crfkit.protocols import Loss

KERNELS = _core.available_kernels()
every_kernel = pytest.mark.parametrize("kernels", KERNELS)


def check(data, field, w, n_threads=(1,)) -> None:
    value, gradient = likelihood(data, field, w)
    for kernels in KERNELS:
        for threads in n_threads:
            found = ChainLikelihood(data, field, threads, kernels).at(w)
            assert_allclose(found.value, value, rtol=1e-10, atol=1e-10, err_msg=kernels)
            assert_allclose(found.grad, gradient, rtol=1e-10, atol=1e-10, err_msg=kernels)


# --- against the oracle


@settings(max_examples=100)
@given(problem=problems())
def test_value_and_gradient_equal_the_oracle(problem):
    check(problem.data, problem.field, problem.w, n_threads=(1, 2, 3))


@pytest.mark.parametrize("spread", [1.0, 60.0, 150.0, 250.0, 800.0])
@pytest.mark.parametrize("pairs", [0, 2])
def test_extreme_weights_equal_the_oracle(spread, pairs):
    for seed in range(4):
        problem = make_problem(seed, 3, (5, 2, 4), n_pair_attributes=pairs, weights=True, values=True)
        rng = np.random.default_rng(seed)
        check(problem.data, problem.field, spread * rng.uniform(-1, 1, problem.field.size))


@pytest.mark.parametrize("states", ["all", "observed", "subset"])
@pytest.mark.parametrize("n_labels", [1, 2, 7, 8, 9, 17, 33, 65])
def test_label_counts_around_vector_widths(n_labels, states):
    check(*vars(make_problem(n_labels, n_labels, (3, 2), states=states, n_pair_attributes=1)).values())


@pytest.mark.parametrize("n_labels", [1, 2, 3])
@pytest.mark.parametrize("transitions", [0, 1])
def test_fields_smaller_than_one_vector(n_labels, transitions):
    field = ChainField(n_labels, 1, n_transition=transitions * n_labels**2)
    data = SequenceData([0, 2], [0, 1, 2], [0, 0], labels=[0, n_labels - 1])
    check(data, field, np.linspace(-1.0, 2.0, field.size))


@pytest.mark.parametrize("all_states", [True, False])
def test_attributes_that_occur_once(all_states):
    """Trailing attributes with one occurrence are stored straight into the gradient, by whichever thread meets them."""
    often, n = 3, 40
    rng = np.random.default_rng(1)
    attributes = np.concatenate([[rng.integers(often), often + t] for t in range(n)])
    for values in (None, rng.normal(size=2 * n)):
        data = SequenceData(
            np.arange(0, n + 1, 4), np.arange(0, 2 * n + 1, 2), attributes, values, labels=rng.integers(0, 3, n)
        )
        field = ChainField.from_data(data, 3, often + n, all_states=all_states, all_transitions=True)
        check(data, field, rng.normal(size=field.size), n_threads=(1, 2, 3))


@pytest.mark.parametrize("all_states", [True, False])
@pytest.mark.parametrize("last", [[2], [2, 2], [1], []])
def test_the_last_attribute_occurs_once_twice_or_never(last, all_states):
    data = SequenceData([0, 1, 2], [0, 2, 2 + len(last)], [0, 1, *last], labels=[0, 1])
    field = ChainField.from_data(data, 2, 3, all_states=all_states, all_transitions=True)
    w = np.random.default_rng(0).normal(size=field.size)
    check(data, field, w, n_threads=(1, 2))
    stale = ChainLikelihood(data, field, 1)
    first = stale.at(w).grad
    stale.at(5 * w).grad  # noqa: B018 - computed on purpose: nothing of it may be left in the next
    assert (stale.at(w).grad == first).all()


@pytest.mark.parametrize("all_states", [True, False])
def test_an_attribute_given_twice_counts_twice(all_states):
    twice = SequenceData([0, 2], [0, 3, 4], [0, 1, 1, 1], labels=[0, 1])
    double = SequenceData([0, 2], [0, 2, 3], [0, 1, 1], values=[1.0, 2.0, 1.0], labels=[0, 1])
    field = ChainField.from_data(twice, 2, 2, all_states=all_states, all_transitions=True)
    w = np.random.default_rng(2).normal(size=field.size)
    check(twice, field, w)
    a, b = ChainLikelihood(twice, field, 1).at(w), ChainLikelihood(double, field, 1).at(w)
    assert_allclose(a.value, b.value, rtol=1e-13)
    assert_allclose(a.grad, b.grad, rtol=1e-13, atol=1e-15)


def companions(n_labels: int, seed: int, crowd: int = 0, twice: bool = False) -> SequenceData:
    """Attributes that come in company: 3·k, 3·k + 1 and 3·k + 2 always together, now and then with a crowd."""
    rng = np.random.default_rng(seed)
    n, n_groups = 60, 4
    rows = []
    for t in range(n):
        k = 3 * rng.integers(n_groups)
        row = [k, k + 1, k + 2] + [k + 1] * (twice and rng.random() < 0.3) + [3 * n_groups + rng.integers(3)]
        if crowd and t % 7 == 0:
            row += list(range(3 * n_groups + 3, 3 * n_groups + 3 + crowd))
        rows.append(np.sort(row))
    offsets = np.cumsum([0, *map(len, rows)])
    labels = rng.integers(0, n_labels, n)
    return SequenceData(np.arange(0, n + 1, 5), offsets, np.concatenate(rows), labels=labels)


@pytest.mark.parametrize("n_labels", [2, 5, 9, 20])
@pytest.mark.parametrize(("crowd", "twice"), [(0, False), (0, True), (3, True), (70, False)])
def test_attributes_that_occur_together(n_labels, crowd, twice):
    """The engine may score them as one; nobody must be able to tell."""
    data = companions(n_labels, seed=n_labels, crowd=crowd, twice=twice)
    n_attributes = int(data.attributes.max()) + 1
    rng = np.random.default_rng(n_labels)
    for all_states in (False, True):
        field = ChainField.from_data(data, n_labels, n_attributes, all_states=all_states, all_transitions=False)
        check(data, field, rng.normal(size=field.size), n_threads=(1, 2))


@pytest.mark.parametrize("n_labels", [2, 9])
def test_the_field_of_other_data(n_labels):
    """On held-out data an attribute that is common in training may occur once or never."""
    train = companions(n_labels, seed=1)
    n_attributes = int(train.attributes.max()) + 1
    field = ChainField.from_data(train, n_labels, n_attributes, all_states=False, all_transitions=False)
    w = np.random.default_rng(1).normal(size=field.size)
    for attributes in ([], [0], [n_attributes - 1], [0, 0], [0, 1, 2], [3, n_attributes - 2, n_attributes - 1]):
        n = len(attributes)
        check(SequenceData([0, 2], [0, n, n], attributes, labels=[0, 1]), field, w)
    check(select(train, [0, 3, 3]), field, w)
    everything = SequenceData([0, 1], [0, n_attributes], np.arange(n_attributes), labels=[1])
    check(everything, field, w, n_threads=(1, 2))


def test_pair_attributes_at_a_sequence_start_have_no_effect():
    pairs = {"pair_offsets": [0, 1, 2, 3, 4], "pair_attributes": [0, 0, 0, 0]}
    data = SequenceData([0, 2, 4], [0] * 5, [], labels=[0, 1, 1, 0], **pairs)
    without = replace(data, pair_offsets=[0, 0, 1, 1, 2], pair_attributes=[0, 0])
    field = ChainField.from_data(without, 2, 0, 1, all_states=True, all_transitions=True)
    w = np.array([0.3, -0.2, 0.5, 1.0, 0.1, 0.2, 0.3, 0.4])
    a, b = ChainLikelihood(data, field, 1).at(w), ChainLikelihood(without, field, 1).at(w)
    assert a.value == b.value
    assert (a.grad == b.grad).all()


@pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")
def test_kernels_stay_inside_the_weight_and_gradient_vectors():
    script = Path(__file__).parent.parent / "guarded.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr}"


# --- laws


@settings(max_examples=25)
@given(problem=problems(scales=(0.5,)), seed=st.integers(0, 1000))
def test_gradient_is_the_derivative_of_the_value(problem, seed):
    loss, w = ChainLikelihood(problem.data, problem.field, 1), problem.w
    gradient = loss.at(w).grad
    direction = np.random.default_rng(seed).normal(size=len(w))
    direction /= max(np.linalg.norm(direction), 1.0)
    h = 1e-4
    f = [loss.at(w + k * h * direction).value for k in (-2, -1, 1, 2)]
    slope = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h)
    assert_allclose(slope, gradient @ direction, rtol=1e-6, atol=1e-7)


def test_every_partial_derivative():
    problem = make_problem(4, 3, (4, 3), n_pair_attributes=1, values=True, weights=False)
    loss, w, h = ChainLikelihood(problem.data, problem.field, 2), problem.w, 1e-5
    slopes = [(loss.at(w + e).value - loss.at(w - e).value) / (2 * h) for e in h * np.eye(len(w))]
    assert_allclose(loss.at(w).grad, slopes, rtol=1e-6, atol=1e-8)


@every_kernel
@pytest.mark.parametrize("states", ["all", "observed"])
def test_threads_agree_and_repetition_gives_the_same_bits(kernels, states):
    problem = make_problem(7, 9, tuple(range(12)) * 4, 40, 3, values=True, weights=True, states=states)
    one = ChainLikelihood(problem.data, problem.field, 1, kernels).at(problem.w)
    size = np.abs(one.grad).max()
    for n_threads in (1, 2, 3, 7, 100):
        loss = ChainLikelihood(problem.data, problem.field, n_threads, kernels)
        first, again = loss.at(problem.w), loss.at(problem.w.copy())
        fresh = ChainLikelihood(problem.data, problem.field, n_threads, kernels).at(problem.w)
        for other in (again, fresh):
            assert other.value == first.value
            assert (other.grad == first.grad).all()
        assert_allclose(first.value, one.value, rtol=1e-12)
        assert_allclose(first.grad, one.grad, rtol=1e-12, atol=1e-12 * size)


def test_kernels_agree():
    problem = make_problem(8, 17, (6, 30, 2), 20, 2, values=True)
    a, *others = (ChainLikelihood(problem.data, problem.field, 1, kernels).at(problem.w) for kernels in KERNELS)
    for b in others:
        assert_allclose(b.value, a.value, rtol=1e-12)
        assert_allclose(b.grad, a.grad, rtol=1e-10, atol=1e-12)


@given(problem=problems(), seed=st.integers(0, 1000))
def test_weights_of_sequences_are_repetitions(problem, seed):
    counts = np.random.default_rng(seed).integers(0, 4, len(problem.data))
    weighted = replace(problem.data, weights=counts.astype(float))
    repeated = select(replace(problem.data, weights=None), np.repeat(np.arange(len(counts)), counts))
    a = ChainLikelihood(weighted, problem.field, 2).at(problem.w)
    b = ChainLikelihood(repeated, problem.field, 2).at(problem.w)
    assert_allclose(a.value, b.value, rtol=1e-11, atol=1e-11)
    assert_allclose(a.grad, b.grad, rtol=1e-11, atol=1e-11)


@given(problem=problems(), seed=st.integers(0, 1000))
def test_order_of_sequences_does_not_matter(problem, seed):
    order = np.random.default_rng(seed).permutation(len(problem.data))
    a = ChainLikelihood(problem.data, problem.field, 2).at(problem.w)
    b = ChainLikelihood(select(problem.data, order), problem.field, 2).at(problem.w)
    assert_allclose(a.value, b.value, rtol=1e-11, atol=1e-11)
    assert_allclose(a.grad, b.grad, rtol=1e-11, atol=1e-11)


@given(problem=problems(), seed=st.integers(0, 1000))
def test_convex_along_every_line(problem, seed):
    loss, a = ChainLikelihood(problem.data, problem.field, 1), problem.w
    b = a + np.random.default_rng(seed).normal(size=len(a))
    left, right, middle = loss.at(a), loss.at(b), loss.at((a + b) / 2)
    slack = 1e-9 * (1 + abs(left.value) + abs(right.value))
    assert middle.value <= (left.value + right.value) / 2 + slack
    assert (right.grad - left.grad) @ (b - a) >= -slack
    assert right.value >= left.value + left.grad @ (b - a) - slack


@given(problem=problems())
def test_the_value_is_a_negative_log_probability(problem):
    assert ChainLikelihood(problem.data, problem.field, 1).at(problem.w).value >= -1e-9


def test_adding_the_same_to_all_labels_changes_nothing():
    problem = make_problem(9, 4, (5, 4), transitions="none")
    loss = ChainLikelihood(problem.data, problem.field, 1)
    shift = np.repeat(np.random.default_rng(0).normal(size=problem.field.n_attributes), 4)
    assert_allclose(loss.at(problem.w + shift).value, loss.at(problem.w).value, rtol=1e-12)
    assert_allclose(loss.at(problem.w).grad.reshape(-1, 4).sum(axis=1), 0.0, atol=1e-12)


# --- the contract


def test_keeps_the_contract_of_a_loss():
    problem = make_problem(n_pair_attributes=1)
    loss = ChainLikelihood(problem.data, problem.field)
    assert isinstance(loss, Loss)
    assert "smooth" in loss.capabilities
    assert loss.size == problem.field.size
    covered = np.concatenate([np.arange(loss.size)[block] for block in loss.layout.values()])
    assert covered.tolist() == list(range(loss.size))
    evaluation = loss.at(problem.w)
    assert evaluation.grad is evaluation.grad


def test_not_a_number_shows():
    problem = make_problem(n_labels=3, lengths=(3, 2))
    for bad in (np.nan, np.inf):
        w = problem.w.copy()
        w[problem.data.attributes[0] * 3] = bad
        assert not np.isfinite(ChainLikelihood(problem.data, problem.field, 1).at(w).value)


def test_labels_are_needed_and_must_fit():
    data, field = SequenceData([0, 1], [0, 1], [0]), ChainField(2, 1)
    with pytest.raises(ValueError, match="no labels"):
        ChainLikelihood(data, field)
    for bad in (-1, 2):
        with pytest.raises(ValueError, match=f"label id {bad} at position 0"):
            ChainLikelihood(data.with_labels([bad]), field)
    loss = ChainLikelihood(data.with_labels([0]), field)
    with pytest.raises(ValueError, match="has 2 weights, but 3"):
        loss.at(np.zeros(3)).value  # noqa: B018


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_evaluation_can_be_interrupted(n_threads):
    class Stop(BaseException):
        pass

    def handler(*_):
        raise Stop

    problem = make_problem(0, 60, (100,), per_position=1)
    many = select(problem.data, [0] * 1500)
    loss = ChainLikelihood(many, problem.field, n_threads)
    before = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(Stop):  # noqa: PT012 - the timer may end at once on a busy machine
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            loss.at(problem.w).value  # noqa: B018 - takes several times as long as the timer
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    small = ChainLikelihood(problem.data, problem.field, 1).at(problem.w)
    assert_allclose(loss.at(problem.w).value, 1500 * small.value, rtol=1e-9)


def test_small_data_have_one_thread_unless_told_otherwise(monkeypatch):
    monkeypatch.setattr("crfkit.chain.losses.likelihood.count_threads", lambda n: n or 4)
    small = ChainLikelihood.example()
    data, field = small.data, small.field
    assert ChainLikelihood(data, field).used_threads == 1
    assert ChainLikelihood(data, field, n_threads=3).used_threads == 3
    monkeypatch.setattr("crfkit.chain.losses.likelihood.SMALL", data.n_positions * field.n_labels)
    assert ChainLikelihood(data, field).used_threads == 4
