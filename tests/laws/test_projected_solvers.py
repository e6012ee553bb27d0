"""Projected gradients, projected quasi-Newton and ADMM under group penalties: one optimum, rules, line searches."""

import math
from functools import cache
from itertools import combinations, pairwise

import numpy as np
import pytest
from functions import logistic, quadratic
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from optional import optional

from crfkit.errors import CapabilityError, ParameterError
from crfkit.graph.fields.field import untied_field
from crfkit.graph.graph import Graph
from crfkit.graph.inference.enumerate import Enumerate
from crfkit.graph.inference.junction import Junction
from crfkit.losses import GraphLikelihood, PseudoLikelihood
from crfkit.penalties import L1, L2, Blockwise, GroupL1, GroupL2, GroupLinf
from crfkit.result import Status, TraceRow
from crfkit.solvers import (
    ADMM,
    AGPM,
    FISTA,
    PQN,
    SPG,
    AnyOf,
    GradientNorm,
    PeriodDecrease,
    PeriodSpread,
    Zhou,
    make_solver,
)
from crfkit.solvers.parts.epigraph import EpigraphForm
from crfkit.solvers.parts.line_searches.nonmonotone import SEARCHES, Reference
from crfkit.solvers.parts.line_searches.trial import Trial
from crfkit.solvers.parts.objective import Objective
from crfkit.solvers.parts.secant_pairs import SecantPairs
from crfkit.solvers.parts.step_rules import STEP_RULES, Secant
from crfkit.solvers.parts.stopping import for_values_that_rise
from crfkit.synthetic import random_pairwise

TIGHT = {"stopping": GradientNorm(1e-7), "max_iterations": 5000}
NEVER = GradientNorm(0.0)
SOLVERS = {"agpm": AGPM, "spg": SPG, "zhou": Zhou, "pqn": PQN, "admm": ADMM}
every_solver = pytest.mark.parametrize("name", SOLVERS)
KINDS = [GroupLinf, GroupL2, GroupL1]


@cache
def loss_of(name):
    data = random_pairwise(4, 2, 120, seed=3).data()
    field = untied_field(data, 2, edge_form="minimal")  # well-conditioned: no weights that others can stand in for
    return PseudoLikelihood(data, field, 1) if name == "pl" else GraphLikelihood(data, field, Junction(n_threads=1))


def penalty_of(kind, strength=10.0):
    return Blockwise({"node": L2(1.0), "edge": kind(strength, np.repeat(np.arange(6), 5))})


@cache
def optimum(name, kind):
    loss = loss_of(name)
    found = FISTA(stopping=GradientNorm(1e-9), max_iterations=20_000).minimize(
        loss, penalty_of(kind), np.zeros(loss.size)
    )
    assert found.optimality < 1e-6
    return found


# --- one optimum


@every_solver
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name_of_loss", ["pl", "likelihood"])
def test_all_reach_the_same_optimum(name, kind, name_of_loss):
    loss, best = loss_of(name_of_loss), optimum(name_of_loss, kind)
    found = SOLVERS[name](**TIGHT).minimize(loss, penalty_of(kind), np.zeros(loss.size))
    assert found.optimality < 1e-5
    assert abs(found.value - best.value) < 1e-8 * best.value
    assert_allclose(found.w, best.w, atol=1e-4)
    # what the trace and result say is true of the weights returned, and zeros are zeros
    penalty = penalty_of(kind).bind(loss)
    smooth, rest = penalty.split()
    at = loss.at(found.w)
    gradient = at.grad
    smooth.add_gradient(found.w, gradient)
    assert_allclose(found.value, at.value + penalty.value(found.w), rtol=1e-12)
    assert_allclose(
        found.optimality, np.linalg.norm(rest.min_norm_subgradient(found.w, gradient)), rtol=1e-6, atol=1e-12
    )
    groups = found.w[loss.layout["edge"]].reshape(6, 5)
    zero = ~groups.any(axis=1)
    assert_array_equal(zero, ~best.w[loss.layout["edge"]].reshape(6, 5).any(axis=1))
    if kind is GroupLinf:
        assert 0 < zero.sum() < 6


