"""Every line search on hostile functions of one variable: it ends, it says why, and what it says is true."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from crfkit.errors import ParameterError
from crfkit.solvers import Armijo, ExactLineSearch, Goldstein, MoreThuente, StrongWolfe, UnitStep
from crfkit.solvers.parts.line_searches import interpolation, strong_wolfe
from crfkit.solvers.parts.line_searches.trial import Reason, Trial

EPS = 2.0**-52
RULES = {
    "cubic": StrongWolfe(),
    "quadratic": StrongWolfe(interpolation="quadratic", max_trials=40),
    "bisection": StrongWolfe(interpolation="bisection", max_trials=60),
    "close": StrongWolfe(c2=0.1, max_trials=40),
    "more-thuente": MoreThuente(max_trials=30),
    "more-thuente close": MoreThuente(c2=0.1, max_trials=40),
    "armijo": Armijo(),
    "goldstein": Goldstein(max_trials=60),
    "exact": ExactLineSearch(),
}
MET = {
    StrongWolfe: Reason.STRONG_WOLFE,
    MoreThuente: Reason.STRONG_WOLFE,
    Armijo: Reason.ARMIJO,
    Goldstein: Reason.GOLDSTEIN,
    ExactLineSearch: Reason.EXACT,
}
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())


def steps(low, high):
    """From 10^low to 10^high."""
    return st.floats(low, high).map(lambda e: 10.0**e)


first_steps = steps(-8, 8)


class Recorder:
    """φ with a log of what was tried."""

    def __init__(self, f, slope):
        self.f, self.slope, self.tried = f, slope, []

    def at(self, t: float) -> Trial:
        return Trial(t, self.f(t), self.slope(t), None)

    def __call__(self, t: float) -> Trial:
        assert math.isfinite(t)
        assert t > 0
        self.tried.append(self.at(t))
        return self.tried[-1]


# --- what each reason claims, written down once more


def rounding(start, trial):
    return 4 * EPS * max(abs(start.value), abs(trial.value))


def decreases(rule, start, trial, c1=None):
    c1 = (
        {Goldstein: lambda: rule.c, ExactLineSearch: lambda: 0.0}.get(type(rule), lambda: rule.c1)()
        if c1 is None
        else c1
    )
    slack = rounding(start, trial) + getattr(rule, "slack", 0.0) * abs(start.value)
    return trial.finite and trial.value <= start.value + c1 * trial.step * start.slope + slack


def falls(rule, start, trial):
    return trial.value < start.value + getattr(rule, "slack", 0.0) * abs(start.value)


def flat(rule, start, trial):
    return abs(trial.slope) <= rule.c2 * abs(start.slope)


def not_too_short(rule, start, trial):
    return trial.value >= start.value + (1 - rule.c) * trial.step * start.slope - rounding(start, trial)


def stationary(rule, trial, tried):
    """Another trial as close as the precision says has a slope of the other sign."""
    return any(
        other.finite
        and other.slope * trial.slope <= 0
        and abs(other.step - trial.step) <= 2 * rule.precision * trial.step
        for other in tried
        if other is not trial
    )


def meets(rule, start, trial, tried):
    """All conditions of the rule hold at the trial."""
    if not decreases(rule, start, trial):
        return False
    if isinstance(rule, Armijo):
        return falls(rule, start, trial)
    if isinstance(rule, Goldstein):
        return falls(rule, start, trial) and not_too_short(rule, start, trial)
    if isinstance(rule, ExactLineSearch):
        return abs(trial.slope) <= rule.precision * abs(start.slope) or stationary(rule, trial, tried)
    return flat(rule, start, trial)


def search(f, slope, step, rule):
    """Runs the search and checks what must hold whatever happens: above all, that its reason is true."""
    phi = Recorder(f, slope)
    start = phi.at(0.0)
    found = rule.search(phi, start, step)
    trial, reason = found.trial, found.reason
    assert found.trials == len(phi.tried) <= rule.max_trials
    if found.accepted:
        assert trial in phi.tried
        assert trial.finite
        assert 0 < trial.step <= rule.max_step
        assert decreases(rule, start, trial)
    if reason is MET[type(rule)]:
        assert meets(rule, start, trial, phi.tried)
    elif reason is Reason.DECREASE_ONLY:
        assert falls(rule, start, trial)
        assert not any(meets(rule, start, t, phi.tried) for t in phi.tried if t.value <= trial.value)
    elif reason is Reason.NO_DECREASE:
        assert trial is start
        assert not any(decreases(rule, start, t) and falls(rule, start, t) for t in phi.tried)
    elif reason is Reason.UNBOUNDED:
        assert trial is phi.tried[-1]
        assert trial.step == rule.max_step
        assert decreases(rule, start, trial)
        assert falls(rule, start, trial)
        assert trial.slope < 0
    else:
        assert reason is Reason.NOT_DESCENT
        assert trial is start
        assert not start.slope < 0
        assert found.trials == 0
    return found


def met(found, rule):
    return found.reason is MET[type(rule)]


# --- families: (φ, φ′), all with φ′(0) < 0


@every_rule
@given(st.floats(-6, 6), st.floats(-4, 4), first_steps)
def test_steep_and_flat_parabolas(rule, curvature, minimum, step):
    a, b = 10.0**curvature, 10.0**minimum
    assume(1e-9 < b / step < 1e9)
    assert met(search(lambda t: a * (t - b) ** 2, lambda t: 2 * a * (t - b), step, rule), rule)


@every_rule
@given(st.floats(-200, 200), st.floats(-50, 50), st.floats(-3, 3))
def test_tiny_and_huge_scales(rule, values, steps, first):
    """Nothing depends on the units of φ and t."""
    assume(-290 < values - steps < 290)
    a, b = 10.0**values, 10.0**steps
    rule = replace(rule, max_step=1e20 * b)
    found = search(lambda t: a * ((t / b - 1) ** 2 + 1), lambda t: 2 * a / b * (t / b - 1), 10.0**first * b, rule)
    assert met(found, rule)


@every_rule
@given(st.floats(-3, 3), st.floats(-3, 3), first_steps)
def test_kinks_that_are_almost_corners(rule, width, minimum, step):
    e, b = 10.0**width, 10.0**minimum
    assume(1e-9 < b / step < 1e9)
    assume(b > 3 * e)
    assert search(lambda t: math.hypot(t - b, e), lambda t: (t - b) / math.hypot(t - b, e), step, rule).accepted


@every_rule
@given(st.floats(0.01, 100), st.floats(0.01, 100), first_steps)
def test_corners(rule, left, right, step):
    """Two straight lines: the slope jumps over zero at 1."""
    found = search(
        lambda t: left * (1 - t) if t < 1 else right * (t - 1), lambda t: -left if t < 1 else right, step, rule
    )
    assert found.accepted


@every_rule
@given(st.floats(0.1, 50), st.floats(0, 0.9), st.floats(1e-3, 10), first_steps)
def test_oscillating(rule, frequency, amplitude, curvature, step):
    assume(1e-6 < step * curvature < 1e6)

    def f(t):
        return curvature * t * t - t + amplitude / frequency * math.sin(frequency * t)

    assert search(f, lambda t: 2 * curvature * t - 1 + amplitude * math.cos(frequency * t), step, rule).accepted


@every_rule
@given(st.floats(0.01, 2), st.floats(0.001, 1.0), steps(-4, 4))
def test_more_and_thuente_first_function(rule, beta, start_slope, step):
    """−t/(t² + β): falls to √β, then rises for ever, ever more slowly."""
    found = search(lambda t: -t / (t * t + beta), lambda t: (t * t - beta) / (t * t + beta) ** 2, step, rule)
    assert found.accepted


@every_rule
@given(steps(-3, 3))
def test_more_and_thuente_second_function(rule, step):
    """(t + β)⁵ − 2(t + β)⁴: almost flat at the start."""
    b = 0.004

    def f(t):
        return (t + b) ** 5 - 2 * (t + b) ** 4

    assert met(search(f, lambda t: 5 * (t + b) ** 4 - 8 * (t + b) ** 3, step, rule), rule)


@every_rule
@given(st.sampled_from([(0.001, 0.001), (0.01, 0.001), (0.001, 0.01)]), steps(-3, 3))
def test_yanai_functions(rule, betas, step):
    """Convex combinations of two near-corners, at 0 and at 1 (Moré & Thuente (5.4))."""
    b1, b2 = betas
    g1, g2 = (math.sqrt(1 + b * b) - b for b in betas)

    def f(t):
        return g1 * math.hypot(1 - t, b2) + g2 * math.hypot(t, b1)

    assert search(f, lambda t: g1 * (t - 1) / math.hypot(1 - t, b2) + g2 * t / math.hypot(t, b1), step, rule).accepted


@every_rule
@given(st.floats(0.1, 10), st.floats(-10, 10), st.floats(0, 2 * math.pi), st.floats(-4, 4))
def test_wolfe_function(rule, x, y, angle, power):
    """Sections of Wolfe's convex function, half of which is two planes that meet in an edge."""
    u, v = math.cos(angle), math.sin(angle)

    def both(t):
        a, b = x + t * u, y + t * v
        if a > abs(b):
            root = math.hypot(3 * a, 4 * b)
            return 5 * root, 5 * (9 * a * u + 16 * b * v) / root
        return 9 * a + 16 * abs(b), 9 * u + 16 * v * math.copysign(1.0, b)

    if both(0.0)[1] > 0:
        u, v = -u, -v
    assume(both(0.0)[1] < -1e-3)
    found = search(lambda t: both(t)[0], lambda t: both(t)[1], 10.0**power, rule)
    assert found.accepted or found.reason is Reason.UNBOUNDED


