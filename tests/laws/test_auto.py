"""The default solver: what it chooses, that it gets there, and that it needs nothing a loss does not have."""

import math
import pickle
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from functions import FunctionLoss, logistic, quadratic, rosenbrock
from numpy.testing import assert_allclose
from oracle import make_problem

from crfkit.chain.encoding.sequences import learn
from crfkit.chain.training.train import ChainTraining
from crfkit.errors import CapabilityError, ParameterError
from crfkit.files.checkpoint import Checkpoint
from crfkit.graph.losses.likelihood import GraphLikelihood
from crfkit.graph.losses.pseudo import PseudoLikelihood
from crfkit.losses import ChainLikelihood, SoftmaxMargin, StructuredHinge
from crfkit.penalties import L1, L2, Blockwise, ElasticNet, NoPenalty
from crfkit.result import Status
from crfkit.solvers import LBFGS, Auto, GradientNorm, PeriodDecrease, SuccessiveChanges, make_solver
from crfkit.solvers.auto import L1_MEMORY
from crfkit.solvers.parts.objective import Objective
from crfkit.solvers.parts.stochastic_start import StartState
from crfkit.synthetic import labelled_words
from crfkit.training.defaults import default_solver

TIGHT = GradientNorm(1e-7)
PENALTIES = [L2(1.0), L1(0.7), ElasticNet(0.5, 0.5)]
every_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=lambda penalty: penalty.name)
WARM = {"least_sequences": 10, "epochs": 3}
EPOCH_ROWS = 3  # the start, after the first epoch, after the last


@cache
def problem(**options):
    lengths = tuple(np.random.default_rng(0).integers(1, 6, 30).tolist())
    return make_problem(2, 3, lengths, 8, values=True, **options)


def likelihood(weights=None, **options):
    made = problem(**options)
    return ChainLikelihood(made.data.with_weights(weights), made.field, 1)


def solve(loss, penalty, w0=None, callbacks=(), resume=None, **options):
    options = {"stopping": TIGHT} | options
    return Auto(**options).minimize(loss, penalty, np.zeros(loss.size) if w0 is None else w0, callbacks, resume)


def reference(loss, penalty):
    """By the solver that Auto should choose, from zero."""
    name = "lbfgs" if penalty.split()[1] is None else "owlqn"
    found = make_solver(name, stopping=GradientNorm(1e-7)).minimize(loss, penalty, np.zeros(loss.size))
    assert found.optimality < 1e-5
    return found


def unopened(loss):
    """The loss, which must not be asked for its online form."""

    def online():
        raise AssertionError("opened")

    loss.online = online
    return loss


def chosen(loss, penalty, **options):
    """The solver after the epochs."""
    solver, objective = Auto(**options), Objective(loss, penalty)
    state = solver.init(objective, np.zeros(loss.size), {})
    while isinstance(state, StartState):
        state = solver.step(objective, state)
    return state.solver


# --- what it chooses


@pytest.mark.parametrize("options", [{}, WARM], ids=["cold", "warm"])
def test_owl_qn_under_l1_and_l_bfgs_otherwise(options):
    for penalty in (L1(1.0), ElasticNet(1.0, 1.0), L1(0.0)):
        assert chosen(likelihood(), penalty, **options).name == "owlqn"
    for penalty in (L2(1.0), NoPenalty()):
        assert chosen(likelihood(), penalty, **options).name == "lbfgs"
    assert chosen(likelihood(), L2(1.0), memory=3, **options).memory == 3
    assert chosen(likelihood(), L1(1.0), memory=3, **options).memory == L1_MEMORY


# what a loss without an online form can do, and its solver under a smooth penalty: name, pairs, whether preconditioned
WITHOUT_ONLINE = {
    frozenset({"smooth"}): ("owlqn", 20, False),
    frozenset({"smooth", "hessp"}): ("owlqn", 20, False),
    frozenset({"smooth", "hessp", "hess_diag"}): ("lbfgs", 20, True),
}