@pytest.mark.parametrize("rule", STEP_RULES)
@pytest.mark.parametrize("search", SEARCHES)
def test_every_rule_and_search_reaches_it(rule, search):
    loss, best = loss_of("pl"), optimum("pl", GroupLinf)
    options = {"stopping": GradientNorm(1e-5), "max_iterations": 5000, "step_rule": rule, "search": search}
    found = SPG(**options).minimize(loss, penalty_of(GroupLinf), np.zeros(loss.size))
    assert abs(found.value - best.value) < 1e-8 * best.value


@pytest.mark.parametrize("kind", [GroupLinf, GroupL2])
def test_cvxpy_agrees(kind):
    cvxpy = optional("cvxpy")
    loss = loss_of("pl")
    data, w = loss.data, cvxpy.Variable(loss.size)
    scores = np.zeros((data.graph.n_nodes, loss.size))  # of state 1 less state 0, given the neighbours: linear in w
    for k, unit in enumerate(np.eye(loss.size)):
        p = loss.field.potentials(data, unit)
        change = p.unary[:, 1] - p.unary[:, 0]
        for (i, j), table in zip(data.graph.edges, p.tables, strict=True):
            change[i] += table[1, data.labels[j]] - table[0, data.labels[j]]
            change[j] += table[data.labels[i], 1] - table[data.labels[i], 0]
        scores[:, k] = change
    signed = scores * np.where(data.labels == 1, -1.0, 1.0)[:, None]
    edges = loss.layout["edge"].start
    groups = [w[edges + 5 * g : edges + 5 * (g + 1)] for g in range(6)]
    norm = {GroupLinf: "inf", GroupL2: 2}[kind]
    cost = cvxpy.sum(cvxpy.logistic(signed @ w)) + 0.5 * cvxpy.sum_squares(w[:edges])
    problem = cvxpy.Problem(cvxpy.Minimize(cost + 10.0 * sum(cvxpy.norm(g, norm) for g in groups)))
    problem.solve(solver="CLARABEL")
    assert_allclose(problem.value, optimum("pl", kind).value, rtol=1e-6)


# --- step rules


def secant(loss, a, b):
    return Secant.between(a, loss.at(a).value, loss.at(a).grad, b, loss.at(b).value, loss.at(b).grad)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=40)
def test_rules_by_hand(seed):
    rng = np.random.default_rng(seed)
    loss = logistic(seed % 7, n=4)
    a, b = rng.normal(size=(2, 4))
    at = secant(loss, a, b)
    f0, f1, g0, g1 = loss.at(a).value, loss.at(b).value, loss.at(a).grad, loss.at(b).grad
    s, y = b - a, g1 - g0
    phi = 4 * (f0 - f1) + 2 * (g0 + g1) @ s
    if s @ y + phi <= 0:
        phi = 0.0
    hat = y + phi * s / (s @ s)
    rules = {name: [rule(at, k, 0.5) for k in (1, 2)] for name, rule in STEP_RULES.items()}
    assert_allclose(rules["bb1"], s @ s / (s @ y))
    assert_allclose(rules["bb2"], s @ y / (y @ y))
    assert_allclose(rules["bs1"], s @ s / (s @ hat), rtol=1e-6)
    assert_allclose(rules["bs2"], s @ hat / (hat @ hat), rtol=1e-6)
    assert_allclose(rules["bs3"], rules["bs1"])
    assert_allclose(rules["bs4"], s @ y / ((1 + phi / (s @ y)) * (y @ y)), rtol=1e-6)
    assert_array_equal(rules["agpm-printed"], rules["bs1"])
    assert rules["zhou"][0] == (at.bb2 if at.bb2 / at.bb1 < 0.5 else at.bb1)
    cosine = s @ hat / np.linalg.norm(s) / np.linalg.norm(hat)
    if abs(cosine - 0.5) > 1e-6:
        assert rules["agpm"] == [rules["bs1"][0], rules["bs1" if cosine >= 0.5 else "bs2"][1]]
    assert rules["yu"][0] == rules["bb1"][0]
    assert all(bs2 <= bs1 * (1 + 1e-12) for bs1, bs2 in zip(rules["bs1"], rules["bs2"], strict=True))


