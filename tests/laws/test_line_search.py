"""The strong Wolfe search on hostile functions of one variable."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from crfkit.solvers.line_search import Reason, StrongWolfe, Trial

first_steps = st.floats(-8, 8).map(lambda e: 10.0**e)
EPS = 2.0**-52


class Recorder:
    """φ with a log of what was tried."""

    def __init__(self, f, slope):
        self.f, self.slope, self.tried = f, slope, []

    def at(self, t: float) -> Trial:
        return Trial(t, self.f(t), self.slope(t), None)

    def __call__(self, t: float) -> Trial:
        self.tried.append(self.at(t))
        return self.tried[-1]


def search(f, slope, step, rule=None):
    """Runs the search and checks what must hold whatever happens."""
    rule, phi = rule or StrongWolfe(), Recorder(f, slope)
    start = phi.at(0.0)
    found = rule.search(phi, start, step)
    assert found.trials == len(phi.tried) <= rule.max_trials
    assert found.trial in ([start] if not found.accepted else phi.tried)
    slack = 8 * EPS * abs(start.value)
    if found.accepted:
        assert found.trial.step > 0
        assert math.isfinite(found.trial.value)
        assert math.isfinite(found.trial.slope)
        assert found.trial.value <= start.value + rule.c1 * found.trial.step * start.slope + slack
    if found.reason is Reason.STRONG_WOLFE:
        assert abs(found.trial.slope) <= rule.c2 * abs(start.slope)
    return found


# --- families: (φ, φ′), all with φ′(0) < 0


@given(st.floats(-6, 6), st.floats(-4, 4), first_steps)
def test_steep_and_flat_parabolas(curvature, minimum, step):
    a, b = 10.0**curvature, 10.0**minimum
    assume(1e-9 < b / step < 1e9)
    found = search(lambda t: a * (t - b) ** 2, lambda t: 2 * a * (t - b), step)
    assert found.reason is Reason.STRONG_WOLFE


@given(st.floats(-3, 3), st.floats(-3, 3), first_steps)
def test_kinks_that_are_almost_corners(width, minimum, step):
    e, b = 10.0**width, 10.0**minimum
    assume(1e-9 < b / step < 1e9)
    assume(b > 3 * e)
    found = search(lambda t: math.hypot(t - b, e), lambda t: (t - b) / math.hypot(t - b, e), step)
    assert found.accepted


@given(st.floats(0.1, 50), st.floats(0, 0.9), st.floats(1e-3, 10), first_steps)
def test_oscillating(frequency, amplitude, curvature, step):
    def f(t):
        return curvature * t * t - t + amplitude / frequency * math.sin(frequency * t)

    found = search(f, lambda t: 2 * curvature * t - 1 + amplitude * math.cos(frequency * t), step)
    assume(1e-6 < step * curvature < 1e6)
    assert found.accepted


@settings(max_examples=100)
@given(st.floats(-6, 6), st.floats(1e-3, 0.999), first_steps)
def test_infinite_beyond_a_point(wall, start_slope, step):
    """−log(1 − t/b) − m·t: a barrier. Whatever the first step, the search comes back inside."""
    b = 10.0**wall
    m = 1 / (b * start_slope)

    def f(t):
        return -math.log1p(-t / b) - m * t if t < b else math.inf

    assume(step / b < 1e4)
    assume(step / b > 1e-9)
    found = search(f, lambda t: 1 / (b - t) - m if t < b else math.nan, step)
    assert found.accepted
    assert found.trial.step < b


@given(st.sampled_from([math.nan, math.inf, -math.inf]), st.floats(0.01, 100), first_steps)
def test_not_a_number_beyond_a_point(bad, wall, step):
    """Values without meaning are never taken, however low they are."""
    found = search(lambda t: -t if t < wall else bad, lambda t: -1.0 if t < wall else bad, step)
    assert found.trial.step < wall


@given(st.floats(0.01, 100), first_steps)
def test_a_slope_without_meaning_is_never_taken(wall, step):
    search(lambda t: -t, lambda t: -1.0 if t < wall else math.nan, step)


@given(st.floats(-300, 300), first_steps)
def test_values_far_from_zero(offset, step):
    """Sufficient decrease is judged up to the rounding of φ."""
    assume(1e-3 < step < 1e3)
    found = search(lambda t: offset * 1e6 + (t - 1) ** 2, lambda t: 2 * (t - 1), step)
    assert found.accepted


# --- ways to end


def test_unbounded_below_runs_out_of_trials_but_decreases():
    found = search(lambda t: -t, lambda t: -1.0, 1.0)
    assert found.reason is Reason.DECREASE_ONLY
    assert found.trials == StrongWolfe().max_trials


def test_the_step_is_bounded():
    rule = StrongWolfe(max_step=10.0)
    assert search(lambda t: -t, lambda t: -1.0, 1.0, rule).trial.step <= 10.0


def test_a_wrong_slope_is_no_decrease():
    found = search(lambda t: t, lambda t: -1.0, 1.0)
    assert found.reason is Reason.NO_DECREASE
    assert found.trial.step == 0.0
    assert not found.accepted


@pytest.mark.parametrize("slope", [0.0, 1.0, math.nan, math.inf])
def test_ascending_directions_are_not_tried(slope):
    found = search(lambda t: -t, lambda t: slope, 1.0)
    assert found.reason is Reason.NOT_DESCENT
    assert found.trials == 0


@pytest.mark.parametrize("max_trials", [1, 2, 5])
def test_the_limit_on_trials_is_kept(max_trials):
    rule = StrongWolfe(max_trials=max_trials)
    search(lambda t: (t - 1e9) ** 2, lambda t: 2 * (t - 1e9), 1e-9, rule)
    search(lambda t: (t - 1e-9) ** 2, lambda t: 2 * (t - 1e-9), 1e9, rule)


def test_a_good_first_step_costs_one_trial():
    assert search(lambda t: (t - 1) ** 2, lambda t: 2 * (t - 1), 1.0).trials == 1


@given(st.floats(1e-4, 0.4), st.floats(0.01, 0.99), st.floats(0.1, 10), first_steps)
def test_any_constants(c1, share, minimum, step):
    """A convex function has a Wolfe point for all 0 < c1 < c2 < 1."""
    rule = StrongWolfe(c1=c1, c2=c1 + share * (1 - c1))
    assume(1e-4 < minimum / step < 1e4)
    found = search(lambda t: (t - minimum) ** 2, lambda t: 2 * (t - minimum), step, rule)
    assert found.accepted