@pytest.mark.parametrize("capabilities", WITHOUT_ONLINE, ids=len)
def test_losses_without_an_online_form_have_a_diagonal_from_the_start(capabilities):
    loss = logistic(spread=2.0)
    loss.capabilities = capabilities
    for penalty in (L2(1.0), NoPenalty()):
        found = chosen(loss, penalty)
        assert (found.name, found.memory, found.preconditioned) == WITHOUT_ONLINE[capabilities]
        assert default_solver(loss, penalty) == found.name
    loss.convex = False  # OWL-QN's steps need not satisfy Wolfe's conditions
    assert chosen(loss, L2(1.0)).name == "lbfgs"


@pytest.mark.parametrize("capabilities", WITHOUT_ONLINE, ids=len)
def test_losses_of_very_many_weights_keep_few_pairs(capabilities, monkeypatch):
    loss = logistic(spread=2.0)
    loss.capabilities = capabilities
    monkeypatch.setattr("crfkit.solvers.auto.FEW_WEIGHTS", loss.size - 1)
    found = chosen(loss, L2(1.0))
    assert (found.name, found.memory, found.preconditioned) == ("lbfgs", 6, False)
    assert default_solver(loss, L2(1.0)) == "lbfgs"


def test_owl_qn_under_l1_of_several_strengths_without_an_online_form():
    for loss, name in ((PseudoLikelihood.example(), "owlqn"), (likelihood(), "fista")):
        first, *others = loss.layout
        penalty = Blockwise({first: L1(2.0)} | {other: L1(1.0) for other in others}, loss.layout)
        assert chosen(loss, penalty).name == default_solver(loss, penalty) == name


@pytest.mark.parametrize("kind", [PseudoLikelihood, GraphLikelihood])
@pytest.mark.parametrize("penalty", [L2(0.1), L1(0.5)], ids=lambda penalty: penalty.name)
def test_the_optimum_on_graphs(kind, penalty):
    loss = kind.example()
    found = solve(loss, penalty)
    assert found.status.converged
    assert_allclose(found.value, reference(loss, penalty).value, rtol=1e-6)
    part = solve(loss, penalty, max_iterations=3, stopping=GradientNorm(0.0))
    rest = solve(loss, penalty, w0=part.w, resume=part.state, max_iterations=20)
    assert_allclose(rest.value, found.value, rtol=1e-6)


@every_penalty
def test_with_little_data_there_is_no_warm_up(penalty):
    """Then it is L-BFGS or OWL-QN, bit by bit."""
    loss = unopened(likelihood())
    found = solve(loss, penalty, least_sequences=31)
    name = "lbfgs" if penalty.split()[1] is None else "owlqn"
    options = {"memory": 6} if name == "lbfgs" else {"memory": L1_MEMORY}
    same = make_solver(name, stopping=TIGHT, **options).minimize(likelihood(), penalty, np.zeros(loss.size))
    assert (found.w == same.w).all()
    assert [row.value for row in found.trace] == [row.value for row in same.trace]
    assert Auto().least_sequences > 30
    assert (solve(loss, penalty).w == found.w).all()
    if name == "lbfgs":
        assert (solve(loss, penalty, least_sequences=1, epochs=0).w == found.w).all()
    else:  # OWL-QN takes a head after some steps
        assert_allclose(solve(loss, penalty, least_sequences=1).value, found.value, rtol=1e-9)


@pytest.mark.parametrize("penalty", [L2(1.0), L2(0.01), NoPenalty()], ids=lambda penalty: penalty.name)
def test_with_enough_data_stochastic_epochs_come_first(penalty):
    loss = likelihood()
    cold, warm = loss.at(np.zeros(loss.size)).value, solve(loss, penalty, least_sequences=30, epochs=10)
    start = [row.value for row in warm.trace[:EPOCH_ROWS]]
    assert warm.trace[0].value == cold
    assert warm.value < start[-1] < cold
    assert start[-1] - warm.value < 0.2 * (cold - warm.value)


