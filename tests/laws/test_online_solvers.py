"""Solvers that go sequence by sequence, one suite over the registry: optima, orders, going on later, refusals."""

import math
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from functions import quadratic
from numpy.testing import assert_allclose
from oracle import make_problem

from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.chain.inference import ChainInference
from crfkit.chain.losses.online import OnlineChain
from crfkit.errors import CapabilityError, CrfkitError, ParameterError, StopTraining
from crfkit.files.checkpoint import Checkpoint
from crfkit.losses import ChainLikelihood, SoftmaxMargin, StructuredHinge
from crfkit.penalties import L1, L2, ElasticNet, NoPenalty
from crfkit.protocols import Loss, SmoothPenalty
from crfkit.result import Status
from crfkit.solvers import (
    AROW,
    LBFGS,
    MIRA,
    SGD,
    SMD,
    SOLVERS,
    AnyOf,
    AveragedPerceptron,
    GradientNorm,
    PassiveAggressive,
    PeriodDecrease,
    make_solver,
)

NEVER = GradientNorm(0.0)
MISTAKE_DRIVEN = {
    "averaged-perceptron": {},
    "passive-aggressive": {},
    "passive-aggressive, kind 0": {"kind": 0},
    "passive-aggressive, kind 2": {"kind": 2},
    "arow": {},
    "mira": {},
}
GRADIENTS = {"sgd": {}, "asgd": {}}
ONLINE = MISTAKE_DRIVEN | GRADIENTS
EVERY = ONLINE | {"smd": {"batch": 8}, "rda": {"batch": 8}}
every_solver = pytest.mark.parametrize("name", EVERY)
online_solver = pytest.mark.parametrize("name", ONLINE)
mistake_driven = pytest.mark.parametrize("name", MISTAKE_DRIVEN)


def test_no_online_solver_is_left_out():
    names = {name.partition(",")[0] for name in EVERY}
    assert names == {name for name, solver in SOLVERS.items() if solver.needs & {"online", "subset"}}


def make(name, **options):
    return make_solver(name.partition(",")[0], **EVERY[name] | options)


def penalty_for(name):
    return NoPenalty() if name in MISTAKE_DRIVEN else L2(1.0)


@cache
def noisy(**options):
    """Sequences that no weights label without a mistake."""
    lengths = tuple(np.random.default_rng(0).integers(1, 6, 30).tolist())
    return make_problem(2, 3, lengths, 8, values=True, **options)