def test_on_quadratics_the_conic_model_is_the_quadratic_one():
    """φ is zero but for rounding, and rounding counts as zero: then bs… is bb…."""
    loss, _ = quadratic(1, 6, 20.0)
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e-4, 1e-8):
        a = rng.normal(size=6)
        at = secant(loss, a, a + scale * rng.normal(size=6))
        if scale < 1:
            assert at.phi == 0.0
        assert_allclose(at.conic.bb1, at.bb1, rtol=1e-6)
        assert_allclose(at.conic.bb2, at.bb2, rtol=1e-6)


def test_an_impossible_curvature_falls_back():
    at = Secant.between(np.zeros(1), 0.0, np.zeros(1), np.ones(1), 10.0, np.ones(1))  # φ = −38, s·y = 1
    assert at.phi == 0.0
    assert STEP_RULES["bs1"](at, 1, 0.5) == STEP_RULES["bb1"](at, 1, 0.5) == 1.0
    assert not Secant(1.0, -1.0, 1.0).curved
    assert not Secant(1e-200, 1e-300, 0.0).curved  # ‖y‖² has underflowed


# --- line searches


def references(kind, values, memory=2, eta=0.5):
    """What a search keeps after each of the values."""
    rule = Reference(kind, memory=memory, eta=eta)
    kept = [rule.start(values[0], {})]
    for value in values[1:]:
        kept.append(rule.after(kept[-1], value))
    return kept


def test_references_by_hand():
    values = [5.0, 3.0, 4.0, 1.0]
    kept = {kind: references(kind, values) for kind in SEARCHES}
    C, Q = values[0], 1.0
    for k, value in enumerate(values[1:], 1):
        Q, C = 0.5 * Q + 1, (0.5 * Q * C + value) / (0.5 * Q + 1)
        assert list(kept["armijo"][k]) == [value]
        assert list(kept["gll"][k]) == values[k - 1 : k + 1]
        assert_allclose(kept["zhang-hager"][k], [C, Q])
        assert_allclose(kept["huang"][k], [C, Q])


def test_the_reference_of_dai_and_fletcher_by_hand():
    """C is the first value until two steps in a row are no better than the best; then it is the largest since."""
    values = [9.0, 3.0, 4.0, 2.0, 6.0, 2.5, 2.4, 2.2, 1.0, 1.5]
    levels = [kept[0] for kept in references("dai-fletcher", values)]
    assert levels == [9.0, 9.0, 9.0, 9.0, 9.0, 6.0, 6.0, 2.5, 2.5, 2.5]


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=40), st.integers(1, 5))
def test_the_level_of_dai_and_fletcher_is_a_value_that_was_seen(values, memory):
    for k, (level, best, candidate, waited) in enumerate(references("dai-fletcher", values, memory)):
        assert best == min(values[: k + 1])
        assert best <= candidate <= max(values)
        assert waited < memory
        assert level in values[: k + 1]


def test_dai_and_fletcher_do_not_lose_their_way():
    """With C = ∞ at first, this run went to 10⁴ where nothing curves, and did not come back."""
    data = random_pairwise(10, 10, 200, seed=10010)[:100].data()
    loss = PseudoLikelihood(data, untied_field(data, 2), 1)
    penalty = Blockwise({"node": L2(1.0), "edge": GroupLinf(0.5, np.repeat(np.arange(45), 63))})
    found = SPG(step_rule="bs1", search="dai-fletcher", stopping=NEVER, max_iterations=60).minimize(
        loss, penalty, np.zeros(loss.size)
    )
    assert max(row.value for row in found.trace) <= found.trace[0].value
    assert found.value < 100