@pytest.mark.parametrize("penalty", [L1(1.0), ElasticNet(1.0, 1.0)], ids=lambda penalty: penalty.name)
def test_under_l1_there_are_no_stochastic_epochs(penalty):
    loss = unopened(likelihood())
    assert solve(loss, penalty, least_sequences=0).trace[0].value == loss.at(np.zeros(loss.size)).value


def test_epochs_of_stochastic_gradients_need_a_penalty_they_know():
    class Rounded(L2):
        kinds = frozenset({"rounded"})

    found = solve(unopened(likelihood()), Rounded(1.0), least_sequences=1)
    assert_allclose(found.value, reference(likelihood(), L2(1.0)).value, rtol=1e-9)


# --- that it gets there


@pytest.mark.parametrize("options", [{}, WARM], ids=["cold", "warm"])
@pytest.mark.parametrize("penalty", [*PENALTIES, L2(0.01), L1(5.0)], ids=lambda penalty: penalty.name)
def test_the_optimum(penalty, options):
    loss = likelihood()
    best = reference(loss, penalty)
    found = solve(loss, penalty, **options)
    assert found.status is Status.CONVERGED
    assert_allclose(found.value, best.value, rtol=1e-6)
    assert ((found.w != 0) == (best.w != 0)).all()


@pytest.mark.parametrize(
    "options", [{"order": 2}, {"forbidden": 0.5}, {"n_classes": 2}, {"n_pair_attributes": 3}], ids=str
)
@pytest.mark.parametrize("penalty", [L2(1.0), L1(0.7)], ids=lambda penalty: penalty.name)
def test_the_optimum_in_every_kind_of_field(options, penalty):
    loss = likelihood(**options)
    assert_allclose(solve(loss, penalty, **WARM).value, reference(loss, penalty).value, rtol=1e-6)


def test_the_optimum_of_a_smooth_margin_and_of_weighted_sequences():
    margin = SoftmaxMargin(problem().data, problem().field, n_threads=1)
    for loss in (margin, likelihood(np.arange(30) % 4)):
        assert_allclose(solve(loss, L2(1.0), **WARM).value, reference(loss, L2(1.0)).value, rtol=1e-6)


@every_penalty
def test_its_own_tolerance_is_close_enough(penalty):
    loss = likelihood()
    found = Auto(**WARM).minimize(loss, penalty, np.zeros(loss.size))
    assert found.status is Status.CONVERGED
    assert_allclose(found.value, reference(loss, penalty).value, rtol=1e-3)


@every_penalty
def test_a_start_at_the_optimum_stays_there(penalty):
    loss = likelihood()
    best = reference(loss, penalty)
    for options in ({}, WARM):
        found = solve(loss, penalty, w0=best.w, stopping=GradientNorm(1e-6), **options)
        assert found.iterations <= 5
        assert_allclose(found.value, best.value, rtol=1e-9)


def test_without_a_penalty_it_says_when_there_is_no_minimum():
    """Data that can be separated: the weights grow until the likelihood is flat."""
    loss = likelihood()
    found = solve(loss, NoPenalty(), stopping=GradientNorm(1e-4), **WARM)
    assert found.value <= reference(loss, L2(0.01)).value
    assert math.isfinite(found.value)


# --- bookkeeping


@every_penalty
@pytest.mark.parametrize("options", [{}, WARM], ids=["cold", "warm"])
def test_reported_evaluations_are_the_calls_made(penalty, options):
    loss, calls = likelihood(), []
    inner = loss.at
    loss.at = lambda w, warm=None: calls.append(None) or inner(w, warm)
    found = solve(loss, penalty, **options)
    assert found.evaluations == len(calls)
    assert found.trace[0].evaluations == 1
    assert_allclose(found.value, inner(found.w).value + penalty.value(found.w), rtol=1e-12)
    assert found.objective == f"chain likelihood + {penalty.name}"
    assert [row.iteration for row in found.trace] == list(range(len(found.trace)))