@every_rule
@settings(max_examples=40)
@given(st.floats(-6, 6), st.floats(1e-3, 0.999), first_steps)
def test_infinite_beyond_a_point(rule, wall, start_slope, step):
    """−log(1 − t/b) − m·t: a barrier. Whatever the first step, the search comes back inside."""
    b = 10.0**wall
    m = 1 / (b * start_slope)

    def f(t):
        return -math.log1p(-t / b) - m * t if t < b else math.inf

    assume(1e-9 < step / b < 1e4)
    found = search(f, lambda t: 1 / (b - t) - m if t < b else math.nan, step, rule)
    assert found.accepted
    assert found.trial.step < b


@every_rule
@given(st.sampled_from([math.nan, math.inf, -math.inf]), st.floats(0.01, 100), first_steps)
def test_not_a_number_beyond_a_point(rule, bad, wall, step):
    """Values without meaning are never taken, however low they are."""
    found = search(lambda t: -t if t < wall else bad, lambda t: -1.0 if t < wall else bad, step, rule)
    assert found.trial.step < wall


@every_rule
@given(st.floats(0.01, 100), first_steps)
def test_a_slope_without_meaning_is_never_taken(rule, wall, step):
    search(lambda t: -t, lambda t: -1.0 if t < wall else math.nan, step, rule)


