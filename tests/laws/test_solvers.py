"""One suite over every solver of smooth objectives: optima, bookkeeping, every way to stop, going on later."""

import itertools
import math
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize
from functions import (
    FunctionLoss,
    altered,
    barrier,
    ever_steeper,
    falling,
    interrupted_at,
    logistic,
    quadratic,
    rosenbrock,
    turned_round_after,
    wrong_sign,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from crfkit.errors import CapabilityError, ParameterError, StopTraining
from crfkit.penalties import L2, NoPenalty
from crfkit.protocols import Loss, NonsmoothPenalty
from crfkit.result import Result, Status, TraceRow
from crfkit.solvers import (
    BFGS,
    LBFGS,
    SOLVERS,
    AnyOf,
    Armijo,
    ConjugateGradient,
    ExactLineSearch,
    Goldstein,
    GradientDescent,
    GradientNorm,
    MoreThuente,
    Newton,
    PeriodDecrease,
    StrongWolfe,
    SuccessiveChanges,
    Tron,
    make_solver,
)
from crfkit.solvers.parts import loop
from crfkit.solvers.parts.endings import at_rounding

TIGHT = GradientNorm(1e-9)
VALLEY = np.array([-1.2, 1.0, -1.2, 1.0])  # the usual start for rosenbrock()

# Batch solvers of smooth objectives, and their options that change what they ask of the loss or how they move.
SMOOTH = sorted(name for name, solver in SOLVERS.items() if solver.needs <= {"smooth", "hessp", "hess_diag"})
VARIANTS = {name: (name, {}) for name in SMOOTH} | {
    "lbfgs, preconditioned": ("lbfgs", {"preconditioned": True}),
    "lbfgs, no scaling": ("lbfgs", {"initial_scaling": False}),
    "bfgs, no scaling": ("bfgs", {"initial_scaling": False}),
    "cg, preconditioned": ("cg", {"preconditioned": True}),
    "newton, dense": ("newton", {"direction": "dense"}),
    "tron, preconditioned": ("tron", {"preconditioned": True}),
    "fista, monotone": ("fista", {"monotone": True}),
}
# The condition of the problem decides: 100 would take these a thousand iterations.
PROJECTED = {"agpm", "spg", "zhou"}
SLOW = {name for name, (solver, _) in VARIANTS.items() if SOLVERS[solver].first_order}
# They cannot tell slow progress from none where the objective is flat to rounding, if the condition is 10⁶ or more.
FIRST_ORDER = SLOW | {"cg", "cg, preconditioned"}
# Their momentum carries them over the optimum and back, or their line searches let them rise.
WAVES = {"fista", "ogm"} | PROJECTED
every_solver = pytest.mark.parametrize("name", list(VARIANTS))


def solve(loss, penalty=NoPenalty(), w0=None, name="lbfgs", callbacks=(), resume=None, **options) -> Result:  # noqa: B008
    base, chosen = VARIANTS[name]
    options = {"stopping": TIGHT, "max_iterations": 2000} | chosen | options
    start = np.zeros(loss.size) if w0 is None else w0
    return make_solver(base, **options).minimize(loss, penalty, start, callbacks, resume)


def tame(name, seed=0):
    """A logistic regression that the solver can minimise to rounding in a few hundred iterations."""
    return logistic(seed, spread=1.5 if name in FIRST_ORDER else 10.0)


# --- optima


@every_solver
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), condition=st.sampled_from([1.0, 100.0, 1e4]))
def test_random_quadratics(name, seed, n, condition):
    condition = min(condition, 20.0) if name in SLOW else condition
    loss, minimum = quadratic(seed, n, condition)
    result = solve(loss, name=name)
    assert result.status is Status.CONVERGED
    assert_allclose(result.w, minimum, atol=1e-6)
    assert_allclose(result.value, 0.0, atol=1e-12)