def test_a_seed_decides_the_bits_and_not_the_optimum():
    a, b, other = (solve(likelihood(), L2(1.0), seed=seed, **WARM) for seed in (1, 1, 2))
    assert (a.w == b.w).all()
    assert [row.value for row in a.trace] == [row.value for row in b.trace]
    assert a.trace[0].value == other.trace[0].value
    assert a.trace[1].value != other.trace[1].value
    assert_allclose(a.value, other.value, rtol=1e-6)


def test_the_start_is_not_changed():
    w0 = np.ones(likelihood().size)
    solve(likelihood(), L2(1.0), w0=w0, **WARM)
    assert (w0 == 1).all()


# --- losses that have nothing but values and gradients


def test_a_loss_that_is_only_smooth():
    for loss, penalty, optimum in (
        (*quadratic(condition=10.0)[:1], NoPenalty(), quadratic(condition=10.0)[1]),
        (rosenbrock(2), NoPenalty(), np.ones(2)),
    ):
        loss.capabilities = frozenset({"smooth"})
        found = solve(loss, penalty, least_sequences=0)
        assert found.status is Status.CONVERGED
        assert_allclose(found.w, optimum, atol=1e-5)
        assert (loss.products, found.products) == (0, 0)


@every_penalty
@pytest.mark.parametrize("capabilities", [{"smooth"}, {"smooth", "hessp", "hess_diag"}], ids=len)
def test_logistic_regression(penalty, capabilities):
    loss = logistic(spread=2.0)
    loss.capabilities = frozenset(capabilities)
    found = solve(loss, penalty, least_sequences=0)
    assert found.status is Status.CONVERGED
    assert_allclose(found.value, reference(logistic(spread=2.0), penalty).value, rtol=1e-9)


def test_a_sparse_quadratic_by_hand():
    """½(w − m)² + |w| has its minimum at m shrunk by 1."""
    m = np.array([3.0, -2.0, 0.5, -0.9, 0.0])
    loss = FunctionLoss(5, lambda w: (0.5 * (w - m) @ (w - m), w - m))
    loss.capabilities = frozenset({"smooth"})
    found = solve(loss, L1(1.0))
    assert_allclose(found.w, [2.0, -1.0, 0.0, 0.0, 0.0], atol=1e-7)
    assert (found.w[2:] == 0).all()


def test_a_loss_with_corners_is_refused_before_any_work():
    loss = unopened(StructuredHinge(problem().data, problem().field))
    with pytest.raises(CapabilityError, match=r"auto needs smooth, which the structured hinge .*these can: .*sgd"):
        solve(loss, L2(1.0), least_sequences=0)


# --- going on later


@every_penalty
@pytest.mark.parametrize("options", [{}, WARM], ids=["cold", "warm"])
@pytest.mark.parametrize("k", [0, 1, 4])
def test_a_run_in_two_parts_gives_the_same_bits(penalty, options, k, tmp_path):
    options = {**options, "stopping": GradientNorm(0.0)}
    part = solve(likelihood(), penalty, max_iterations=k, **options)
    whole = solve(likelihood(), penalty, max_iterations=2 * k + 1, **options)
    Checkpoint.of(part).save(tmp_path / "c")
    saved = Checkpoint.load(tmp_path / "c")
    for w0, state in ((part.w, pickle.loads(pickle.dumps(dict(part.state)))), (saved.w, saved.state)):
        in_start = "start_epochs" in state
        assert in_start == (penalty.split()[1] is None and "epochs" in options and k <= 2)
        loss = likelihood() if in_start else unopened(likelihood())  # there is no second start
        rest = solve(loss, penalty, w0=w0, resume=state, max_iterations=k + 1, **options)
        assert (rest.w == whole.w).all()
        assert [row.value for row in part.trace + rest.trace[1:]] == [row.value for row in whole.trace]


def test_states_that_do_not_fit_are_refused():
    part = solve(likelihood(), L2(1.0), max_iterations=3)
    with pytest.raises(ParameterError, match="saved state is of the solver 'auto', not of 'lbfgs'"):
        LBFGS().minimize(likelihood(), L2(1.0), part.w, resume=part.state)
    with pytest.raises(ParameterError, match="memory of 6, not 4"):
        solve(likelihood(), L2(1.0), w0=part.w, resume=part.state, memory=4)