@every_rule
@given(st.floats(-3, 3), st.floats(-300, 300), first_steps)
def test_flat_functions(rule, slope, level, step):
    """Constant to rounding, whatever the slope says: never a step that does not fall."""
    s = -(10.0**slope)
    found = search(lambda t: level, lambda t: s, step, rule)
    assert found.reason is Reason.NO_DECREASE


@every_rule
@given(st.floats(-300, 300), steps(-3, 3))
def test_values_far_from_zero(rule, offset, step):
    """Sufficient decrease is judged up to the rounding of φ."""
    assert search(lambda t: offset * 1e6 + (t - 1) ** 2, lambda t: 2 * (t - 1), step, rule).accepted


@every_rule
@given(st.integers(0, 10**6), steps(-3, 3))
def test_random_piecewise_functions(rule, seed, step):
    """Continuously differentiable, with a random slope in each piece: anything can happen on the way."""
    rng = np.random.default_rng(seed)
    knots = np.concatenate([[0.0], np.cumsum(rng.exponential(size=12))])
    slopes = np.concatenate([[-1.0], rng.normal(size=11) * 3, [2.0]])
    values = np.concatenate([[0.0], np.cumsum(np.diff(knots) * (slopes[1:] + slopes[:-1]) / 2)])

    def both(t):
        if t >= knots[-1]:
            return values[-1] + slopes[-1] * (t - knots[-1]), slopes[-1]
        k = int(np.searchsorted(knots, t, side="right")) - 1
        bend = (slopes[k + 1] - slopes[k]) / (knots[k + 1] - knots[k])
        past = t - knots[k]
        return values[k] + slopes[k] * past + bend * past * past / 2, slopes[k] + bend * past

    assert search(lambda t: float(both(t)[0]), lambda t: float(both(t)[1]), step, rule).accepted