@every_solver
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), strength=st.sampled_from([0.01, 1.0, 10.0]))
def test_logistic_regression_against_scipy(name, seed, strength):
    strength = max(strength, 1.0) if name in SLOW else strength
    loss, penalty = tame(name, seed), L2(strength)

    def both(w):
        value, gradient = loss.both(w)
        return value + strength / 2 * w @ w, gradient + strength * w

    expected = scipy.optimize.minimize(both, np.zeros(loss.size), jac=True, method="BFGS", options={"gtol": 1e-8})
    result = solve(loss, penalty, name=name, stopping=GradientNorm(1e-8))
    assert result.status is Status.CONVERGED
    # strongly convex: either point is within ‖gradient‖/strength of the optimum
    between = (result.optimality + np.linalg.norm(both(expected.x)[1])) / strength
    assert np.linalg.norm(result.w - expected.x) <= min(between + 1e-9, 1e-4)
    assert result.value <= expected.fun * (1 + 1e-9)


SECOND_MINIMUM = (-0.7756592265, 0.6130933655, 0.3820628463, 0.1459720186)  # of the valley, to ten digits


@every_solver
def test_a_curved_valley(name):
    loss = rosenbrock(steepness=5.0 if name in SLOW else 100.0)
    result = solve(loss, name=name, w0=VALLEY)
    assert result.status is Status.CONVERGED
    # In four dimensions there is a second minimum; a trust region that is no ball leads there from this start.
    expected = SECOND_MINIMUM if name == "tron, preconditioned" else 1.0
    assert_allclose(result.w, expected, atol=1e-6)


@every_solver
def test_a_wall_of_infinite_values(name):
    result = solve(barrier(), name=name, stopping=GradientNorm(1e-8))
    assert result.status is Status.CONVERGED
    assert_allclose(result.w, 0.8, atol=1e-8)


@pytest.mark.parametrize("memory", [1, 3, 50])
def test_any_memory(memory):
    loss, minimum = quadratic(1, 20)
    assert_allclose(solve(loss, memory=memory).w, minimum, atol=1e-6)


@every_solver
def test_a_start_at_the_optimum_stays_there(name):
    loss, minimum = quadratic(2)
    result = solve(loss, name=name, w0=minimum)
    assert result.status is Status.CONVERGED
    assert result.iterations == 0
    assert loss.calls == 1
    # also under a rule that looks at changes only
    assert solve(loss, name=name, w0=minimum, stopping=PeriodDecrease()).status is Status.CONVERGED


@every_solver
@pytest.mark.parametrize("seed", range(3))
def test_an_unreachable_tolerance_ends_when_rounding_allows_no_decrease(name, seed):
    """The remedy in the status text, and not the iteration limit after thousands of steps that lead nowhere."""
    condition = 10.0 if name in SLOW else 100.0
    for loss, penalty in ((quadratic(seed, condition=condition)[0], NoPenalty()), (tame(name, seed), L2(1.0))):
        limit = 600 if name == "ogm" else 300  # which has two phases
        result = solve(loss, penalty, name=name, stopping=GradientNorm(0.0), max_iterations=limit)
        assert result.status in (Status.ROUNDING, Status.CONVERGED)
        assert result.optimality < 1e-6


@every_solver
def test_the_same_run_gives_the_same_bits(name):
    a, b = (solve(logistic(3), L2(0.1), name=name, max_iterations=100) for _ in range(2))
    assert (a.w == b.w).all()
    assert [row.value for row in a.trace] == [row.value for row in b.trace]


# --- bookkeeping


def ends():
    """(expected status, loss, options) of every way to end."""

    def stop_at_three(iteration):
        if iteration.row.iteration == 3:
            raise StopTraining

    valley = {"w0": VALLEY}
    yield Status.CONVERGED, quadratic(condition=10.0)[0], {}
    yield Status.MAX_ITERATIONS, rosenbrock(), {**valley, "max_iterations": 3}
    yield Status.MAX_ITERATIONS, rosenbrock(), {**valley, "max_iterations": 0}
    yield Status.LINE_SEARCH_FAILED, wrong_sign(), {}
    yield Status.LINE_SEARCH_FAILED, turned_round_after(rosenbrock(), 5), {**valley, "max_iterations": 100}
    yield Status.DIVERGED, falling(), {}
    yield Status.DIVERGED, falling(), {"stopping": GradientNorm(1e-4)}
    yield Status.DIVERGED, falling(), {"stopping": PeriodDecrease()}
    yield Status.DIVERGED, ever_steeper(), {}
    yield Status.NON_FINITE, FunctionLoss(2, lambda w: (math.nan, w)), {}
    yield Status.NON_FINITE, FunctionLoss(2, lambda w: (0.0, w + math.inf)), {}
    yield Status.INTERRUPTED, interrupted_at(rosenbrock(), 7), valley
    yield Status.STOPPED_BY_CALLBACK, rosenbrock(), {**valley, "callbacks": [stop_at_three]}