@given(st.floats(0, 0.99), st.lists(st.floats(0.01, 100), min_size=1, max_size=30))
def test_the_condition_of_huang_is_a_decrease_of_the_mean(eta, values):
    """f ≤ C + ν_k·t·slope at its bound is C_{k+1} = C_k + ν·t·slope."""
    rule = Reference("huang", eta=eta)
    kept = references("huang", values, eta=eta)[-1]
    for t, slope in ((1.0, -3.0), (0.25, -0.1)):
        bound = kept[0] + rule.rule.decrease(kept, rule) * t * slope
        assert_allclose(rule.after(kept, bound)[0], kept[0] + rule.nu * t * slope, rtol=1e-9)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("seed", range(3))
def test_every_step_that_is_taken_keeps_its_condition(search, seed):
    """And a search ends: of a function that is finite, smooth and falls at first, some trial is low enough."""
    rng = np.random.default_rng(seed)
    rule = Reference(search, memory=3, nu=0.3)
    kept = rule.start(1.0, {})
    value = 1.0
    for _ in range(30):
        a, b = rng.exponential(1.0), rng.exponential(20.0)  # value − a·t + b·t²
        tried = []

        def phi(t, value=value, a=a, b=b, tried=tried):
            tried.append(t)
            return Trial(t, value - a * t + b * t * t, -a + 2 * b * t, None)

        found = rule.search(kept, phi(0.0), phi)
        assert found is not None
        level, nu = max(rule.rule.level(kept), value), rule.rule.decrease(kept, rule)
        assert found.value <= level - nu * found.step * a + 1e-12 * abs(value)
        assert tried[1] == 1.0
        assert all(later <= 0.5 * earlier for earlier, later in pairwise(tried[1:]))
        value = found.value
        kept = rule.after(kept, value)


@pytest.mark.parametrize(
    "options",
    [{"search": "gll", "memory": 1}, {"search": "zhang-hager", "eta": 0.0}, {"search": "huang", "eta": 0.0}],
)
def test_without_memory_they_are_armijo(options):
    loss = loss_of("pl")
    runs = [
        SPG(max_iterations=40, stopping=NEVER, **chosen).minimize(loss, penalty_of(GroupLinf), np.zeros(loss.size))
        for chosen in (options, {"search": "armijo"})
    ]
    assert_array_equal(runs[0].w, runs[1].w)


# --- stopping, going on, refusing


@pytest.mark.parametrize("name", ["agpm", "spg", "zhou", "pqn"])
def test_the_stopping_rule_of_the_paper(name):
    loss, penalty = loss_of("pl"), penalty_of(GroupLinf)
    found = SOLVERS[name](eps=1e-3, stopping=NEVER).minimize(loss, penalty, np.zeros(loss.size))
    assert found.status is Status.CONVERGED
    form = EpigraphForm(Objective(loss, penalty.bind(loss)), found.w)
    at = form.start(found.w, found.state)
    assert form.residual(at) < 1e-3
    before = SOLVERS[name](eps=1e-3, stopping=NEVER, max_iterations=found.iterations - 1).minimize(
        loss, penalty, np.zeros(loss.size)
    )
    assert form.residual(form.start(before.w, before.state)) >= 1e-3


@every_solver
@pytest.mark.parametrize("penalty", [penalty_of(GroupLinf), L1(1.0)], ids=lambda p: p.name)
@pytest.mark.parametrize("k", [0, 1, 13])
def test_a_run_in_two_parts_gives_the_same_bits(name, penalty, k):
    loss = loss_of("pl")
    made = [SOLVERS[name](stopping=NEVER, max_iterations=n) for n in (k, k + 1, 2 * k + 1)]
    part = made[0].minimize(loss, penalty, np.zeros(loss.size))
    whole = made[2].minimize(loss, penalty, np.zeros(loss.size))
    for _ in range(2):
        rest = made[1].minimize(loss, penalty, part.w, resume=part.state)
        assert_array_equal(rest.w, whole.w)
        assert rest.value == whole.value