@cache
def separable():
    """Labels that the attributes determine."""
    attributes = np.random.default_rng(0).integers(0, 6, 60)
    data = SequenceData(np.arange(0, 61, 5), np.arange(61), attributes, labels=attributes // 2)
    return data, ChainField.from_data(data, 3, 6, all_states=True, all_transitions=True)


def likelihood(weights=None, **options):
    problem = noisy(**options)
    return ChainLikelihood(problem.data.with_weights(weights), problem.field, 1)


def solve(name, loss=None, penalty=None, w0=None, callbacks=(), resume=None, **options):
    loss = likelihood() if loss is None else loss
    penalty = penalty_for(name) if penalty is None else penalty
    options = {"stopping": NEVER, "max_iterations": 6} | options
    return make(name, **options).minimize(loss, penalty, np.zeros(loss.size) if w0 is None else w0, callbacks, resume)


def smooth_optimum(loss, penalty):
    found = LBFGS(stopping=GradientNorm(1e-8)).minimize(loss, penalty, np.zeros(loss.size))
    assert found.status is Status.CONVERGED
    return found


def sparse_optimum(loss, penalty, iterations=3000):
    """Accelerated proximal gradients (Beck & Teboulle 2009): slow, and nothing of crfkit's solvers."""
    smooth, rest = penalty.split()
    l2 = smooth.strength if smooth is not None else 0.0
    w = z = np.zeros(loss.size)
    t, step = 1.0, 1 / 150
    for _ in range(iterations):
        new = rest.prox(z - step * (loss.at(z).grad + l2 * z), step)
        grown = (1 + math.sqrt(1 + 4 * t * t)) / 2
        w, z, t = new, new + (t - 1) / grown * (new - w), grown
    least = rest.min_norm_subgradient(w, loss.at(w).grad + l2 * w)
    assert np.linalg.norm(least) < 1e-6
    return w, loss.at(w).value + penalty.value(w)


def mistakes(loss, w):
    best, _ = ChainInference(loss.field, w, 1).decode(loss.data)
    return int((best != loss.data.labels).sum())


# --- optima


@pytest.mark.parametrize(("name", "share"), [("sgd", 1e-3), ("asgd", 1e-3), ("smd", 1e-2), ("rda", 1e-2)])
@pytest.mark.parametrize("kind", [ChainLikelihood, SoftmaxMargin])
@pytest.mark.parametrize("strength", [0.3, 5.0])
def test_the_optimum_under_l2(name, share, kind, strength):
    loss = kind(noisy().data, noisy().field, n_threads=1)
    best = smooth_optimum(loss, L2(strength))
    found = solve(name, loss, L2(strength), max_iterations=60)
    assert best.value <= found.value <= best.value * (1 + share)
    assert_allclose(found.value, loss.at(found.w).value + L2(strength).value(found.w), rtol=1e-12)
    assert found.optimality == pytest.approx(np.linalg.norm(loss.at(found.w).grad + strength * found.w))


@pytest.mark.parametrize(("name", "share"), [("sgd", 1e-3), ("asgd", 1e-3), ("smd", 1e-2), ("rda", 2e-2)])
@pytest.mark.parametrize(
    "options", [{"order": 2}, {"forbidden": 0.5}, {"n_classes": 2}, {"n_pair_attributes": 3}], ids=str
)
def test_the_optimum_in_every_kind_of_field(name, share, options):
    loss = likelihood(**options)
    best = smooth_optimum(loss, L2(1.0))
    assert best.value <= solve(name, loss, max_iterations=120).value <= best.value * (1 + share)


@pytest.mark.parametrize("penalty", [L1(0.5), L1(2.0), ElasticNet(1.0, 0.5)], ids=lambda penalty: penalty.name)
def test_sparse_optima(penalty):
    loss = likelihood()
    w, value = sparse_optimum(loss, penalty)
    found = solve("sgd", loss, penalty, max_iterations=100)
    assert value - 1e-9 <= found.value <= value * 1.01
    assert_allclose(found.value, loss.at(found.w).value + penalty.value(found.w), rtol=1e-12)
    zeros = int((w == 0).sum())
    assert zeros > 3
    assert (found.w == 0).sum() >= zeros / 2
    assert found.trace[-1].nonzeros == int((found.w != 0).sum())
    mean = solve("asgd", loss, penalty, max_iterations=100)  # of iterates whose zeros differ
    assert value - 1e-9 <= mean.value <= value * 1.01


@pytest.mark.parametrize("penalty", [L1(1.0), ElasticNet(1.0, 0.5)], ids=lambda penalty: penalty.name)
def test_owl_qn_agrees_about_sparse_optima(penalty):
    loss = likelihood()
    found = make_solver("owlqn", stopping=GradientNorm(1e-7)).minimize(loss, penalty, np.zeros(loss.size))
    w, value = sparse_optimum(loss, penalty)
    assert_allclose(found.value, value, rtol=1e-8)
    assert ((found.w != 0) == (w != 0)).all()


@pytest.mark.parametrize("name", ["sgd", "asgd", "smd"])
def test_with_its_own_stopping_rule_it_converges_near_the_optimum(name):
    loss = likelihood()
    found = make_solver(name).minimize(loss, L2(1.0), np.zeros(loss.size))
    assert found.status is Status.CONVERGED
    assert found.value <= smooth_optimum(loss, L2(1.0)).value * 1.01


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("cost", [None, np.array([[0, 1, 5], [2, 0, 2], [1, 1, 0]])], ids=["mistakes", "matrix"])
def test_the_hinge_falls_and_separates(name, cost):
    loss = StructuredHinge(*separable(), cost)
    found = solve(name, loss, L2(0.01), max_iterations=30)
    assert found.value < 0.05 * found.trace[0].value
    assert mistakes(loss, found.w) == 0
    # a margin: every wrong labelling lies behind by its cost, nearly
    assert loss.at(found.w).value < 0.1


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("kind", [ChainLikelihood, SoftmaxMargin, StructuredHinge])
def test_the_step_size_that_is_chosen_is_a_good_one(name, kind):
    loss = kind(noisy().data, noisy().field, n_threads=1)
    chosen, fixed = (solve(name, loss, L2(1.0), step_size=eta, max_iterations=30).value for eta in (None, 0.03))
    assert chosen < 1.01 * fixed


# --- mistakes


@mistake_driven
def test_no_mistakes_on_separable_data_and_then_the_end(name):
    loss = ChainLikelihood(*separable(), 1)
    found = make(name).minimize(loss, NoPenalty(), np.zeros(loss.size))
    assert found.value == found.trace[-1].value == 0
    assert found.optimality == 0
    assert mistakes(loss, found.w) == 0
    assert found.status is Status.CONVERGED
    assert found.iterations < 30


@mistake_driven
def test_an_epoch_without_mistakes_satisfies_any_tolerance(name):
    loss = ChainLikelihood(*separable(), 1)
    found = solve(name, loss, stopping=AnyOf((PeriodDecrease(0.0), NEVER)), max_iterations=30)
    assert found.status is Status.CONVERGED
    assert [row.value == 0 for row in found.trace] == [False] * found.iterations + [True]


@mistake_driven
def test_the_start_is_measured(name):
    """Row 0 counts the mistakes of w0; weights that make none are kept, bit by bit."""
    loss = likelihood()
    w0 = np.random.default_rng(1).normal(size=loss.size)
    assert solve(name, loss, w0=w0, max_iterations=0).value == mistakes(loss, w0)
    right = solve(name, ChainLikelihood(*separable(), 1), max_iterations=30).w
    again = solve(name, ChainLikelihood(*separable(), 1), w0=right, max_iterations=3)
    assert again.iterations == 0
    assert (again.w == right).all()


@mistake_driven
def test_mistakes_are_named_and_counted(name):
    found = solve(name)
    assert found.objective == f"mistakes of {name.partition(',')[0]}"
    positions, sequences = noisy().data.n_positions, len(noisy().data)
    for row in found.trace:
        assert row.value == int(row.value) <= positions
        assert_allclose(row.optimality * sequences, round(row.optimality * sequences), atol=1e-9)
        assert row.optimality * sequences <= row.value


@mistake_driven
def test_mistakes_become_fewer(name):
    found = solve(name, max_iterations=20)
    assert mistakes(likelihood(), found.w) < 0.9 * mistakes(likelihood(), np.zeros(likelihood().size))


@pytest.mark.parametrize("make_learner", [AveragedPerceptron, PassiveAggressive, MIRA])
def test_the_average_is_a_choice(make_learner):
    loss, w0 = likelihood(), np.zeros(likelihood().size)
    mean, last = (
        make_learner(averaged=averaged, stopping=NEVER, max_iterations=3).minimize(loss, NoPenalty(), w0)
        for averaged in (True, False)
    )
    assert (last.w == last.state["w"]).all()
    assert (mean.state["w"] == last.w).all()
    assert (mean.w != last.w).any()


# --- orders and seeds


@every_solver
def test_a_seed_decides_the_bits(name):
    a, b, other = (solve(name, seed=seed, max_iterations=4) for seed in (3, 3, 4))
    assert (a.w == b.w).all()
    assert [row.value for row in a.trace] == [row.value for row in b.trace]
    assert (a.w != other.w).any()


@every_solver
def test_epochs_differ_in_their_order(name, monkeypatch):
    import crfkit.solvers.parts.online

    module = __import__(make(name).__module__, fromlist=["shuffled"])
    module = module if hasattr(module, "shuffled") else crfkit.solvers.parts.online
    orders, shuffled, by_loss = [], module.shuffled, Loss.order

    def watched(seed, epoch, n):
        orders.append(shuffled(seed, epoch, n).tolist())
        return orders[-1]

    def watched_loss(loss, n, seed, epoch):
        orders.append(by_loss(loss, n, seed, epoch).tolist())
        return orders[-1]

    monkeypatch.setattr(module, "shuffled", watched)
    monkeypatch.setattr(Loss, "order", watched_loss)
    options = {"step_size": 0.1} if name in GRADIENTS else {"gamma": 10.0} if name == "rda" else {}
    solve(name, max_iterations=3, **options)
    assert len(orders) >= 3
    assert all(sorted(order) == list(range(len(order))) for order in orders)
    assert all(a != b for a, b in pairwise(orders))


def test_threads_do_not_change_the_bits():
    for name in ONLINE:
        one, two = (solve(name, ChainLikelihood(noisy().data, noisy().field, n)) for n in (1, 2))
        assert_allclose(one.w, two.w, rtol=1e-9)


# --- bookkeeping


class Watched:
    """A loss that counts how often it is evaluated and opened."""

    def __init__(self, loss):
        self.inner, self.calls, self.opened = loss, 0, 0

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def at(self, w, warm=None):
        self.calls += 1
        return self.inner.at(w, warm)

    def online(self):
        self.opened += 1
        return self.inner.online()

    def subset(self, ids):
        self.opened += 1
        return self.inner.subset(ids)


@every_solver
@pytest.mark.parametrize("epochs", [0, 3])
def test_reported_evaluations_are_the_calls_made(name, epochs):
    loss = Watched(likelihood())
    found = solve(name, loss, max_iterations=epochs)
    assert found.evaluations == found.trace[-1].evaluations == loss.calls
    assert loss.calls == (0 if name in MISTAKE_DRIVEN else epochs + 1)
    assert [row.iteration for row in found.trace] == list(range(epochs + 1))
    batches = -(-len(noisy().data) // 8)
    assert found.products == (batches * epochs if name == "smd" else 0)


@every_solver
def test_the_start_is_not_changed(name):
    w0 = np.ones(likelihood().size)
    seen = []
    found = solve(name, w0=w0, callbacks=[lambda iteration: seen.append((iteration.w, iteration.w.copy()))])
    assert (w0 == 1).all()
    # nor are the iterates that callbacks saw
    assert all((now == then).all() for now, then in seen)
    assert (found.w == seen[-1][1]).all()


@every_solver
def test_a_weight_of_two_is_a_sequence_twice(name):
    """Of the objective, for those that minimise one; a weight of zero is a sequence that is not there."""
    counts = np.arange(30) % 3
    weighted = likelihood(counts)
    repeated = ChainLikelihood(noisy().data.take(np.repeat(np.arange(30), counts)), noisy().field, 1)
    w = np.random.default_rng(0).normal(size=weighted.size)
    assert_allclose(weighted.at(w).value, repeated.at(w).value, rtol=1e-12)
    if name in MISTAKE_DRIVEN:
        left_out = solve(name, likelihood(np.where(counts == 0, 0.0, 1.0)), seed=1)
        whole = solve(name, likelihood(), seed=1)
        assert (left_out.w != whole.w).any()
        return
    best = smooth_optimum(repeated, L2(1.0))
    assert best.value * (1 - 1e-12) <= solve(name, weighted, max_iterations=80).value <= best.value * 1.01


# --- going on later


@every_solver
@pytest.mark.parametrize("penalty", [None, L1(0.5), ElasticNet(0.5, 0.5)], ids=["default", "L1", "both"])
def test_a_run_in_two_parts_gives_the_same_bits(name, penalty, tmp_path):
    if penalty is not None and name != "sgd":
        return
    part, whole = (solve(name, penalty=penalty, max_iterations=k) for k in (3, 6))
    Checkpoint.of(part).save(tmp_path / "c")
    loaded = Checkpoint.load(tmp_path / "c")
    assert loaded.state.keys() == part.state.keys()
    for w0, state in ((part.w, part.state), (loaded.w, loaded.state), (part.w, part.state)):
        rest = solve(name, penalty=penalty, w0=w0, resume=state, max_iterations=3)
        assert (rest.w == whole.w).all()
        assert [row.value for row in part.trace + rest.trace[1:]][:3] == [row.value for row in whole.trace][:3]
        assert [row.value for row in rest.trace[1:]] == [row.value for row in whole.trace[4:]]
        assert rest.state.keys() == whole.state.keys()
        for key, value in whole.state.items():
            assert np.array_equal(rest.state[key], value), key


@every_solver
def test_a_state_of_another_solver_is_refused(name):
    part = solve(name)
    with pytest.raises(ParameterError, match="saved state is of the solver 'other'"):
        solve(name, resume={**part.state, "solver": "other"})


@every_solver
def test_a_state_of_other_data_is_refused(name):
    part = solve(name)
    loss = ChainLikelihood(*separable(), 1)
    with pytest.raises(ParameterError, match=r"size|weights|sequences|saved"):
        solve(name, loss, resume=part.state)


@every_solver
@pytest.mark.parametrize("signal", [KeyboardInterrupt, StopTraining])
@pytest.mark.parametrize("k", [0, 2])
def test_a_callback_ends_training_at_its_iterate(name, signal, k):
    def callback(iteration):
        if iteration.row.iteration == k:
            raise signal

    found = solve(name, callbacks=[callback])
    assert found.status is (Status.STOPPED_BY_CALLBACK if signal is StopTraining else Status.INTERRUPTED)
    assert found.iterations == k
    short, whole = solve(name, max_iterations=k), solve(name)
    assert (found.w == short.w).all()
    assert found.value == short.value
    left = 6 - k if signal is StopTraining else 6  # the limit counts the whole run if it was cut off
    rest = solve(name, w0=found.w, resume=found.state, max_iterations=left)
    assert (rest.w == whole.w).all()


@online_solver
def test_interrupted_inside_an_epoch_the_last_whole_iterate_is_kept(name, monkeypatch):
    """And the state goes with it: nothing of the epoch that was broken off is in either."""
    options = {"step_size": 0.1} if name in GRADIENTS else {}
    averaged = make(name).averaged
    calls, inner = [], getattr(OnlineChain, "average" if averaged else "weights")

    def interrupted(self):
        calls.append(None)
        if len(calls) == 3:  # the third epoch's updates are made
            raise KeyboardInterrupt
        return inner(self)

    with monkeypatch.context() as patch:
        patch.setattr(OnlineChain, "average" if averaged else "weights", interrupted)
        found = solve(name, **options)
    assert found.status is Status.INTERRUPTED
    two = solve(name, max_iterations=2, **options)
    assert found.iterations == 2
    assert (found.w == two.w).all()
    assert found.value == two.value
    rest = solve(name, w0=found.w, resume=found.state, **options)  # the limit counts the whole run, which was cut off
    assert (rest.w == solve(name, **options).w).all(), "the state is not that of the iterate"


def test_smd_interrupted_inside_an_epoch():
    loss = Watched(likelihood())

    def at(w, warm=None):
        loss.calls += 1
        if loss.calls == 4:
            raise KeyboardInterrupt
        return loss.inner.at(w)

    loss.at = at
    found = solve("smd", loss)
    assert found.status is Status.INTERRUPTED
    assert (found.w == solve("smd", max_iterations=2).w).all()
    rest = solve("smd", w0=found.w, resume=found.state)
    assert (rest.w == solve("smd").w).all()


# --- combinations that cannot work


class Rounded(SmoothPenalty):
    """A smooth penalty that is not L2."""

    name = "rounded"
    kinds = frozenset({"rounded"})
    strength = 1.0

    def value(self, w):
        return float(np.sqrt(1 + w * w).sum())

    def add_gradient(self, w, gradient):
        gradient += w / np.sqrt(1 + w * w)

    def add_hessp(self, w, v, product):
        product += v * (1 + w * w) ** -1.5

    def add_hess_diag(self, w, diagonal):
        diagonal += (1 + w * w) ** -1.5


def refusal(name, penalty):
    """The message, after nothing was done."""
    loss = Watched(likelihood())
    with pytest.raises(CapabilityError) as caught:
        solve(name, loss, penalty)
    assert loss.calls == loss.opened == 0
    return str(caught.value)


@mistake_driven
@pytest.mark.parametrize("penalty", [L2(1.0), ElasticNet(1.0, 1.0), Rounded()], ids=lambda penalty: penalty.name)
def test_learners_that_know_no_objective_take_no_penalty(name, penalty):
    message = refusal(name, penalty)
    assert f"{name.partition(',')[0]} does not support {penalty.name}" in message
    assert "supported: none" in message


@mistake_driven
def test_learners_that_know_no_objective_take_no_l1(name):
    """They minimise nothing, hence not 'smooth objectives only' either."""
    message = refusal(name, L1(1.0))
    assert name.partition(",")[0] in message
    assert "L1(1)" in message
    assert "smooth objectives" not in message


@pytest.mark.parametrize("name", GRADIENTS)
def test_stochastic_gradients_know_two_penalties_only(name):
    message = refusal(name, Rounded())
    assert f"{name} does not support rounded" in message
    assert "l2" in message


def test_meta_descent_takes_any_smooth_penalty_and_no_other():
    loss = likelihood()
    best = smooth_optimum(loss, Rounded())
    assert best.value <= solve("smd", loss, Rounded(), max_iterations=60).value <= best.value * 1.01
    assert "L1(1) is not smooth" in refusal("smd", L1(1.0))


@every_solver
def test_a_missing_capability_is_named(name):
    loss, _ = quadratic()
    missing = "subset" if name in ("smd", "rda") else "online" if name in GRADIENTS else "mistakes, online"
    with pytest.raises(
        CapabilityError, match=rf"needs {missing}, which the test loss does not have; .*these can: .*lbfgs"
    ):
        solve(name, loss)
    assert loss.calls == 0


@pytest.mark.parametrize("name", ["lbfgs", "smd", "auto"])
def test_the_hinge_is_refused_by_those_that_need_smooth_losses(name):
    loss = StructuredHinge(*separable())
    with pytest.raises(
        CapabilityError, match=r"needs .*smooth, which the structured hinge does not have.*these can: .*sgd"
    ):
        make_solver(name).minimize(loss, NoPenalty(), np.zeros(loss.size))


@mistake_driven
def test_costs_are_not_ignored(name):
    """A cost matrix either changes what is learned or is refused."""
    problem, w0 = noisy(), np.zeros(noisy().field.size)
    cost = np.array([[0.0, 9.0, 1.0], [0.0, 0.0, 7.0], [3.0, 0.0, 0.0]])
    learner = make(name, stopping=NEVER, max_iterations=3)
    try:
        a, b = (
            learner.minimize(StructuredHinge(problem.data, problem.field, c), NoPenalty(), w0) for c in (None, cost)
        )
    except CrfkitError:
        return
    assert (a.w != b.w).any()


# --- steps that are too large, options that cannot be


@pytest.mark.parametrize("name", ["sgd", "asgd", "smd"])
@pytest.mark.parametrize("step_size", [1e3, 1e6, 1e100, 1e300])
@pytest.mark.parametrize("penalty", [NoPenalty(), L2(1.0)], ids=["no penalty", "L2"])
def test_steps_that_are_too_large_do_not_pass_for_success(name, step_size, penalty):
    """DIVERGED or an error of crfkit; never a converged run that is worse than its start, nor NumPy's warnings."""
    try:
        found = make(name, step_size=step_size).minimize(likelihood(), penalty, np.zeros(likelihood().size))
    except CrfkitError:
        return
    assert np.isfinite(found.w).all()
    assert math.isfinite(found.value)
    assert found.status is Status.DIVERGED or found.value < found.trace[0].value, f"{found.status.name}: {found.value}"


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_step_size_that_no_l2_bears_is_refused_in_words(name):
    with pytest.raises(CrfkitError, match="step size is too large for the L2 penalty"):
        solve(name, penalty=L2(1.0), step_size=1e4)


@every_solver
def test_a_start_that_cannot_be(name):
    size = likelihood().size
    for bad, message in ((np.full(size, np.nan), "not finite"), (np.zeros(size + 1), f"{size} weights")):
        with pytest.raises(ParameterError, match=message):
            solve(name, w0=bad)


BAD = [
    *((name, {"max_iterations": -1}) for name in EVERY),
    *((name, {"seed": seed}) for name in EVERY for seed in (-1, 1.5, "1", None, True)),
    *(("sgd", {"step_size": x}) for x in (0, -1.0, math.nan, math.inf)),
    *(("asgd", {"step_size": x}) for x in (0, -1.0)),
    *(("smd", {"step_size": x}) for x in (0, -1.0, math.nan)),
    *(("sgd", {"sample": x}) for x in (0, -5, 1.5)),
    *(("smd", {"batch": x}) for x in (0, -1, 2.5)),
    *(("rda", {"gamma": x}) for x in (0, -1.0, math.nan)),
    *(("rda", {"batch": x}) for x in (0, -1, 2.5)),
    ("smd", {"meta": -1.0}),
    ("smd", {"meta": math.inf}),
    ("smd", {"meta": math.nan}),
    ("smd", {"decay": -0.1}),
    ("smd", {"decay": 1.1}),
    ("passive-aggressive", {"kind": 3}),
    ("passive-aggressive", {"kind": -1}),
    *((name, {"c": x}) for name in ("passive-aggressive", "mira") for x in (0, -1.0, math.nan, math.inf)),
    *(("arow", {key: x}) for key in ("variance", "gamma") for x in (0, -1.0, math.inf)),
]


@pytest.mark.parametrize(("name", "options"), BAD, ids=[f"{name}-{options}" for name, options in BAD])
def test_options_out_of_range_are_refused(name, options):
    with pytest.raises(ParameterError, match=next(iter(options))):
        make(name, **options)


def test_options_within_range_are_taken():
    for solver in (SGD(seed=np.int64(3), sample=1), SMD(decay=1.0, meta=0.0), AROW(variance=1e-3), MIRA(c=1e3)):
        assert type(solver)(**vars(solver)) == solver


@pytest.mark.parametrize(("c", "looser"), [(1e-3, 10.0)])
def test_a_small_bound_makes_small_changes(c, looser):
    for kind in (1, 2):
        small, large = (solve("passive-aggressive", kind=kind, c=x, max_iterations=1) for x in (c, looser))
        assert np.linalg.norm(small.w) < np.linalg.norm(large.w)
    small, large = (solve("mira", c=x, max_iterations=1) for x in (c, looser))
    assert np.linalg.norm(small.w) < np.linalg.norm(large.w)