every_end = pytest.mark.parametrize(
    "case", range(len(list(ends()))), ids=[f"{status.name}-{k}" for k, (status, _, _) in enumerate(ends())]
)


@every_solver
@every_end
def test_every_status_is_reached_and_says_so(name, case):
    status, loss, options = list(ends())[case]
    result = solve(loss, name=name, **options)
    assert result.status is status
    assert result.status.converged == (status is Status.CONVERGED)
    assert str(status) in str(result)
    assert len(str(status)) > 15
    # Reported evaluations are the calls made.
    assert result.evaluations == loss.calls
    assert result.products == loss.products
    assert result.trace == () or result.trace[-1].products <= result.products
    assert (result.products > 0) <= ("hessp" in SOLVERS[VARIANTS[name][0]].needs)


@every_solver
@pytest.mark.parametrize("make", [lambda: quadratic()[0], logistic, lambda: interrupted_at(rosenbrock(6), 7)])
@pytest.mark.parametrize("max_iterations", [0, 3, 1000])
def test_value_and_optimality_are_those_of_the_point_returned(name, make, max_iterations):
    loss, penalty = make(), L2(0.3)
    result = solve(loss, penalty, name=name, max_iterations=max_iterations)
    loss.both = getattr(loss, "inner", loss.both)
    value, gradient = loss.both(result.w)
    gradient = gradient + 0.3 * result.w
    assert_allclose(result.value, value + penalty.value(result.w), rtol=1e-14)
    assert_allclose(result.optimality, np.linalg.norm(gradient), rtol=1e-6, atol=1e-12)
    assert result.value == result.trace[-1].value
    assert result.optimality == result.trace[-1].optimality


@every_solver
def test_the_trace_is_monotone_and_complete(name):
    for loss, penalty in ((quadratic(4)[0], NoPenalty()), (logistic(4), L2(0.1)), (rosenbrock(), NoPenalty())):
        result = solve(loss, penalty, name=name, max_iterations=300)
        assert [row.iteration for row in result.trace] == list(range(len(result.trace)))
        assert result.trace[0].evaluations == 1
        for old, new in itertools.pairwise(result.trace):
            assert name in WAVES or new.value <= old.value + 8 * 2.0**-52 * abs(old.value)
            assert new.evaluations > old.evaluations
            assert new.products >= old.products
            assert new.seconds >= old.seconds >= 0
        assert all(row.nonzeros == loss.size for row in result.trace)


@every_solver
def test_the_start_is_not_changed_and_the_objective_is_named(name):
    loss, _ = quadratic()
    w0 = np.ones(loss.size)
    result = solve(loss, L2(0.5), name=name, w0=w0)
    assert (w0 == 1).all()
    assert result.objective == "test loss + L2(0.5)"
    assert result.trace[0].as_dict()["value"] == result.trace[0].value
    again = pickle.loads(pickle.dumps(result))
    assert (again.w == result.w).all()
    assert again.trace == result.trace
    assert again.status is result.status


# --- interruption and callbacks


@every_solver
@pytest.mark.parametrize("k", [2, 3, 5, 8, 11])
def test_interrupted_in_an_evaluation_the_last_whole_iterate_is_kept(name, k):
    seen = []
    watch = [lambda it: seen.append((it.row.value, it.w.copy()))]
    result = solve(interrupted_at(rosenbrock(), k), w0=VALLEY, name=name, callbacks=watch)
    assert result.status is Status.INTERRUPTED
    value, w = seen[-1]
    assert (result.w == w).all()
    assert result.value == value == result.trace[-1].value
    whole = solve(rosenbrock(), w0=VALLEY, name=name, max_iterations=20)
    assert [row.value for row in result.trace] == [row.value for row in whole.trace[: len(result.trace)]]