@pytest.mark.parametrize("first", SEARCHES)
@pytest.mark.parametrize("then", SEARCHES)
def test_another_line_search_may_go_on(first, then):
    loss, penalty = loss_of("pl"), penalty_of(GroupLinf)
    part = SPG(search=first, max_iterations=7, stopping=NEVER).minimize(loss, penalty, np.zeros(loss.size))
    kept = Reference(then, memory=3).start(part.value, part.state)
    if first != then:
        assert list(kept) == list(Reference(then).start(part.value, {}))
    elif then == "gll":
        assert list(kept) == part.state["reference"][-3:].tolist()
    rest = SPG(search=then, stopping=GradientNorm(1e-5)).minimize(loss, penalty, part.w, resume=part.state)
    assert rest.value < optimum("pl", GroupLinf).value * (1 + 1e-8)


@every_solver
def test_the_usual_stopping_and_a_warm_start(name):
    loss, penalty = loss_of("pl"), penalty_of(GroupLinf)
    usual = make_solver(name).minimize(loss, penalty, np.zeros(loss.size))
    assert usual.status is Status.CONVERGED
    assert usual.value < optimum("pl", GroupLinf).value * (1 + 1e-4)
    again = make_solver(name, stopping=PeriodDecrease()).minimize(loss, penalty, usual.w)
    assert again.value <= usual.value * (1 + 1e-6)


@every_solver
def test_what_is_not_handled_is_refused_before_the_first_evaluation(name):
    class Other(L1):
        kinds = frozenset({"other"})

    loss = logistic(0)
    with pytest.raises(CapabilityError, match=f"{name} minimises penalties of kind"):
        SOLVERS[name]().minimize(loss, Other(1.0), np.zeros(loss.size))
    assert loss.calls == 0


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (SPG, {"step_rule": "bb3"}),
        (SPG, {"search": "exact"}),
        (AGPM, {"eps": -1.0}),
        (AGPM, {"kappa": 1.0}),
        (SPG, {"memory": 0}),
        (AGPM, {"eta": 1.5}),
        (AGPM, {"nu": 0.0}),
        (Zhou, {"first_step": 0.0}),
        (Zhou, {"max_iterations": -1}),
        (PQN, {"memory": 0}),
        (PQN, {"memory": 1.5}),
        (ADMM, {"memory": 1.5}),
        (PQN, {"inner_iterations": 0}),
        (PQN, {"accuracy": 1.0}),
        (PQN, {"eps": math.nan}),
        (ADMM, {"rho": 0.0}),
        (ADMM, {"relaxation": 2.0}),
        (ADMM, {"inner_steps": 0}),
        (ADMM, {"memory": 0}),
    ],
)
def test_options_that_cannot_be(make, options):
    with pytest.raises(ParameterError, match=next(iter(options))):
        make(**options)


@pytest.mark.parametrize("options", [{"adaptive": False, "rho": 5.0}, {"relaxation": 1.0}, {"rho": 1e-3}, {"rho": 1e3}])
def test_admm_with_other_constants(options):
    loss, best = loss_of("pl"), optimum("pl", GroupLinf)
    found = ADMM(stopping=GradientNorm(1e-5), **options).minimize(loss, penalty_of(GroupLinf), np.zeros(loss.size))
    assert abs(found.value - best.value) < 1e-6 * best.value


# --- curvature


def test_the_matrix_of_pairs():
    """B by rank-two updates from σI; −direction solves it, also with a shift of all pairs."""
    rng = np.random.default_rng(0)
    half = rng.normal(size=(5, 5))
    A = half @ half.T + np.eye(5)
    x = rng.normal(size=(5, 5))
    pairs = SecantPairs(3)
    for a, b in pairwise(x):
        pairs = pairs.after(a, A @ a, b, A @ b)
    assert len(pairs) == 3
    for shift in (0.0, 2.5):
        shifted = [(s, y + shift * s) for s, y in pairs.pairs]
        s, y = shifted[-1]
        B = (y @ y) / (s @ y) * np.eye(5)
        for s, y in shifted:
            B = B - np.outer(B @ s, B @ s) / (s @ B @ s) + np.outer(y, y) / (s @ y)
        g = rng.normal(size=5)
        assert_allclose(pairs.direction(g, shift), -np.linalg.solve(B, g), rtol=1e-8)
        if shift == 0.0:
            assert_allclose(pairs.product(g), B @ g, rtol=1e-8)
    assert pairs.after(x[0], x[0], x[1], 2 * x[0] - x[1]) is pairs  # negative curvature is not taken