# --- options


@pytest.mark.parametrize("name", ["memory", "seed", "max_iterations", "epochs"])
def test_options_out_of_range_are_refused(name):
    with pytest.raises(ParameterError, match=name):
        Auto(**{name: -1})


def test_an_iteration_limit():
    found = solve(likelihood(), L2(1.0), max_iterations=2)
    assert (found.status, found.iterations) == (Status.MAX_ITERATIONS, 2)


# --- the stochastic start: whether it pays, what is seen of it, what is left of it


@cache
def words(n, n_labels, **options):
    corpus = learn(*labelled_words(n, n_labels, **options), None, 1)
    training = ChainTraining()
    field, _ = training.make_field(corpus.data, corpus.vocabulary, corpus.classes.tolist())
    return corpus.data, field


def planned(loss, penalty, **options):
    state = Auto(**options).init(Objective(loss, penalty), np.zeros(loss.size), {})
    return state.planned if isinstance(state, StartState) else 0


def test_epochs_are_made_where_they_cost_less_than_they_save():
    few, many = ChainLikelihood(*words(2000, 5), 1), ChainLikelihood(*words(300, 100), 1)
    assert planned(few, L2(1.0)) > planned(few, L2(30.0)) >= planned(few, L2(1e5)) == 0
    assert planned(few, L2(1.0)) >= planned(many, L2(1.0))
    assert planned(few, L2(0.0)) == planned(few, NoPenalty()) == planned(few, L2(0.01))
    assert planned(many, L2(1.0), epochs=7) == 7


def test_evaluations_on_many_threads_leave_less_for_epochs():
    counts = [planned(ChainLikelihood(*words(1000, 5), threads), L2(1.0)) for threads in (1, 2, 4, 64)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1] == 0


def test_many_labels_and_short_sequences_make_epochs_expensive():
    """An epoch handles all pairs of labels once for every sequence; an evaluation does so once for all of them."""
    costs = [ChainLikelihood(*words(100, n_labels, length=(3, 5)), 1).epoch_cost() for n_labels in (3, 30, 100)]
    assert costs == sorted(costs)
    assert costs[-1] > 3.0
    long = ChainLikelihood(*words(100, 100, length=(20, 30)), 1)
    assert 1.0 < long.epoch_cost() < costs[-1]
    data, field = words(100, 30, length=(3, 5))
    assert ChainLikelihood(data, field, 3).epoch_cost() == pytest.approx(3 * costs[1])


def test_on_300_labels_it_is_l_bfgs_where_epochs_do_not_pay():
    loss = unopened(ChainLikelihood(*words(200, 300), 4))
    found, same = (
        solver(stopping=PeriodDecrease(1e-3), max_iterations=2).minimize(loss, L2(1.0), np.zeros(loss.size))
        for solver in (Auto, LBFGS)
    )
    assert (found.w == same.w).all()


def test_callbacks_see_the_first_and_the_last_epoch():
    seen = []
    loss = likelihood()
    found = solve(loss, L2(1.0), callbacks=[lambda it: seen.append((it.row.iteration, it.row.value, it.w))], **WARM)
    assert [number for number, _, _ in seen] == list(range(found.iterations + 1))
    assert not seen[0][2].any()
    for _, value, w in seen[:EPOCH_ROWS]:
        assert_allclose(value, loss.at(w).value + L2(1.0).value(w), rtol=1e-12)
    values = [value for _, value, _ in seen[:EPOCH_ROWS]]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("k", [0, 1, 2])