@every_solver
@pytest.mark.parametrize("signal", [StopTraining, KeyboardInterrupt])
@pytest.mark.parametrize("k", [0, 1, 4])
def test_a_callback_ends_training_at_its_iterate(name, signal, k):
    def callback(iteration):
        if iteration.row.iteration == k:
            raise signal

    result = solve(rosenbrock(), w0=VALLEY, name=name, callbacks=[callback])
    assert result.status is (Status.STOPPED_BY_CALLBACK if signal is StopTraining else Status.INTERRUPTED)
    assert result.iterations == k
    assert_allclose(result.value, rosenbrock().both(result.w)[0], rtol=1e-14)


@every_solver
def test_callbacks_add_to_the_trace_and_see_each_other(name):
    seen = []
    callbacks = [
        lambda it: {"double": 2.0 * it.row.iteration},
        lambda it: seen.append(dict(it.row.extra)),
        lambda it: {"plus": it.row.extra["double"] + 1},
    ]
    result = solve(quadratic()[0], name=name, callbacks=callbacks, max_iterations=20)
    for k, row in enumerate(result.trace):
        assert row.extra == {"double": 2.0 * k, "plus": 2.0 * k + 1}
        assert row.as_dict()["plus"] == 2.0 * k + 1
    assert seen == [{"double": 2.0 * k} for k in range(len(result.trace))]