# --- the data


def test_random_pairwise_is_seeded_and_has_the_shapes_it_says():
    a, b, c = (random_pairwise(6, 3, 20, seed=seed) for seed in (1, 1, 2))
    assert_array_equal(a.Y, b.Y)
    assert_array_equal(a.X, b.X)
    assert (a.X != c.X).any()
    assert a.edge_weights.shape == (len(a.edges), 3, 7)
    assert set(map(tuple, a.edges.tolist())) <= set(combinations(range(6), 2))
    assert len(random_pairwise(6, 0, 5, edge_probability=0.0).edges) == 0
    assert len(random_pairwise(6, 0, 5, edge_probability=1.0).edges) == 15
    assert a[3:8].Y.tolist() == a.Y[3:8].tolist()
    for bad in ({"n_nodes": 0}, {"n_samples": 0}, {"n_features": -1}, {"edge_probability": 1.1}):
        with pytest.raises(ParameterError, match=next(iter(bad))):
            random_pairwise(**{"n_nodes": 3, "n_features": 1, "n_samples": 2} | bad)


def test_random_pairwise_draws_from_the_field_it_gives():
    table = random_pairwise(4, 0, 20_000, seed=5)
    data = table[:1].data(Graph(4, table.edges))
    field = untied_field(data, 2)
    w = np.concatenate([table.node_weights.ravel(), table.edge_weights.ravel()])
    run = Enumerate().run(field.potentials(data, w))
    assert_allclose(table.Y.mean(axis=0), run.nodes[:, 1], atol=0.015)
    for (i, j), p in zip(table.edges, run.edges, strict=True):
        assert_allclose((table.Y[:, i] * table.Y[:, j]).mean(), p[1, 1], atol=0.015)
    assert (np.abs(table.edge_weights).max(axis=(1, 2)) < 5).all()


@pytest.mark.parametrize("name", ["agpm", "spg", "zhou"])
@pytest.mark.parametrize("kind", KINDS)
def test_values_that_rise_for_a_while_are_no_end(name, kind):
    # with tolerance 0 nothing but rounding may end a run
    loss, best = loss_of("pl"), optimum("pl", kind)
    for period in (2, 3, 10):
        solver = SOLVERS[name](stopping=PeriodDecrease(0.0, period))
        found = solver.minimize(loss, penalty_of(kind), np.zeros(loss.size))
        assert found.optimality < 1e-4
        assert found.value <= best.value * (1 + 1e-9)


def test_the_spread_of_a_period():
    def rows(*values):
        return [TraceRow(k, value, 1.0, k, 0.0, 0) for k, value in enumerate(values)]

    w = np.zeros(1)
    risen = rows(10.0, 5.0, 6.0, 5.00001)
    assert PeriodDecrease(1e-4, 2).satisfied(risen, w)  # what it is for: noise
    assert not PeriodSpread(1e-4, 2).satisfied(risen, w)
    assert PeriodSpread(1e-4, 2).satisfied(rows(10.0, 5.0, 5.0001, 5.00005), w)
    assert not PeriodSpread(0.0, 2).satisfied(rows(5.0, 5.0), w)
    assert PeriodSpread(0.0, 2).satisfied(rows(5.0, 5.0, 5.0), w)
    rule = for_values_that_rise(AnyOf((PeriodDecrease(0.5, 3), GradientNorm(0.1))))
    assert rule == AnyOf((PeriodSpread(0.5, 3), GradientNorm(0.1)))
    with pytest.raises(ParameterError, match="period"):
        PeriodSpread(period=0)