def test_weights_are_kept_when_the_start_is_interrupted(k):
    """In the middle of an epoch, as the compiled core does on Ctrl-C."""
    loss = likelihood()
    inner = loss.online

    def online():
        opened = inner()
        epoch, made = opened.sgd, []

        def sgd(order, steps, l2, l1, averaged):
            if not averaged and np.ptp(steps) > 0:  # not of the choice of a step size
                made.append(None)
                if len(made) == k + 1:
                    half = len(order) // 2
                    epoch(order[:half], steps[:half], l2, l1, averaged)
                    raise KeyboardInterrupt
            return epoch(order, steps, l2, l1, averaged)

        opened.sgd = sgd
        return opened

    loss.online = online
    found = solve(loss, L2(1.0), **WARM)
    assert found.status is Status.INTERRUPTED
    assert found.iterations in ((1,) if k == 0 else (1, 2))  # half an epoch may be worse than none
    values = [row.value for row in found.trace]
    assert values == sorted(values, reverse=True)
    assert found.value == values[-1] < values[0]
    assert_allclose(found.value, likelihood().at(found.w).value + L2(1.0).value(found.w), rtol=1e-12)
    rest = solve(likelihood(), L2(1.0), w0=found.w, resume=found.state, **WARM)
    assert_allclose(rest.value, reference(likelihood(), L2(1.0)).value, rtol=1e-6)


def test_an_interrupt_while_the_step_size_is_chosen_leaves_the_start():
    loss = likelihood()

    def online():
        raise KeyboardInterrupt

    loss.online = online
    found = solve(loss, L2(1.0), **WARM)
    assert (found.status, found.iterations) == (Status.INTERRUPTED, 0)
    assert not found.w.any()


def test_epochs_that_lead_uphill_are_not_taken(monkeypatch):
    monkeypatch.setattr("crfkit.solvers.parts.stochastic_start.calibrate", lambda *_: 20.0)
    loss = likelihood()
    found = solve(loss, L2(0.5), **WARM)
    assert found.status is Status.CONVERGED
    values = [row.value for row in found.trace]
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise(values))
    assert_allclose(found.value, reference(loss, L2(0.5)).value, rtol=1e-6)


def test_the_rule_looks_at_no_epochs():
    """Three epochs that change little, far from the optimum, are no reason to stop."""
    loss = likelihood()
    rule = SuccessiveChanges(1.0, 2)  # satisfied by any three values
    found = solve(loss, L2(1.0), stopping=rule, **WARM)
    assert found.iterations == EPOCH_ROWS + 1


# --- starts that were chosen


@cache
def sentences(n):
    """Return the likelihood of n sentences."""
    X, y = labelled_words(n, 5)
    training = ChainTraining(n_threads=1)
    corpus = learn(X, y, training.make_inputs(), 1)
    return training.make_problem(corpus).loss


def test_a_chosen_start_ends_when_little_is_left_to_gain():
    loss, penalty = sentences(200), L2(1.0)
    best = LBFGS(stopping=GradientNorm(1e-9)).minimize(loss, penalty, np.zeros(loss.size))
    rng = np.random.default_rng(0)
    w0 = best.w + 0.02 * rng.normal(size=loss.size)
    found = solve(loss, penalty, w0, stopping=PeriodDecrease())
    without = solve(loss, penalty, w0, stopping=SuccessiveChanges(1e-9, 3))
    assert found.status is Status.CONVERGED
    assert found.value <= best.value * (1 + 1e-5)
    assert found.iterations < 10 < without.iterations  # a period of ten is not needed


def test_the_end_of_a_chosen_start_does_not_depend_on_interruptions():
    loss, penalty = sentences(200), L2(1.0)
    w0 = solve(loss, penalty, stopping=PeriodDecrease()).w
    w0 = w0 + 0.02 * np.random.default_rng(1).normal(size=loss.size)
    whole = solve(loss, penalty, w0, stopping=PeriodDecrease())
    for k in range(1, whole.iterations):
        part = solve(loss, penalty, w0, stopping=PeriodDecrease(), max_iterations=k)
        rest = solve(loss, penalty, part.w, resume=part.state, stopping=PeriodDecrease())
        assert part.iterations + rest.iterations == whole.iterations
        assert_allclose(rest.value, whole.value, rtol=1e-10)