@every_solver
def test_an_error_in_a_callback_is_not_swallowed(name):
    def callback(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        solve(quadratic()[0], name=name, callbacks=[callback])


@every_solver
def test_the_clock_stops_inside_callbacks(name, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    def tick(value, gradient):
        now[0] += 1.0
        return value, gradient

    def callback(_):
        now[0] += 1000.0

    loss = altered(rosenbrock(), 0, tick)
    result = solve(loss, w0=VALLEY, name=name, callbacks=[callback], max_iterations=20)
    assert len(result.trace) > 3
    assert [row.seconds for row in result.trace] == [float(row.evaluations) for row in result.trace]


# --- combinations that cannot work


class Corner(NonsmoothPenalty):
    """A penalty with a part that is not smooth."""

    name = "corner"
    kinds = frozenset({"corner"})

    def value(self, w):
        return float(np.abs(w).sum())


@every_solver
def test_a_penalty_that_is_not_smooth_is_refused_before_the_first_evaluation(name):
    loss, _ = quadratic()
    with pytest.raises(CapabilityError, match=rf"{VARIANTS[name][0]} .*corner is not smooth"):
        solve(loss, Corner(), name=name)
    assert loss.calls == 0


@every_solver
def test_a_missing_capability_is_named_before_the_first_evaluation(name):
    loss, _ = quadratic()
    loss.capabilities = frozenset({"prophecy"})
    with pytest.raises(CapabilityError, match=r"needs .*smooth, which the test loss does not have; it has prophecy"):
        solve(loss, name=name)
    assert loss.calls == 0


@every_solver
def test_second_derivatives_are_asked_of_losses_that_have_them(name):
    """The error names what is missing, and the solvers that do without."""
    loss, minimum = quadratic(condition=10.0)
    loss.capabilities = frozenset({"smooth"})
    base, options = VARIANTS[name]
    needs = make_solver(base, **options).needs - {"smooth"}
    assert ("hess_diag" in needs) == ("preconditioned" in options)
    if needs:
        with pytest.raises(CapabilityError, match=rf"needs {', '.join(sorted(needs))}, which .* these can: .*lbfgs"):
            solve(loss, name=name)
        assert loss.calls == 0
    else:
        assert_allclose(solve(loss, name=name).w, minimum, atol=1e-6)
        assert loss.products == 0


@every_solver
def test_a_start_that_is_not_finite_is_refused(name):
    loss, _ = quadratic(n=8)
    for bad in (math.nan, math.inf, -math.inf):
        w0 = np.zeros(8)
        w0[5] = bad
        with pytest.raises(ParameterError, match="start vector holds numbers that are not finite"):
            solve(loss, name=name, w0=w0)
    assert loss.calls == 0


@every_solver
def test_a_start_of_the_wrong_shape_is_refused(name):
    loss, _ = quadratic(n=8)
    for shape in ((7,), (9,), (0,), (8, 1)):
        with pytest.raises(ParameterError, match="8 weights"):
            solve(loss, name=name, w0=np.zeros(shape))
    assert loss.calls == 0


def test_options_out_of_range_are_refused():
    bad = [(make, {"max_iterations": -1}) for make in (LBFGS, BFGS, ConjugateGradient, GradientDescent, Newton, Tron)]
    bad += [(LBFGS, {"memory": 0}), (LBFGS, {"power": 1.5}), (LBFGS, {"power": math.nan}), (BFGS, {"max_memory": 0})]
    bad += [(ConjugateGradient, {"restart_every": 0}), (Newton, {"direction": "sideways"}), (Newton, {"order": 3})]
    bad += [(Newton, {"max_products": 0}), (Newton, {"max_memory": -1}), (Tron, {"max_products": 0})]
    bad += [(Tron, {"max_trials": 0}), (Tron, {"max_radius": math.nan})]
    for make, options in bad:
        with pytest.raises(ParameterError, match=next(iter(options))):
            make(**options)
    with pytest.raises(ParameterError, match=r"unknown solver 'no such'; expected one of .*lbfgs"):
        make_solver("no such")
    with pytest.raises(ParameterError, match=r"did you mean 'lbfgs'\?.*owlqn"):
        make_solver("LBGFS")
    solver = LBFGS(memory=3)
    assert make_solver(solver) is solver
    assert isinstance(quadratic()[0], Loss)


# --- going on later


def same_run(a, b):
    return (a.w == b.w).all() and a.status is b.status and a.value == b.value


@every_solver
@pytest.mark.parametrize("k", [0, 1, 6])
@pytest.mark.parametrize("make", [rosenbrock, logistic])
def test_a_run_in_two_parts_gives_the_same_bits(name, k, make):
    start = VALLEY if make is rosenbrock else np.zeros(6)
    options = {"penalty": L2(0.1), "name": name, "stopping": GradientNorm(0.0)}
    part = solve(make(), w0=start, max_iterations=k, **options)
    whole = solve(make(), w0=start, max_iterations=2 * k + 1, **options)
    if part.status is not Status.MAX_ITERATIONS:
        return  # Newton's method is at the optimum already
    state = pickle.loads(pickle.dumps(dict(part.state)))
    for _ in range(2):  # a saved state is not used up
        rest = solve(make(), w0=part.w, max_iterations=k + 1, resume=state, **options)
        assert same_run(rest, whole)
        assert [row.value for row in part.trace + rest.trace[1:]] == [row.value for row in whole.trace]
        assert part.evaluations + rest.evaluations - 1 == whole.evaluations
        assert part.products + rest.products == whole.products


@every_solver
def test_a_run_in_two_parts_ends_where_rounding_ends_the_whole(name):
    options = {"penalty": L2(1.0), "name": name, "stopping": GradientNorm(0.0), "max_iterations": 300}
    whole = solve(tame(name), **options)
    assert whole.status in (Status.ROUNDING, Status.CONVERGED)
    for k in range(max(whole.iterations - 12, 0), whole.iterations, 3):
        part = solve(tame(name), **options | {"max_iterations": k})
        assert same_run(solve(tame(name), w0=part.w, resume=part.state, **options), whole)


@every_solver
def test_a_state_helps_with_another_objective_too(name):
    """As along a path of penalties: what it remembers of the old objective's values must not stop the new run."""
    old = solve(tame(name), L2(1.0), name=name, stopping=GradientNorm(0.0), max_iterations=300)
    new = solve(tame(name), L2(2.0), name=name, w0=old.w, resume=old.state)
    assert new.status is Status.CONVERGED
    assert_allclose(new.w, solve(tame(name), L2(2.0), name=name).w, atol=1e-6)


@every_solver
def test_a_state_of_another_solver_or_size_is_refused(name):
    part = solve(rosenbrock(), w0=VALLEY, name=name, max_iterations=3)
    with pytest.raises(ParameterError, match="saved state is of the solver 'other'"):
        solve(rosenbrock(), w0=VALLEY, name=name, resume={**part.state, "solver": "other"})


def test_a_state_of_other_options_is_refused():
    def part(**options):
        return solve(rosenbrock(), w0=VALLEY, max_iterations=3, **options).state

    with pytest.raises(ParameterError, match="memory of 6, not 3"):
        solve(rosenbrock(), w0=VALLEY, memory=3, resume=part())
    for options in ({}, {"preconditioned": True}):
        other = {"preconditioned": not options}
        with pytest.raises(ParameterError, match="another setting of `preconditioned`"):
            solve(rosenbrock(), w0=VALLEY, resume=part(**other), **options)
    for name in ("bfgs", "cg"):
        state = solve(rosenbrock(), w0=VALLEY, name=name, max_iterations=3).state
        with pytest.raises(ParameterError, match="saved state has 4 weights, not 5"):
            solve(rosenbrock(5), name=name, resume=state)


# --- stopping rules, one by one


def rows(*values, optimality=1.0):
    return [TraceRow(k, value, optimality, k + 1, 0.0, 1) for k, value in enumerate(values)]


@pytest.mark.parametrize(
    ("optimality", "w", "expected"),
    [(1e-5, [0.0], True), (1.1e-5, [0.0], False), (1.1e-5, [3.0, 4.0], True), (5.1e-5, [3.0, 4.0], False)],
)
def test_gradient_norm_is_relative_to_large_weights_only(optimality, w, expected):
    assert GradientNorm(1e-5).satisfied(rows(1.0, optimality=optimality), np.array(w)) is expected


def test_successive_changes_must_follow_each_other():
    rule, w = SuccessiveChanges(eta=1e-2, times=3), np.zeros(1)
    still = [100.0, 99.9, 99.8, 99.7]
    assert rule.satisfied(rows(*still), w)
    assert not rule.satisfied(rows(*still[:3]), w)
    # a large change in between starts the count again
    assert not rule.satisfied(rows(100.0, 99.9, 99.8, 50.0, 49.9, 49.8), w)
    assert rule.satisfied(rows(100.0, 99.9, 99.8, 50.0, 49.9, 49.8, 49.7), w)
    # changes count in either direction, and below eta means below
    assert rule.satisfied(rows(99.7, 99.8, 99.9, 100.0), w)
    assert not SuccessiveChanges(eta=0.5, times=1).satisfied(rows(2.0, 1.0), w)
    assert SuccessiveChanges(eta=0.51, times=1).satisfied(rows(2.0, 1.0), w)


def test_period_decrease_looks_back_one_period():
    rule, w = PeriodDecrease(delta=0.1, period=3), np.zeros(1)
    assert not rule.satisfied(rows(1.0, 1.0, 1.0), w)
    assert rule.satisfied(rows(1.0, 1.0, 1.0, 1.0), w)
    assert rule.satisfied(rows(50.0, 1.09, 1.0, 1.0, 1.0), w)
    assert not rule.satisfied(rows(50.0, 1.11, 1.0, 1.0, 1.0), w)
    assert not rule.satisfied(rows(-1.0, -1.0, -1.0, -1.2), w)
    assert rule.satisfied(rows(-1.0, -1.0, -1.0, -1.05), w)


def test_any_of():
    w = np.zeros(1)
    never, always = GradientNorm(0.0), GradientNorm(1e9)
    assert not AnyOf((never,)).satisfied(rows(1.0), w)
    assert AnyOf((never, always)).satisfied(rows(1.0), w)
    assert not AnyOf(()).satisfied(rows(1.0), w)


@pytest.mark.parametrize(
    "make",
    [
        lambda: GradientNorm(-1.0),
        lambda: GradientNorm(math.nan),
        lambda: SuccessiveChanges(-1.0),
        lambda: SuccessiveChanges(times=0),
        lambda: PeriodDecrease(-1.0),
        lambda: PeriodDecrease(period=0),
    ],
)
def test_rules_that_cannot_be_are_refused(make):
    with pytest.raises(ParameterError):
        make()


@pytest.mark.parametrize("rule", [SuccessiveChanges(1e-4), PeriodDecrease(1e-4, 5), AnyOf((GradientNorm(1e-3),))])
def test_training_ends_where_the_rule_first_holds(rule):
    result = solve(logistic(5), L2(0.1), stopping=rule)
    assert result.status is Status.CONVERGED
    assert rule.satisfied(result.trace, result.w)
    assert not any(rule.satisfied(result.trace[:k], result.w) for k in range(1, len(result.trace)))


SEARCHES = [
    StrongWolfe(c2=0.1, max_trials=40),
    StrongWolfe(interpolation="bisection", max_trials=60),
    MoreThuente(),
    Armijo(),
    Goldstein(),
    ExactLineSearch(),
]


@pytest.mark.parametrize("name", [n for n in VARIANTS if hasattr(SOLVERS[VARIANTS[n][0]](), "line_search")])
@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
def test_the_line_search_can_be_chosen(name, search):
    loss, minimum = quadratic(6, condition=10.0)
    result = solve(loss, name=name, line_search=search)
    assert result.status is Status.CONVERGED
    assert_allclose(result.w, minimum, atol=1e-6)
    options = {"line_search": search, "stopping": GradientNorm(0.0), "max_iterations": 500}
    result = solve(logistic(spread=1.5), L2(1.0), name=name, **options)
    assert result.status in (Status.ROUNDING, Status.CONVERGED)
    assert result.optimality < 1e-6
    if not isinstance(search, Armijo):  # which never extends a step
        assert solve(falling(), name=name, line_search=search).status is Status.DIVERGED


@every_solver
def test_a_gradient_without_meaning_is_never_returned(name):
    """Finite values, but NaN gradients far out: the point returned is one where the gradient is known."""

    def both(w):
        return -w.sum(), np.where(np.abs(w) < 10, -1.0, math.nan)

    result = solve(FunctionLoss(1, both), name=name, max_iterations=20)
    assert math.isfinite(result.optimality)
    assert all(math.isfinite(row.optimality) for row in result.trace)


@every_solver
def test_a_gradient_that_does_not_depend_on_w(name):
    """A linear loss: only the penalty bends the objective. (Evaluations hand out vectors of their own.)"""
    c = np.array([1.0, -2.0, 0.5])
    loss = FunctionLoss(3, lambda w: (c @ w, c))
    result = solve(loss, L2(1.0), name=name)
    assert c.tolist() == [1.0, -2.0, 0.5]
    assert_allclose(result.w, -c, atol=1e-6)


def test_a_tiny_exact_problem_without_a_rule_on_the_gradient_has_converged():
    """The decrease over ten iterations says nothing within nine: rounding ends it, and that is no failure."""
    loss, best = quadratic(condition=10.0)
    found = make_solver("lbfgs").minimize(loss, NoPenalty(), np.zeros(loss.size))
    assert found.status.converged
    assert_allclose(found.w, best, atol=1e-6)


def test_the_end_at_rounding_is_told_from_a_wrong_gradient():
    right = make_solver("lbfgs", stopping=GradientNorm(0.0)).minimize(rosenbrock(), NoPenalty(), VALLEY)
    assert right.status in (Status.ROUNDING, Status.CONVERGED)
    loss = turned_round_after(rosenbrock(), 5)
    wrong = make_solver("lbfgs", stopping=GradientNorm(0.0)).minimize(loss, NoPenalty(), VALLEY)
    assert wrong.status is Status.LINE_SEARCH_FAILED
    assert not wrong.status.converged
    for found in (right, wrong):
        assert f"‖gradient‖ = {found.optimality:.2g}" in found.message
        assert f"changed the objective by {found.last_change:.1e}" in found.message
        assert found.message.startswith(str(found.status))


def test_values_that_no_longer_fall_are_at_rounding_if_the_gradient_is_short():
    """The value of a loss is a difference of large sums, whose rounding errors it has."""

    def row(k, value, optimality):
        return TraceRow(k, value, optimality, k, 0.0, 2)

    def ended(last, optimality):
        trace = [row(0, 887.0, 600.0), *(row(k + 1, v, optimality) for k, v in enumerate(last))]
        return at_rounding(trace, SimpleNamespace(w=np.ones(2), value=last[-1], optimality=optimality))

    flat = [37.27530205663701, 37.27530205663323, 37.27530205662926, 37.275302056626984]
    assert ended(flat, 1.9e-4)
    assert not ended(flat, 1.0)  # a wrong gradient
    assert not ended([37.3, 37.29, 37.28, 37.275], 1.9e-4)  # still falling