# --- the intervals of the strong Wolfe search


@pytest.mark.parametrize("kind", ["cubic", "quadratic", "bisection"])
@given(st.floats(0.1, 20), st.floats(0, 2.5), st.floats(0.05, 2), steps(-2, 2), st.floats(0.01, 0.9))
def test_every_interval_of_the_zoom_holds_a_wolfe_point(kind, frequency, amplitude, curvature, step, c2):
    """Theorem 2 of the paper: both its premisses, and its conclusion by scanning the interval."""
    intervals = []

    def both(t):
        wave = amplitude / frequency * np.sin(frequency * t)
        return curvature * t * t - t - wave, 2 * curvature * t - 1 - amplitude * np.cos(frequency * t)

    start = Trial(0.0, *map(float, both(0.0)), None)

    def recorded(low, high):
        intervals.append((low, high))
        return getattr(interpolation, kind)(low, high)

    rule = StrongWolfe(c2=c2, interpolation=kind, max_trials=30)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strong_wolfe, "INTERPOLATIONS", {kind: recorded})
        search(lambda t: float(both(t)[0]), lambda t: float(both(t)[1]), step, rule)
    for low, high in intervals:
        width = high.step - low.step
        assert low.slope * width < 0
        assert decreases(rule, start, low)
        assert not decreases(rule, start, high) or low.value <= high.value + 8 * EPS * abs(low.value)
        if abs(width) < 1e-7 * low.step:
            continue  # rounding decides
        scan = low.step + width * np.concatenate([np.geomspace(1e-9, 1e-3, 500), np.linspace(1e-3, 1, 2000)])
        enough = both(scan)[0] <= start.value + rule.c1 * scan * start.slope
        slopes = both(scan)[1]
        crosses = (slopes[1:] > 0) != (slopes[:-1] > 0)
        assert (enough & (np.abs(slopes) <= -c2 * start.slope)).any() or (enough[1:] & crosses).any()


@every_rule
@given(st.floats(1e-4, 0.4), st.floats(0.01, 0.99), st.floats(0.1, 10), first_steps)
def test_any_constants(rule, c1, share, minimum, step):
    """A convex function has a point that meets the conditions for all constants in their range."""
    assume(1e-4 < minimum / step < 1e4)
    options = {"c1": c1, "c2": c1 + share * (1 - c1), "c": c1, "precision": 1e-12 * c1}
    rule = replace(rule, **{name: value for name, value in options.items() if name in vars(rule)})
    assert search(lambda t: (t - minimum) ** 2, lambda t: 2 * (t - minimum), step, rule).accepted


# --- ways to end


@every_rule
@pytest.mark.parametrize("step", [1e-6, 1.0, 1e6])
def test_a_function_that_falls_for_ever_is_unbounded(rule, step):
    if isinstance(rule, Armijo):  # it never extends a step; solvers do, from one search to the next
        step = 1e21
    assert search(lambda t: -t, lambda t: -1.0, step, rule).reason is Reason.UNBOUNDED


@every_rule
@pytest.mark.parametrize("step", [1.0, 10.0, 1000.0])
def test_the_step_is_bounded(rule, step):
    rule = replace(rule, max_step=10.0)
    found = search(lambda t: -t, lambda t: -1.0, step, rule)
    assert found.trial.step <= 10.0
    assert met(search(lambda t: (t - 1) ** 2, lambda t: 2 * (t - 1), step, rule), rule)


def test_a_minimum_that_is_far_away_is_not_called_unbounded():
    for rule in (StrongWolfe(), MoreThuente(), Goldstein(max_trials=20)):
        found = search(lambda t: (t - 1e9) ** 2, lambda t: 2 * (t - 1e9), 1e-3, rule)
        assert found.accepted


@every_rule
def test_a_wrong_slope_is_no_decrease(rule):
    found = search(lambda t: t, lambda t: -1.0, 1.0, rule)
    assert found.reason is Reason.NO_DECREASE
    assert found.trial.step == 0.0
    assert not found.accepted


@every_rule
@pytest.mark.parametrize("slope", [0.0, 1.0, math.nan, math.inf])
def test_ascending_directions_are_not_tried(rule, slope):
    found = search(lambda t: -t, lambda t: slope, 1.0, rule)
    assert found.reason is Reason.NOT_DESCENT
    assert found.trials == 0


