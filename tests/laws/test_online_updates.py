"""Updates sequence by sequence, against naive twins that enumerate labellings and keep dense vectors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracle import (
    KERNELS,
    Exact,
    Problem,
    attributes_at,
    enumerate_labellings,
    hamming,
    indices,
    logsumexp,
    make_problem,
    pair_attributes_at,
    small_problems,
)

from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.chain.losses.online import SingleEpochs
from crfkit.errors import ParameterError
from crfkit.losses import ChainLikelihood, SoftmaxMargin, StructuredHinge

LOSSES = {"likelihood": ChainLikelihood, "softmax margin": SoftmaxMargin, "hinge": StructuredHinge}
every_kernel = pytest.mark.parametrize("kernels", KERNELS)
every_loss = pytest.mark.parametrize("kind", LOSSES)
any_problem = small_problems(scales=(1.0,))


class Twin:
    """The updates as the papers print them."""

    def __init__(self, problem: Problem, kind: str = "likelihood", cost=None) -> None:
        self.kind, self.n, self.size = kind, len(problem.data), problem.field.size
        self.labellings = [enumerate_labellings(problem, n) for n in range(self.n)]
        self.gold = [found.at(problem.labels(n)) for n, found in enumerate(self.labellings)]
        self.wrong = [found.cost(hamming(problem.field.n_labels), problem.labels(n)) for n, found in self._all()]
        cost = hamming(problem.field.n_labels) if cost is None else cost
        self.cost = [found.cost(cost, problem.labels(n)) for n, found in self._all()]
        self.weight = [problem.weight(n) for n in range(self.n)]
        self.touched = [touched(problem, n) for n in range(self.n)]

    def _all(self):
        return enumerate(self.labellings)

    def start(self, w) -> None:
        self.w, self.sum, self.n_done = w.copy(), np.zeros(self.size), 0
        self.u, self.q = 0.0, np.zeros(self.size)
        self.covariance, self.alpha = None, np.zeros(self.n)

    def weights(self) -> np.ndarray:
        return self.w.copy()

    def average(self) -> np.ndarray:
        return self.sum / self.n_done

    def _done(self) -> None:
        self.sum, self.n_done = self.sum + self.w, self.n_done + 1

    # --- stochastic gradients

    def _loss(self, n: int) -> tuple[float, np.ndarray]:
        features, gold = self.labellings[n].features, self.gold[n]
        raised = features @ self.w + (self.cost[n] if self.kind != "likelihood" else 0.0)
        if self.kind == "hinge":
            best = int(np.argmax(raised))
            return raised[best] - raised[gold], features[best] - features[gold]
        log_z = logsumexp(raised)
        return log_z - raised[gold], np.exp(raised - log_z) @ features - features[gold]

    def sgd(self, order, steps, l2=0.0, l1=0.0, averaged=False, shrink_first=False) -> float:
        total = 0.0
        for n, eta in zip(order, steps, strict=True):
            shrink = 1 - eta * l2 / self.n
            if shrink_first:
                self.w, shrink = shrink * self.w, 1.0
            value, gradient = self._loss(n)
            total += self.weight[n] * value
            self.w = shrink * self.w - eta * self.weight[n] * gradient
            if l1 > 0:
                self.u += eta * l1 / self.n
                self._shrink(self.touched[n])
            self._done()
        if l1 > 0:
            self._shrink(range(self.size))
        return total

    def _shrink(self, which) -> None:
        """The cumulative penalty: every weight owes u in all and has paid q."""
        for i in which:
            z = self.w[i]
            if z > 0:
                self.w[i] = max(0.0, z - (self.u + self.q[i]))
            elif z < 0:
                self.w[i] = min(0.0, z + (self.u - self.q[i]))
            self.q[i] += self.w[i] - z

    # --- mistakes

    def _mistake(self, n: int) -> tuple[int, float, np.ndarray] | None:
        """(wrong positions, score of the best labelling minus that of gold, f(gold) − f(best)), unless it is gold."""
        features, gold = self.labellings[n].features, self.gold[n]
        scores = features @ self.w
        best = int(np.argmax(scores))
        if best == gold:
            return None
        return int(self.wrong[n][best]), float(scores[best] - scores[gold]), features[gold] - features[best]

    def perceptron(self, order) -> tuple[int, int]:
        sequences = positions = 0
        for n in order:
            if mistake := self._mistake(n):
                wrong, _, difference = mistake
                sequences, positions = sequences + 1, positions + wrong
                self.w = self.w + self.weight[n] * difference
            self._done()
        return sequences, positions

    def passive_aggressive(self, order, kind: int, c: float, count_errors: bool = True) -> float:
        total = 0.0
        for n in order:
            if mistake := self._mistake(n):
                wrong, behind, difference = mistake
                loss, n2 = behind + (np.sqrt(wrong) if count_errors else 1.0), difference @ difference
                tau = [loss / n2, min(c, loss / n2), loss / (n2 + 1 / (2 * c))][kind]
                self.w = self.w + self.weight[n] * tau * difference
                total += self.weight[n] * loss
            self._done()
        return total

    def arow(self, order, variance: float, gamma: float) -> float:
        total = 0.0
        if self.covariance is None:
            self.covariance = np.full(self.size, variance)
        for n in order:
            if mistake := self._mistake(n):
                wrong, behind, difference = mistake
                loss = behind + wrong
                alpha = loss / (gamma + self.covariance @ difference**2)
                self.w = self.w + self.weight[n] * alpha * self.covariance * difference
                self.covariance = 1 / (1 / self.covariance + difference**2 / gamma)
                total += self.weight[n] * loss
            self._done()
        return total

    def mira(self, order, c: float, shortened: bool = False) -> float:
        total = 0.0
        for n in order:
            if mistake := self._mistake(n):
                wrong, behind, difference = mistake
                loss = max(wrong - behind, 0.0) if shortened else wrong + behind
                mu = min(loss / (difference @ difference), c * self.weight[n] - self.alpha[n])
                self.alpha[n] += mu
                self.w = self.w + mu * difference
                total += self.weight[n] * loss
            self._done()
        return total


def touched(problem: Problem, n: int) -> list[int]:
    """The weights that some labelling of the sequence could use."""
    index, (begin, end) = indices(problem.field), problem.span(n)
    parts = [index.transition] * (end - begin > 1) + [index.triple] * (end - begin > 2)
    for t in range(begin, end):
        parts += [rows[a] for a, _ in attributes_at(problem.data, t) for rows in (index.state, index.by_class)]
        parts += [index.pair[b] for b in pair_attributes_at(problem.data, t)]
    return sorted({int(i) for part in parts for i in part.ravel()} - {-1})


def epochs(problem: Problem, seed: int, n: int = 3) -> list[np.ndarray]:
    """Shuffled, some sequences twice; without those in which labellings share their features: ties may be broken in
    any way."""
    rng = np.random.default_rng(seed)
    scores = [np.sort(enumerate_labellings(problem, n).features @ problem.w) for n in range(len(problem.data))]
    usable = [n for n, ascending in enumerate(scores) if np.diff(ascending).min(initial=1.0) > 1e-9]
    return [rng.permutation(np.repeat(usable, rng.integers(1, 3, len(usable)))).astype(np.int64) for _ in range(n)]


def compare(problem: Problem, run, kind: str = "likelihood", averaged: bool = True, tolerance: float = 1e-10) -> None:
    """`run(updates)` yields what the epochs return; weights are compared after each of them, for all kernels."""
    twin = Twin(problem, kind)
    twin.start(problem.w)
    steps = [(returned, twin.weights(), twin.average() if averaged and twin.n_done else None) for returned in run(twin)]
    for kernels in KERNELS:
        online = LOSSES[kind](problem.data, problem.field, n_threads=1, kernels=kernels).online()
        online.start(problem.w)
        for (expected, w, average), found in zip(steps, run(online), strict=True):
            assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=kernels)
            size = tolerance * (1 + np.abs(w).max(initial=0.0))
            assert_allclose(online.weights(), w, rtol=0, atol=size, err_msg=kernels)
            if average is not None:
                assert_allclose(online.average(), average, rtol=0, atol=size, err_msg=kernels)


# --- stochastic gradients


@every_loss
@pytest.mark.parametrize("l2", [0.0, 2.0])
@settings(max_examples=5)
@given(problem=any_problem, seed=st.integers(0, 1000), averaged=st.booleans())
def test_gradient_steps(kind, l2, problem, seed, averaged):
    def run(updates):
        for epoch, order in enumerate(epochs(problem, seed)):
            yield updates.sgd(order, 0.1 / (1 + epoch + np.arange(len(order))), l2=l2, averaged=averaged)

    compare(problem, run, kind, averaged)


@pytest.mark.parametrize("kind", ["likelihood", "softmax margin"])
@pytest.mark.parametrize("l1", [0.01, 1.0, 30.0])
@settings(max_examples=5)
@given(problem=any_problem, seed=st.integers(0, 1000), averaged=st.booleans())
def test_gradient_steps_with_the_cumulative_penalty(kind, l1, problem, seed, averaged):
    """A weight that a sequence does not touch pays later: the average has it as it stands."""

    def run(updates):
        for order in epochs(problem, seed):
            yield updates.sgd(order, np.full(len(order), 0.1), l1=l1, averaged=averaged)

    compare(problem, run, kind, averaged)


@pytest.mark.parametrize("shrink_first", [False, True])
@pytest.mark.parametrize("averaged", [False, True])
def test_weights_that_shrink_fast(averaged, shrink_first):
    """To 1/5 at each step, by L2: whatever factor is kept apart soon has to be multiplied into the weights."""
    for seed in range(3):
        problem = make_problem(seed, 3, (4, 2, 5, 1), order=1 + seed % 2, values=True)

        def run(updates, problem=problem, seed=seed):
            for order in epochs(problem, seed, 6):
                steps = np.full(len(order), 0.1)
                yield updates.sgd(order, steps, l2=0.8 * 4 / 0.1, averaged=averaged, shrink_first=shrink_first)

        compare(problem, run, averaged=averaged)


def test_both_penalties_at_once():
    """The kernels keep weights, u and q in scaled variables: the same as long as the scale stays near 1."""
    for seed in range(5):
        problem = make_problem(seed, 3, (4, 2, 5, 1), order=1 + seed % 2, values=True)

        def run(updates, problem=problem, seed=seed):
            for order in epochs(problem, seed):
                yield updates.sgd(order, np.full(len(order), 0.1), l2=1e-6, l1=0.5, averaged=True)

        compare(problem, run, tolerance=1e-5)


@every_kernel
@pytest.mark.parametrize("kind", ["likelihood", "softmax margin"])
def test_a_strong_penalty_leaves_nothing(kernels, kind):
    problem = make_problem(1, 3, (4, 0, 5), order=2, n_pair_attributes=2, n_classes=2)
    online = LOSSES[kind](problem.data, problem.field, kernels=kernels).online()
    online.start(problem.w)
    online.sgd(np.arange(3), np.ones(3), l1=1e4)
    assert (online.weights() == 0).all()


@every_kernel
@every_loss
@given(problem=any_problem)
def test_steps_of_no_length_measure_the_loss(kernels, kind, problem):
    loss = LOSSES[kind](problem.data, problem.field, n_threads=1, kernels=kernels)
    online, n = loss.online(), len(problem.data)
    online.start(problem.w)
    assert_allclose(online.sgd(np.arange(n), np.zeros(n)), loss.at(problem.w).value, rtol=1e-10, atol=1e-10)
    assert (online.weights() == problem.w).all()


@every_kernel
@every_loss
def test_one_step_on_one_sequence_is_a_step_of_gradient_descent(kernels, kind):
    problem = make_problem(2, 9, (2000,), 30, order=2, forbidden=0.3, values=True, scale=0.3)
    loss = LOSSES[kind](problem.data, problem.field, n_threads=1, kernels=kernels)
    online = loss.online()
    online.start(problem.w)
    online.sgd(np.array([0]), np.array([0.01]), l2=3.0)
    expected = problem.w - 0.01 * (loss.at(problem.w).grad + 3.0 * problem.w)
    assert_allclose(online.weights(), expected, rtol=1e-10, atol=1e-10)


@every_kernel
@pytest.mark.parametrize("kind", ["likelihood", "softmax margin"])
@given(problem=any_problem, seed=st.integers(0, 9))
def test_steps_in_single_precision_follow_those_in_double(kernels, kind, problem, seed):
    rough, fine = (
        LOSSES[kind](problem.data, problem.field, kernels=kernels, precision=name).epochs()
        for name in ("single", "double")
    )
    assert isinstance(rough, SingleEpochs)
    assert not isinstance(fine, SingleEpochs)
    n = len(problem.data)
    order, steps = np.random.default_rng(seed).integers(0, n, 5), np.array([0.1, 0.3, 0.0, 0.2, 0.1])
    for online in (rough, fine):
        online.start(problem.w)
    for l2 in (0.0, 0.5, 3.3 * n):  # the last one shrinks weights to about a hundredth in every step
        values = [online.sgd(order, steps, l2, 0.0, False) for online in (rough, fine)]
        assert_allclose(*values, rtol=1e-4, atol=1e-4)
        assert_allclose(rough.weights(), fine.weights(), rtol=1e-4, atol=1e-4)


def test_what_steps_in_single_precision_refuse():
    problem = make_problem(2, 3, (4, 3))
    online = ChainLikelihood(problem.data, problem.field, precision="single").epochs()
    online.start(problem.w)
    with pytest.raises(ParameterError, match="neither an L1 penalty nor an average"):
        online.sgd([0], [0.1], 0.0, 1.0)
    with pytest.raises(ParameterError, match="step size is too large"):
        online.sgd([0], [3.0], 1.0)
    with pytest.raises(ParameterError, match="one step size per sequence"):
        online.sgd([0], [0.1, 0.1])
    with pytest.raises(IndexError, match="not there"):
        online.sgd([2], [0.1])


@every_kernel
def test_steps_approach_the_minimum(kernels):
    problem = make_problem(2, 3, (4, 3, 5, 2), values=True)
    loss = ChainLikelihood(problem.data, problem.field, n_threads=1, kernels=kernels)
    online = loss.online()
    online.start(problem.w)
    for epoch in range(400):
        online.sgd(np.arange(4), np.full(4, 0.5 / (1 + 0.1 * epoch)), l2=1.0)
    w = online.weights()
    gradient = Exact(Problem(problem.data, problem.field, w)).grad + w
    assert np.abs(gradient).max() < 0.05


# --- mistakes


@settings(max_examples=20)
@given(problem=any_problem, seed=st.integers(0, 1000))
def test_perceptron(problem, seed):
    def run(updates):
        for order in epochs(problem, seed):
            yield updates.perceptron(order)

    compare(problem, run)


@pytest.mark.parametrize("kind", [0, 1, 2])
@settings(max_examples=20)
@given(
    problem=any_problem,
    seed=st.integers(0, 1000),
    c=st.sampled_from([0.05, 1.0, 20.0]),
    count_errors=st.booleans(),
)
def test_passive_aggressive(kind, problem, seed, c, count_errors):
    def run(updates):
        for order in epochs(problem, seed):
            yield updates.passive_aggressive(order, kind, c, count_errors)

    compare(problem, run)


@settings(max_examples=20)
@given(problem=any_problem, seed=st.integers(0, 1000), constants=st.sampled_from([(0.1, 2.0), (1.0, 0.5), (1.0, 20.0)]))
def test_arow(problem, seed, constants):
    def run(updates):
        for order in epochs(problem, seed):
            yield updates.arow(order, *constants)

    compare(problem, run)


@settings(max_examples=20)
@given(problem=any_problem, seed=st.integers(0, 1000), c=st.sampled_from([0.05, 0.5, 100.0]), shortened=st.booleans())
def test_mira(problem, seed, c, shortened):
    def run(updates):
        for order in epochs(problem, seed):
            yield updates.mira(order, c, shortened)

    compare(problem, run)


@every_kernel
@pytest.mark.parametrize("order", [1, 2])
def test_passive_aggressive_steps_leave_the_margin_they_aim_at(kernels, order):
    """After an update of the first kind, the former best labelling lies √wrong behind the right one."""
    problem = make_problem(6, 4, (4,), order=order, values=True, scale=3.0)
    twin = Twin(problem)
    twin.start(problem.w)
    wrong, _, difference = twin._mistake(0)
    online = ChainLikelihood(problem.data, problem.field, kernels=kernels).online()
    online.start(problem.w)
    online.passive_aggressive(np.array([0]), 0, 1.0)
    assert_allclose(online.weights() @ difference, np.sqrt(wrong), rtol=1e-10)


@every_kernel
def test_the_perceptron_separates_what_can_be_separated(kernels):
    """Labels that the attributes determine."""
    rng = np.random.default_rng(0)
    attributes = rng.integers(0, 6, 60)
    data = SequenceData(np.arange(0, 61, 5), np.arange(61), attributes, labels=attributes // 2)
    field = ChainField.from_data(data, 3, 6, all_states=False, all_transitions=False)
    online = ChainLikelihood(data, field, kernels=kernels).online()
    online.start(np.zeros(field.size))
    counts = [online.perceptron(np.arange(12)) for _ in range(30)]
    assert counts[0] != (0, 0)
    assert counts[-1] == (0, 0)


# --- all of them

MISTAKES = {
    "perceptron": lambda online, order: online.perceptron(order),
    "passive-aggressive": lambda online, order: online.passive_aggressive(order, 0, 1.0),
    "arow": lambda online, order: online.arow(order, 1.0, 1.0),
    "mira": lambda online, order: online.mira(order, 1.0),
}
UPDATES = MISTAKES | {
    "sgd": lambda online, order: online.sgd(order, np.full(len(order), 0.1), l2=0.1, averaged=True),
    "sgd-l1": lambda online, order: online.sgd(order, np.full(len(order), 0.1), l1=0.1, averaged=True),
}
every_update = pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
every_mistake = pytest.mark.parametrize("update", MISTAKES.values(), ids=MISTAKES)


@every_update
def test_the_same_order_gives_the_same_bits(update):
    problem = make_problem(3, 4, (4, 0, 3, 5), order=2, values=True, weights=True)
    orders = epochs(problem, 1)
    results = []
    online = ChainLikelihood(problem.data, problem.field).online()
    for updates in (online, online, ChainLikelihood(problem.data, problem.field).online()):
        updates.start(problem.w)  # nothing of what happened before is left
        returned = [update(updates, order) for order in orders]
        results.append((returned, updates.weights().tolist(), updates.average().tolist()))
    assert results[0] == results[1] == results[2]


@every_mistake
def test_the_average_of_one_sequence_is_where_it_led(update):
    problem = make_problem(3, 4, (4, 3), values=True)
    online = ChainLikelihood(problem.data, problem.field).online()
    online.start(problem.w)
    update(online, np.array([1]))
    assert_allclose(online.average(), online.weights(), rtol=1e-12, atol=1e-14)


@every_update
def test_what_is_given_and_taken_is_copied(update):
    problem = make_problem(3, 4, (4, 3), values=True)
    online = ChainLikelihood(problem.data, problem.field).online()
    w = problem.w.copy()
    online.start(w)
    update(online, np.arange(2))
    before = online.weights()
    kept = before.copy()
    update(online, np.arange(2))
    assert (before == kept).all()
    assert (w == problem.w).all()


@every_mistake
@pytest.mark.parametrize("gold", [0, 1])
def test_a_mistake_that_no_weight_can_mend_changes_nothing(update, gold):
    """One position without attributes: all labellings have the same (no) features, and one of them is wrong."""
    data, field = SequenceData([0, 1], [0, 0], [], labels=[gold]), ChainField(2, 1, n_transition=4)
    online = ChainLikelihood(data, field).online()
    w = np.linspace(-1.0, 1.0, field.size)
    online.start(w)
    update(online, np.array([0]))
    assert online.weights().tolist() == w.tolist()


@every_update
def test_sequences_that_are_not_there_are_refused(update):
    problem = make_problem(3, 4, (4, 3))
    online = ChainLikelihood(problem.data, problem.field).online()
    online.start(problem.w)
    for bad in (-1, 2):
        with pytest.raises((ValueError, IndexError)):
            update(online, np.array([0, bad]))


def test_arrays_of_another_size_are_refused():
    problem = make_problem(3, 4, (4, 3))
    online = ChainLikelihood(problem.data, problem.field).online()
    with pytest.raises(ValueError, match=str(problem.field.size)):
        online.start(np.zeros(problem.field.size + 1))
    online.start(problem.w)
    with pytest.raises(ValueError, match="step"):
        online.sgd(np.arange(2), np.zeros(1))