@every_rule
@pytest.mark.parametrize("max_trials", [1, 2, 3, 5])
def test_the_limit_on_trials_is_kept(rule, max_trials):
    rule = replace(rule, max_trials=max_trials)
    search(lambda t: (t - 1e9) ** 2, lambda t: 2 * (t - 1e9), 1e-9, rule)
    search(lambda t: (t - 1e-9) ** 2, lambda t: 2 * (t - 1e-9), 1e9, rule)


@every_rule
def test_a_good_first_step_costs_one_trial(rule):
    assert search(lambda t: (t - 1) ** 2, lambda t: 2 * (t - 1), 1.0, rule).trials == 1


@given(st.floats(-3, 3), st.floats(0.1, 10))
def test_exact_to_the_precision_asked_for(power, minimum):
    """The step is the minimiser to rounding; of a parabola in three trials."""
    precision = 10.0 ** (power - 10)
    rule = ExactLineSearch(precision)
    found = search(
        lambda t: (t - minimum) ** 4 + (t - minimum) ** 2,
        lambda t: 4 * (t - minimum) ** 3 + 2 * (t - minimum),
        1.0,
        rule,
    )
    assert found.reason is Reason.EXACT
    slope = 4 * minimum**3 + 2 * minimum
    assert abs(found.trial.step - minimum) <= precision * slope
    assert search(lambda t: (t - minimum) ** 2, lambda t: 2 * (t - minimum), 20.0, ExactLineSearch()).trials <= 3


@pytest.mark.parametrize("make", [StrongWolfe, Armijo, MoreThuente])
def test_slack_lets_the_value_rise_by_its_noise(make):
    """Near the minimum of a function with relative noise 1e-7, steps that seem to rise are taken, with slack only."""

    def f(t):
        return 1.0 + 1e-10 * (t - 1) ** 2 + (3e-8 if t > 0 else 0.0)

    def slope(t):
        return 2e-10 * (t - 1)

    assert search(f, slope, 1.0, make()).reason is Reason.NO_DECREASE
    found = search(f, slope, 1.0, make(slack=1e-7))
    assert found.accepted
    assert found.trial.step == 1.0
    assert not search(lambda t: 1.0 + t, lambda t: -1.0, 1e3, make(slack=1e-16)).accepted


def test_a_unit_step_is_taken_as_it_is():
    rule = UnitStep()
    phi = Recorder(lambda t: t, lambda t: -1.0)
    assert rule.search(phi, phi.at(0.0), 1.0).reason is Reason.UNTESTED
    assert [trial.step for trial in phi.tried] == [1.0]
    phi = Recorder(lambda t: math.nan if t else 0.0, lambda t: -1.0)
    assert rule.search(phi, phi.at(0.0), 1.0).reason is Reason.NO_DECREASE
    phi = Recorder(lambda t: -t, lambda t: 1.0)
    assert rule.search(phi, phi.at(0.0), 1.0).reason is Reason.NOT_DESCENT
    assert phi.tried == []


def test_constants_out_of_range_are_refused():
    bad = [
        (StrongWolfe, {"c1": 0.95}, "c1 must be between 0 and 0.9"),
        (StrongWolfe, {"c2": 1.0}, "c2 must be between 0 and 1"),
        (StrongWolfe, {"expansion": 1.0}, "expansion"),
        (
            StrongWolfe,
            {"interpolation": "cubik"},
            "unknown interpolation 'cubik'; there are cubic, quadratic, bisection",
        ),
        (StrongWolfe, {"slack": math.nan}, "slack"),
        (MoreThuente, {"c1": math.nan}, "c1"),
        (MoreThuente, {"slack": -1.0}, "slack"),
        (Armijo, {"c1": 0.0}, "c1"),
        (Armijo, {"slack": math.inf}, "slack"),
        (Goldstein, {"c": 0.5}, "c must be between 0 and 0.5"),
        (ExactLineSearch, {"precision": 0.0}, "precision"),
    ]
    bad += [(type(rule), {"max_trials": 0}, "max_trials") for rule in RULES.values()]
    bad += [(type(rule), {"max_step": 0.0}, "max_step") for rule in RULES.values()]
    for make, options, message in bad:
        with pytest.raises(ParameterError, match=message):
            make(**options)
