"""ISTA, FISTA, OGM and RDA: one optimum, the rates of the papers, step lengths, exact zeros, going on later."""

import itertools
import pickle
from functools import cache

import numpy as np
import pytest
from functions import FunctionLoss, logistic, quadratic
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracle import make_problem

from crfkit.chain.encoding.sequences import learn
from crfkit.chain.training.train import ChainTraining
from crfkit.errors import CapabilityError, ParameterError
from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import tied_field
from crfkit.graph.graph import Graph
from crfkit.graph.inference.enumerate import Enumerate
from crfkit.graph.losses.likelihood import GraphLikelihood
from crfkit.graph.losses.pseudo import PseudoLikelihood
from crfkit.losses import ChainLikelihood
from crfkit.penalties import L1, L2, Blockwise, ElasticNet, GroupL2, GroupLinf, HuberL1, NoPenalty
from crfkit.protocols import NonsmoothPenalty
from crfkit.result import Status
from crfkit.solvers import (
    FISTA,
    ISTA,
    LBFGS,
    OGM,
    OWLQN,
    RDA,
    GradientNorm,
    PeriodDecrease,
    SuccessiveChanges,
    make_solver,
)
from crfkit.solvers.parts.envelope import Envelope
from crfkit.solvers.parts.lipschitz import SHRINK, bound_holds
from crfkit.solvers.parts.objective import Objective
from crfkit.synthetic import entity_corpus, gaussian_chains, labelled_words

TIGHT = GradientNorm(1e-7)
NEVER = GradientNorm(0.0)
SOLVERS = {
    "ista": ISTA,
    "ista, backtracking": lambda **o: ISTA(backtracking=True, **o),
    "fista": FISTA,
    "fista, restart none": lambda **o: FISTA(restart="none", **o),
    "fista, restart function": lambda **o: FISTA(restart="function", **o),
    "fista, backtracking": lambda **o: FISTA(backtracking=True, **o),
    "fista, backtracking, restart none": lambda **o: FISTA(backtracking=True, restart="none", **o),
    "mfista": lambda **o: FISTA(monotone=True, restart="none", **o),
    "mfista, restart": lambda **o: FISTA(monotone=True, **o),
    "ogm": OGM,
    "ogm, backtracking": lambda **o: OGM(backtracking=True, **o),
    "ogm, continuation": lambda **o: OGM(mu=1.0, continuation=0.1, **o),
}
every_solver = pytest.mark.parametrize("name", SOLVERS)
PENALTIES = [L1(1.5), ElasticNet(1.5, 0.5), L2(0.5)]


def grid_data(seed=0, shape=(6, 7), n_graphs=1):
    rng = np.random.default_rng(seed)
    graph = Graph.join([Graph.grid(shape)] * n_graphs)
    X = rng.normal(size=(graph.n_nodes, 5))
    labels = (X[:, 0] + 0.3 * X[:, 1] + rng.normal(size=graph.n_nodes) > 0).astype(int)
    edges = 0.7 * (X[graph.edges[:, 0]] * X[graph.edges[:, 1]])[:, :3]
    return GraphData.make(graph, X, edges, labels)


@cache
def loss_of(name):
    if name == "pseudo-likelihood":
        data = grid_data()
        return PseudoLikelihood(data, tied_field(data, 2, "ising", "ising"), 1)
    if name == "grids":
        data = grid_data(1, (3, 4), 24)
        return PseudoLikelihood(data, tied_field(data, 2, "ising", "ising"), 1)
    if name == "likelihood of a grid":
        data = grid_data(2, (3, 3))
        return GraphLikelihood(data, tied_field(data, 2, "ising", "ising"), Enumerate())
    made = make_problem(5, 3, (4, 6, 5, 3, 7, 2, 5, 4) * 3, 6, weights=True)
    return ChainLikelihood(made.data, made.field, 1)


@cache
def optimum(name, penalty):
    solver = OWLQN(stopping=GradientNorm(1e-9), max_iterations=5000)
    found = solver.minimize(loss_of(name), penalty, np.zeros(loss_of(name).size))
    assert found.optimality < 1e-6
    return found


def solve(name, loss, penalty, w0=None, **options):
    callbacks, resume = options.pop("callbacks", ()), options.pop("resume", None)
    options = {"stopping": TIGHT, "max_iterations": 20_000} | options
    w0 = np.zeros(loss.size) if w0 is None else w0
    return SOLVERS[name](**options).minimize(loss, penalty, w0, callbacks, resume)


def walk(solver, loss, penalty, w0=None):
    """(the result, all iterates)."""
    points = []
    w0 = np.zeros(loss.size) if w0 is None else w0
    result = solver.minimize(loss, penalty, w0, [lambda it: points.append(it.w.copy())])
    return result, np.array(points)


# --- one optimum


@every_solver
@pytest.mark.parametrize(
    ("loss", "penalty"),
    [*itertools.product(["pseudo-likelihood", "chain"], PENALTIES), ("likelihood of a grid", L1(1.5))],
    ids=lambda x: x if isinstance(x, str) else x.name,
)
def test_the_same_optimum_and_the_same_zeros(name, penalty, loss):
    best = optimum(loss, penalty)
    found = solve(name, loss_of(loss), penalty)
    assert found.status is Status.CONVERGED
    assert -1e-9 < (found.value - best.value) / best.value < 1e-6
    small = 1e-5  # weights of either solution that are as good as zero
    assert (np.abs(best.w)[found.w == 0] < small).all()
    assert (np.abs(found.w)[best.w == 0] < small).all()
    if penalty.split()[1] is not None:
        assert 0 < (found.w == 0).sum() < len(found.w)
    assert_allclose(found.value, loss_of(loss).at(found.w).value + penalty.value(found.w), rtol=1e-12)


@cache
def fista_value(penalty):
    return solve("fista", loss_of("pseudo-likelihood"), penalty).value


@pytest.mark.parametrize("name", ["ista, backtracking", "fista", "mfista, restart", "ogm"])
@pytest.mark.parametrize(
    "penalty",
    [
        GroupL2(1.0, [0, 0, 0, 1, 1, 1, 2, 2, -1, -1]),
        GroupLinf(1.0, [0, 0, 0, 1, 1, 1, 2, 2, -1, -1]),
        Blockwise({"node": L1(0.2), "edge": GroupL2(1.0, [0, 0, 1, 1])}, {"node": slice(0, 6), "edge": slice(6, 10)}),
        Blockwise({"node": L2(1.0), "edge": L1(1.0)}, {"node": slice(0, 6), "edge": slice(6, 10)}),
        HuberL1(0.5, 0.1),
    ],
    ids=lambda p: p.name,
)
def test_any_penalty_with_a_prox(name, penalty):
    """The sub-gradient of least norm is zero, by the penalties' own laws; and all solvers agree."""
    loss = loss_of("pseudo-likelihood")
    found = solve(name, loss, penalty)
    assert found.status is Status.CONVERGED
    assert found.optimality <= 1.01e-7 * max(1, np.linalg.norm(found.w))
    assert_allclose(found.value, fista_value(penalty), rtol=1e-12)


def test_all_zero_under_a_large_penalty():
    loss = loss_of("pseudo-likelihood")
    strength = L1().critical_strength(loss.at(np.zeros(loss.size)).grad)
    for name in SOLVERS:
        found = solve(name, loss, L1(1.01 * strength), np.ones(loss.size))
        assert (found.w == 0).all()
        assert found.optimality == 0.0


@every_solver
def test_linear_losses_that_the_penalty_bounds(name):
    loss = FunctionLoss(3, lambda w: (np.array([1.0, -0.5, 0.2]) @ w, np.array([1.0, -0.5, 0.2])))
    found = solve(name, loss, L1(2.0), np.array([3.0, -1.0, 0.5]))
    assert found.status is Status.CONVERGED
    assert (found.w == 0).all()


def test_what_they_cannot_do_is_refused():
    class Corner(NonsmoothPenalty):
        name, kinds = "corner", frozenset({"corner"})

    for solver in (ISTA(), FISTA(), OGM()):
        with pytest.raises(CapabilityError, match="penalties of kind prox only"):
            solver.minimize(quadratic()[0], Corner(), np.zeros(8))
    with pytest.raises(CapabilityError, match=r"does not support HuberL1"):
        RDA().minimize(loss_of("chain"), HuberL1(), np.zeros(loss_of("chain").size))


# --- the rates of the papers


def smooth_problem(seed):
    """(loss, L, w0): a logistic regression with the largest curvature that it can have."""
    loss = logistic(seed, n=8, spread=3.0)
    L = np.linalg.eigvalsh(loss.hessian(np.zeros(8)))[-1]
    return loss, L, np.random.default_rng(seed).normal(size=8)


@pytest.mark.parametrize("seed", range(5))
def test_ista_never_rises_and_keeps_its_rate(seed):
    """J(w_k) − J* ≤ L·‖w₀ − w*‖²/(2k)."""
    loss, L, w0 = smooth_problem(seed)
    best = OWLQN(stopping=GradientNorm(1e-9)).minimize(loss, L1(0.5), w0)
    for backtracking in (False, True):
        solver = ISTA(lipschitz=L, backtracking=backtracking, stopping=NEVER, max_iterations=300)
        found, _ = walk(solver, loss, L1(0.5), w0)
        values = np.array([row.value for row in found.trace])
        assert (np.diff(values) <= 1e-13 * values[:-1]).all()
        k = np.arange(1, len(values))
        factor = 2.0 if backtracking else 1.0  # L may have been doubled from just below
        bound = factor * L * np.linalg.norm(w0 - best.w) ** 2 / (2 * k)
        assert (values[1:] - best.value <= bound + 1e-10).all()


@pytest.mark.parametrize("options", [{}, {"monotone": True}, {"backtracking": True}], ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_fista_keeps_its_rate(seed, options):
    """J(w_k) − J* ≤ 2L·‖w₀ − w*‖²/(k + 1)², with the largest L where L varies."""
    loss, L, w0 = smooth_problem(seed)
    best = OWLQN(stopping=GradientNorm(1e-9)).minimize(loss, L1(0.5), w0)
    solver = FISTA(restart="none", lipschitz=L, stopping=NEVER, max_iterations=300, **options)
    found, _ = walk(solver, loss, L1(0.5), w0)
    values = np.array([row.value for row in found.trace])
    k = np.arange(1, len(values))
    factor = 2.0 if options.get("backtracking") else 1.0
    assert (values[1:] - best.value <= 2 * factor * L * np.linalg.norm(w0 - best.w) ** 2 / (k + 1) ** 2 + 1e-10).all()
    if options.get("monotone"):
        assert (np.diff(values) <= 1e-15 * values[:-1]).all()


@pytest.mark.parametrize("seed", range(3))
def test_restarts_pay_where_the_objective_is_strongly_convex(seed):
    """√κ iterations in place of κ; without restarts momentum is of no use there, to many digits."""
    loss = quadratic(seed, n=30, condition=300.0)[0]
    options = {"stopping": GradientNorm(1e-6), "max_iterations": 20_000}
    slow = [
        solver.minimize(loss, L1(0.1), np.zeros(30)) for solver in (ISTA(**options), FISTA(restart="none", **options))
    ]
    for restart in ("function", "gradient"):
        found = FISTA(restart=restart, **options).minimize(loss, L1(0.1), np.zeros(30))
        assert found.status is Status.CONVERGED
        assert found.iterations < 0.4 * min(other.iterations for other in slow)


def paper_ogm(loss, strength, mu, L, w0, steps):
    """Algorithm 2 as it stands (errata applied), with the optimal value Ψ_k of its second auxiliary function."""
    smooth = Objective(loss, HuberL1(strength, mu))
    theta, total, s_all, psi = w0, np.zeros_like(w0), [], []
    terms, thetas = [], [w0]
    for k in range(steps):
        at = smooth.at(theta)
        g = at.grad
        s = theta - g / L
        total = total + (k + 1) / 2 * g
        t = w0 - total / L
        terms.append(((k + 1) / 2, at.value, g, theta))
        psi.append(L / 2 * (t - w0) @ (t - w0) + sum(a * (f + d @ (t - x)) for a, f, d, x in terms))
        s_all.append(s)
        theta = 2 / (k + 3) * t + (k + 1) / (k + 3) * s
        thetas.append(theta)
    return np.array(thetas), np.array(s_all), np.array(psi), np.array([smooth.at(s).value for s in s_all])


def gradient_steps(loss, strength, mu, L, points):
    """s_k = θ_k − ∇J_μ(θ_k)/L, of which the theorems speak; the iterates are θ_k."""
    smooth = Objective(loss, HuberL1(strength, mu))
    return np.array([w - smooth.at(w).grad / L for w in points])


@pytest.mark.parametrize("mu", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_theorems_2_and_3(seed, mu):
    """(k+1)(k+2)/4·J_μ(s_k) ≤ Ψ_k, and J_μ(s_k) − J_μ* ≤ 2L·‖θ₀ − θ*‖²/((k+1)(k+2)) for all k."""
    loss, curvature, w0 = smooth_problem(seed)
    strength, steps = 0.5, 120
    L = curvature + strength / mu
    thetas, s, psi, values = paper_ogm(loss, strength, mu, L, w0, steps)
    solver = OGM(mu=mu, lipschitz=curvature, finish=False, tolerance=0.0, stopping=NEVER, max_iterations=steps)
    found, points = walk(solver, loss, L1(strength), w0)
    assert_allclose(points, thetas, atol=1e-9)
    assert_allclose(gradient_steps(loss, strength, mu, L, points[:-1]), s, atol=1e-9)
    k = np.arange(steps)
    assert ((k + 1) * (k + 2) / 4 * values <= psi * (1 + 1e-12) + 1e-10).all()
    best = LBFGS(stopping=GradientNorm(1e-10), max_iterations=5000).minimize(loss, HuberL1(strength, mu), w0)
    bound = 2 * L * np.linalg.norm(w0 - best.w) ** 2 / ((k + 1) * (k + 2))
    assert (values - best.value <= bound + 1e-10).all()
    # the trace shows the true objective
    assert_allclose([row.value for row in found.trace], [loss.at(w).value + 0.5 * np.abs(w).sum() for w in thetas])


@pytest.mark.parametrize("seed", range(3))
def test_theorem_3_while_l_grows(seed):
    loss, curvature, w0 = smooth_problem(seed)
    mu, strength = 0.1, 0.5
    options = {"mu": mu, "finish": False, "tolerance": 0.0, "stopping": NEVER}
    found, points = walk(OGM(lipschitz=curvature / 50, backtracking=True, max_iterations=150, **options),
                         loss, L1(strength), w0)  # fmt: skip
    assert curvature / 50 < found.state["lipschitz"] <= 2 * curvature
    L = found.state["lipschitz"] + strength / mu
    best = LBFGS(stopping=GradientNorm(1e-10), max_iterations=5000).minimize(loss, HuberL1(strength, mu), w0)
    steps = gradient_steps(loss, strength, mu, L, points)
    values = np.array([loss.at(w).value + HuberL1(strength, mu).value(w) for w in steps])
    k = np.arange(len(values))
    assert (values - best.value <= 2 * L * np.linalg.norm(w0 - best.w) ** 2 / ((k + 1) * (k + 2)) + 1e-10).all()


@given(seed=st.integers(0, 10**6), mu=st.sampled_from([0.01, 0.5, 3.0]))
def test_the_envelope_of_l1_is_hubers_function(seed, mu):
    w = np.random.default_rng(seed).normal(size=8)
    loss = quadratic(seed)[0]
    smoothed = Envelope(L1(0.7), mu).at(Objective(loss, L1(0.7)).at(w))
    huber = Objective(loss, HuberL1(0.7, mu)).at(w)
    assert_allclose(smoothed.smooth_value, huber.value, rtol=1e-12)
    assert_allclose(smoothed.grad, huber.grad, atol=1e-12)
    assert Envelope(L1(0.7), mu).lipschitz == HuberL1(0.7, mu).lipschitz()


BLOCKS = {"node": slice(0, 5), "edge": slice(5, 8)}


def envelope_of_blocks(seed, mu, penalty):
    """(the weights, the loss alone and with the penalty smoothed there, the envelope)"""
    w = np.random.default_rng(seed).normal(size=8)
    objective = Objective(quadratic(seed)[0], penalty)
    point = objective.at(w)
    envelope = Envelope(objective.nonsmooth, mu)
    return objective, point, envelope.at(point), envelope


@given(
    seed=st.integers(0, 10**6),
    mu=st.sampled_from([0.01, 0.5, 3.0]),
    strengths=st.tuples(*2 * [st.sampled_from([0.0, 0.1, 0.7, 30.0])]),
)
def test_in_every_block_the_envelope_of_l1_is_hubers_function_of_width_mu(seed, mu, strengths):
    """Whatever the strengths are: the width of a block was mu·strength/(the largest strength) once."""
    kinds = dict(zip(BLOCKS, strengths, strict=True))
    _, point, smoothed, envelope = envelope_of_blocks(seed, mu, Blockwise({b: L1(s) for b, s in kinds.items()}, BLOCKS))
    huber = {b: HuberL1(s, mu) for b, s in kinds.items() if s > 0}
    value = point.smooth_value + sum(h.value(point.w[BLOCKS[b]]) for b, h in huber.items())
    assert_allclose(smoothed.smooth_value, value, rtol=1e-12)
    grad = point.grad.copy()
    for b, h in huber.items():
        h.add_gradient(point.w[BLOCKS[b]], grad[BLOCKS[b]])
    assert_allclose(smoothed.grad, grad, atol=1e-11)
    assert envelope.lipschitz == pytest.approx(max((h.lipschitz() for h in huber.values()), default=0.0))


@given(seed=st.integers(0, 10**6), mu=st.sampled_from([0.05, 0.5]))
def test_the_envelope_of_blocks_bounds_the_penalty_and_has_its_gradient(seed, mu):
    """r − Σ_b s_b·μ·size_b/2 ≤ r_μ ≤ r (Theorem 1 of the paper); the slope along a direction by a difference."""
    strengths = {"node": 0.3, "edge": 4.0}
    penalty = Blockwise({b: L1(s) for b, s in strengths.items()}, BLOCKS)
    objective, point, smoothed, envelope = envelope_of_blocks(seed, mu, penalty)
    gap = point.value - smoothed.smooth_value
    most = sum(s * mu / 2 * (BLOCKS[b].stop - BLOCKS[b].start) for b, s in strengths.items())
    assert -1e-12 <= gap <= most + 1e-12
    d, step = np.random.default_rng(seed + 1).normal(size=8), 1e-6
    ahead, behind = (envelope.at(objective.at(point.w + sign * step * d)) for sign in (1, -1))
    slope = (ahead.smooth_value - behind.smooth_value) / (2 * step)
    assert_allclose(slope, smoothed.grad @ d, rtol=1e-5, atol=1e-4)
    change = np.linalg.norm(ahead.grad - behind.grad - (objective.at(ahead.w).grad - objective.at(behind.w).grad))
    assert change <= envelope.lipschitz * 2 * step * np.linalg.norm(d) * (1 + 1e-6) + 1e-9


def test_ogm_smooths_every_block_with_the_same_width():
    """Without a finish it minimises the sum of the loss and of Huber penalties of width mu, at its own rate."""
    loss, curvature, w0 = smooth_problem(0)
    half = len(w0) // 2
    blocks = {"first": slice(0, half), "second": slice(half, len(w0))}
    mu, strengths = 0.1, {"first": 0.05, "second": 0.5}
    options = {"mu": mu, "finish": False, "tolerance": 0.0, "stopping": NEVER, "max_iterations": 400}
    found = OGM(lipschitz=curvature, **options).minimize(
        loss, Blockwise({b: L1(s) for b, s in strengths.items()}, blocks), w0
    )
    huber = Blockwise({b: HuberL1(s, mu) for b, s in strengths.items()}, blocks)
    best = LBFGS(stopping=GradientNorm(1e-10), max_iterations=5000).minimize(loss, huber, w0)
    L = curvature + 0.5 / mu
    excess = loss.at(found.w).value + huber.value(found.w) - best.value
    assert excess <= 4 * L * np.linalg.norm(w0 - best.w) ** 2 / 400**2
    assert np.linalg.norm(found.w - best.w) < 0.1 * np.linalg.norm(w0 - best.w)


# --- phases of OGM


@pytest.mark.parametrize("penalty", [L1(1.5), ElasticNet(1.5, 0.5), GroupL2(1.0, [0, 0, 0, 1, 1, 1, 2, 2, -1, -1])],
                         ids=lambda p: p.name)  # fmt: skip
def test_ogm_evaluates_once_per_iteration_where_l_is_known(penalty):
    """And once more at the start; with backtracking twice, for s_k as well. Counted by the loss itself."""

    class Counting(PseudoLikelihood):
        count = 0

        def at(self, w, warm=None):
            self.count += 1
            return super().at(w, warm)

    data = grid_data()
    loss = Counting(data, tied_field(data, 2, "ising", "ising"), 1)
    options = {"finish": False, "tolerance": 0.0, "stopping": NEVER, "max_iterations": 40}
    found = OGM(**options).minimize(loss, penalty, np.zeros(loss.size))
    assert (found.iterations, found.evaluations, loss.count) == (40, 41, 41)
    assert [row.evaluations for row in found.trace] == list(range(1, 42))
    phases = OGM(mu=1.0, continuation=0.5, least_mu=0.25, **options | {"tolerance": 1e-2})
    found = phases.minimize(loss, penalty, np.zeros(loss.size))
    assert found.evaluations == 41 + 2  # the phases of μ = 0.5 and 0.25 begin with one more, at s
    checked = OGM(backtracking=True, **options).minimize(loss, penalty, np.zeros(loss.size))
    assert checked.evaluations >= 81


def test_smoothed_optima_have_no_zeros_and_the_finish_makes_them():
    loss = loss_of("pseudo-likelihood")
    for stopping in (PeriodDecrease(), SuccessiveChanges(1e-4, 1), TIGHT):
        rough = OGM(finish=False, stopping=stopping, max_iterations=2000).minimize(loss, L1(1.5), np.zeros(loss.size))
        found = OGM(stopping=stopping).minimize(loss, L1(1.5), np.zeros(loss.size))
        assert (rough.w != 0).all()
        assert found.status is Status.CONVERGED
        same = (found.w == 0) == (optimum("pseudo-likelihood", L1(1.5)).w == 0)
        assert same.all() if stopping is TIGHT else same.mean() > 0.75
        assert (found.w == 0).any()
        assert found.value < rough.value


def test_continuation_ends_nearer_to_the_true_optimum():
    loss, best = loss_of("pseudo-likelihood"), optimum("pseudo-likelihood", L1(1.5)).value
    gaps = []
    for continuation in (None, 0.1):
        options = {"finish": False, "tolerance": 1e-6, "stopping": PeriodDecrease(1e-7), "max_iterations": 3000}
        solver = OGM(mu=1.0, continuation=continuation, least_mu=1e-2, **options)
        gaps.append(solver.minimize(loss, L1(1.5), np.zeros(loss.size)).value - best)
    assert 0 < gaps[1] < 0.1 * gaps[0]


def test_a_centre_near_the_optimum_helps():
    loss, best = loss_of("pseudo-likelihood"), optimum("pseudo-likelihood", L1(1.5))
    options = {"finish": False, "tolerance": 0.0, "stopping": NEVER, "max_iterations": 30}
    values = [
        OGM(prox_center=centre, **options).minimize(loss, L1(1.5), np.zeros(loss.size)).value
        for centre in (best.w, None, 100.0 + best.w)
    ]
    assert values == sorted(values)
    with pytest.raises(ParameterError, match="prox_center has shape"):
        OGM(prox_center=np.zeros(3)).minimize(loss, L1(1.5), np.zeros(loss.size))


# --- how long steps are


def test_the_loss_s_own_constant_is_used():
    """Then nothing is checked: one evaluation for ISTA's iterations, at most two for the others."""
    loss = loss_of("pseudo-likelihood")
    for solver, most in ((ISTA(backtracking=False), 1), (FISTA(backtracking=False), 2), (OGM(backtracking=False), 2)):
        found = solver.minimize(loss, L1(1.5), np.zeros(loss.size))
        assert found.evaluations <= most * found.iterations + 1
        assert "lipschitz" not in found.state
    solver = ISTA(backtracking=False, max_iterations=1, stopping=NEVER)
    found, points = walk(solver, loss, ElasticNet(1.5, 2.0))
    step = 1 / (loss.lipschitz() + 2.0)
    assert_allclose(points[1], L1(1.5).prox(-step * loss.at(points[0]).grad, step), rtol=1e-9)


@cache
def stiff_loss():
    """The pseudo-likelihood of a grid with features of different sizes: its worst curvature is far from the usual."""
    rng = np.random.default_rng(11)
    graph = Graph.grid((12, 12))
    X = rng.normal(size=(graph.n_nodes, 8))
    labels = (2 * X[:, 0] + X[:, -1] + rng.normal(size=graph.n_nodes) > 0).astype(int)
    data = GraphData.make(graph, X * np.geomspace(1, 4, 8), None, labels)
    return PseudoLikelihood(data, tied_field(data, 2, "ising", "ising"), 1)


@pytest.mark.parametrize(
    ("kind", "times", "penalty"),
    [
        (ISTA, 4.0, L1(1.5)),
        (ISTA, 4.0, ElasticNet(1.5, 0.5)),
        (FISTA, 1.5, L1(1.5)),
        (FISTA, 1.5, ElasticNet(1.5, 0.5)),
        (FISTA, 1.5, GroupL2(5.0, [0, 0, 0, 1, 1, 1, 2, 2, -1, -1])),  # takes ISTA thousands of iterations
    ],
    ids=lambda x: getattr(x, "name", None),
)
def test_a_known_bound_is_a_ceiling_and_local_steps_are_longer(kind, times, penalty):
    """The same optimum in fewer iterations than with steps of 1/bound, and no step is shorter than that."""
    loss = stiff_loss()
    options = {"stopping": GradientNorm(1e-5), "max_iterations": 20_000}
    constants, w0 = [], np.zeros(loss.size)
    bound = loss.lipschitz() + (0.5 if penalty.name.startswith("Elastic") else 0.0)
    fixed = kind(backtracking=False, **options).minimize(loss, penalty, w0)
    found = kind(**options).minimize(loss, penalty, w0)
    assert fixed.status is found.status is Status.CONVERGED
    assert_allclose(found.value, fixed.value, rtol=1e-9)
    assert found.iterations * times < fixed.iterations, (found.iterations, fixed.iterations)
    assert found.evaluations < fixed.evaluations
    w, state = w0, None
    for _ in range(25):
        part = kind(max_iterations=1, stopping=NEVER).minimize(loss, penalty, w, resume=state)
        w, state = part.w, part.state
        constants.append(state["lipschitz"] / SHRINK)
    assert max(constants) <= bound * (1 + 1e-12)
    assert min(constants) < bound / 2


def test_a_ceiling_ends_the_doubling():
    """A bound far below the true curvature is never exceeded: steps at the ceiling are taken as they are."""
    inner = quadratic(3, condition=50.0)[0]

    class Bounded(FunctionLoss):
        capabilities = inner.capabilities | {"lipschitz"}

        def lipschitz(self):
            return 60.0

    loss = Bounded(8, inner.both)
    for kind in (ISTA, FISTA):
        w, state = np.ones(8), None
        for _ in range(60):
            found = kind(max_iterations=1, stopping=NEVER).minimize(loss, L1(0.1), w, resume=state)
            w, state = found.w, found.state
            if found.iterations == 0:
                break
            assert state["lipschitz"] <= SHRINK * 60.0 * (1 + 1e-12)
        best = OWLQN(stopping=TIGHT).minimize(loss, L1(0.1), np.ones(8))
        end = kind(stopping=GradientNorm(1e-6)).minimize(loss, L1(0.1), np.ones(8))
        assert_allclose(end.value, best.value, rtol=1e-9)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6), condition=st.sampled_from([1.0, 30.0, 1e3]), guess=st.sampled_from([None, 1e-3, 1e5])
)
def test_backtracking_finds_the_curvature(seed, condition, guess):
    """Of every step: dᵀAd ≤ L·dᵀd; and L is at most twice what any step needs, or shrinks from a larger guess."""
    loss = quadratic(seed, condition=condition)[0]
    A = loss.hessian(None)
    w, state = np.ones(8), None
    solver = ISTA(lipschitz=guess, backtracking=True, max_iterations=1, stopping=NEVER)
    for k in range(1, 8):
        found = solver.minimize(loss, L1(0.3), w, resume=state)
        if found.iterations == 0:
            break
        L, d = found.state["lipschitz"] / SHRINK, found.w - w
        assert d @ A @ d <= L * d @ d * (1 + 1e-6)
        limit = max(2 * condition, (guess or 0.0) * SHRINK ** (k - 1))
        assert limit * (1 + 1e-6) >= L
        w, state = found.w, found.state


@pytest.mark.parametrize("guess", [1e-6, 1e-2, 1e4])
@pytest.mark.parametrize("kind", [ISTA, FISTA, OGM])
def test_a_wrong_guess_is_put_right(kind, guess):
    loss = loss_of("chain")
    solver = kind(lipschitz=guess, backtracking=True, stopping=GradientNorm(1e-6), max_iterations=5000)
    found = solver.minimize(loss, L1(1.5), np.zeros(loss.size))
    assert found.status is Status.CONVERGED
    assert_allclose(found.value, optimum("chain", L1(1.5)).value, rtol=1e-9)


@pytest.mark.parametrize("kind", [ISTA, FISTA, OGM])
def test_a_constant_that_is_too_small_and_trusted_diverges_and_says_so(kind):
    loss = quadratic(1, condition=100.0)[0]
    found = kind(lipschitz=1.0, stopping=NEVER, max_iterations=3000).minimize(loss, L1(0.1), np.zeros(8))
    assert found.status is Status.DIVERGED


@pytest.mark.parametrize("kind", [ISTA, FISTA])
@pytest.mark.parametrize("offset", [0.0, 1e6, 1e12])
def test_rounding_of_values_does_not_shorten_steps(kind, offset):
    """A constant that drowns the changes of the loss: gradients decide, and L stays what it should be."""
    inner, _ = quadratic(2, condition=10.0)

    def both(w):
        value, gradient = inner.both(w)
        return value + offset, gradient

    solver = kind(stopping=GradientNorm(1e-7), max_iterations=500)
    found = solver.minimize(FunctionLoss(8, both), L1(0.1), np.zeros(8))
    assert found.status is Status.CONVERGED
    assert found.state["lipschitz"] <= 20.0
    assert_allclose(found.w, kind(stopping=TIGHT).minimize(inner, L1(0.1), np.zeros(8)).w, atol=1e-6)


def test_the_bound_itself():
    loss, _ = quadratic(4, condition=7.0)
    objective = Objective(loss, NoPenalty())
    A = loss.hessian(None)
    x, top = objective.at(np.ones(8)), np.linalg.eigh(A)[1][:, -1]
    for length in (1e-9, 1e-4, 1.0):
        new = objective.at(x.w + length * top)
        assert bound_holds(x, new, 7.01)
        assert not bound_holds(x, new, 6.9)
    assert not bound_holds(x, objective.at(np.full(8, np.nan)), 1e9)


# --- the start, and going on later


@pytest.mark.parametrize("kind", [ISTA, FISTA, OGM, RDA])
def test_random_starts(kind):
    loss = loss_of("chain")
    options = {"max_iterations": 3, "stopping": NEVER}
    runs = [
        kind(random_start=scale, seed=seed, **options).minimize(loss, L1(0.5), np.zeros(loss.size))
        for scale, seed in ((0.0, 0), (0.1, 0), (0.1, 0), (0.1, 1))
    ]
    first = [run.trace[0].value for run in runs]
    assert first[1] == first[2]
    assert len(set(first)) == 3
    assert (runs[1].w == runs[2].w).all()
    part = kind(random_start=0.1, **options).minimize(loss, L1(0.5), np.zeros(loss.size))
    rest = kind(random_start=0.1, **options).minimize(loss, L1(0.5), part.w, resume=part.state)
    whole = kind(random_start=0.1, **options | {"max_iterations": 6}).minimize(loss, L1(0.5), np.zeros(loss.size))
    assert (rest.w == whole.w).all()


@every_solver
@pytest.mark.parametrize("k", [0, 1, 9, 40])
@pytest.mark.parametrize("loss", ["pseudo-likelihood", "chain"])
def test_a_run_in_two_parts_gives_the_same_bits(name, k, loss):
    """Also in the middle of OGM's phases."""
    options = {"stopping": NEVER, "tolerance": 1e-3} if "ogm" in name else {"stopping": NEVER}
    part = solve(name, loss_of(loss), L1(1.5), max_iterations=k, **options)
    whole = solve(name, loss_of(loss), L1(1.5), max_iterations=2 * k + 1, **options)
    if part.status is not Status.MAX_ITERATIONS:
        return
    state = pickle.loads(pickle.dumps(dict(part.state)))
    rest = solve(name, loss_of(loss), L1(1.5), part.w, max_iterations=k + 1, resume=state, **options)
    assert (rest.w == whole.w).all()
    assert [row.value for row in part.trace + rest.trace[1:]] == [row.value for row in whole.trace]
    assert part.evaluations + rest.evaluations - 1 == whole.evaluations


@pytest.mark.parametrize("kind", [FISTA, OGM, RDA])
def test_a_state_of_another_size_is_refused(kind):
    loss, other = loss_of("chain"), loss_of("pseudo-likelihood")
    part = kind(max_iterations=2, stopping=NEVER).minimize(loss, L1(0.5), np.zeros(loss.size))
    state = {**part.state, "value": other.at(np.zeros(other.size)).value}
    with pytest.raises(ParameterError, match="weights"):
        kind().minimize(other, L1(0.5), np.zeros(other.size), resume=state)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *((kind, {"max_iterations": -1}) for kind in (ISTA, FISTA, OGM, RDA)),
        *((kind, {"random_start": bad}) for kind in (ISTA, FISTA, OGM, RDA) for bad in (-1.0, np.nan)),
        *((kind, {"lipschitz": bad}) for kind in (ISTA, FISTA, OGM) for bad in (0.0, -1.0, np.inf)),
        *((kind, {"backtracking": "yes"}) for kind in (ISTA, FISTA, OGM)),
        *((kind, {"seed": -1}) for kind in (ISTA, FISTA, OGM, RDA)),
        (FISTA, {"restart": "sometimes"}),
        *((OGM, {"mu": bad}) for bad in (0.0, -1.0, np.nan)),
        *((OGM, {"continuation": bad}) for bad in (0.0, 1.0, np.nan)),
        (OGM, {"least_mu": 0.0}),
        (OGM, {"tolerance": -1.0}),
    ],
    ids=str,
)
def test_options_out_of_range_are_refused(kind, options):
    with pytest.raises(ParameterError, match=next(iter(options))):
        kind(**options)


def test_no_backtracking_needs_a_constant():
    with pytest.raises(ParameterError, match="give lipschitz"):
        FISTA(backtracking=False).minimize(loss_of("chain"), L1(1.0), np.zeros(loss_of("chain").size))
    assert make_solver("fista", lipschitz=3.0).lipschitz == 3.0


# --- dual averaging


@pytest.mark.parametrize("loss", ["grids", "chain"])
@pytest.mark.parametrize("penalty", [L1(4.0), ElasticNet(6.0, 1.0), L2(1.0)], ids=lambda p: p.name)
def test_rda_comes_near_the_optimum_and_has_its_zeros(loss, penalty):
    best = optimum(loss, penalty)
    found = RDA(batch=6, stopping=NEVER).minimize(loss_of(loss), penalty, np.zeros(loss_of(loss).size))
    assert 0 <= found.value / best.value - 1 < 0.02
    if penalty.split()[1] is not None:
        zero, expected = found.w == 0, best.w == 0
        assert zero.any()
        assert (zero == expected).mean() > 0.75
    assert found.evaluations == found.iterations + 1


def test_rda_with_groups():
    loss = loss_of("grids")
    penalty = GroupL2(1.0, [0, 0, 0, 1, 1, 1, 2, 2, 2, 2])
    penalty = penalty.at(0.4 * penalty.critical_strength(loss.at(np.zeros(10)).grad))
    best = FISTA(stopping=TIGHT).minimize(loss, penalty, np.zeros(loss.size))
    found = RDA(batch=6, stopping=NEVER).minimize(loss, penalty, np.zeros(loss.size))
    assert found.value < 1.02 * best.value
    assert ((found.w == 0) == (best.w == 0)).all()
    assert (best.w == 0).any()


def test_rda_s_step_minimises_what_it_should():
    """By L-BFGS-B's twin: OWL-QN on ḡ·x + penalty(x) + γ/(2√k)·‖x − centre‖²."""
    loss = loss_of("grids")
    n, gamma, w0 = len(loss.data), 7.0, np.full(loss.size, 0.1)
    plain = RDA(batch=n, gamma=gamma, max_iterations=3, stopping=NEVER, adaptive=False, restart=False)
    found = plain.minimize(loss, ElasticNet(2.0, 1.0), w0)
    k, g = found.state["k"], found.state["total"] / found.state["k"]
    assert k == 3

    def both(x):
        pull = gamma / np.sqrt(k)
        return g @ x + 0.5 * pull * (x - w0) @ (x - w0), g + pull * (x - w0)

    slow = OWLQN(stopping=GradientNorm(1e-10)).minimize(FunctionLoss(loss.size, both), ElasticNet(2.0, 1.0), w0)
    assert_allclose(found.w, slow.w, atol=1e-7)


def test_rda_s_adaptive_step_minimises_what_it_should():
    """The same with γ·√(Σ g_i²)/k for each weight, since the restart before the third epoch."""
    loss = loss_of("grids")
    n, gamma, w0 = len(loss.data), 3.0, np.full(loss.size, 0.1)
    solver = RDA(batch=n, gamma=gamma, max_iterations=3, stopping=NEVER)
    points = []
    found = solver.minimize(loss, ElasticNet(2.0, 1.0), w0, [lambda iteration: points.append(iteration.w)])
    assert found.state["k"] == 1
    g = loss.at(points[2]).grad  # a mini-batch is all of the data
    assert_allclose(found.state["total"], g)
    assert (found.state["centre"] == points[2]).all()

    def both(x):
        pull = gamma * np.abs(g)
        return g @ x + 0.5 * pull @ (x - points[2]) ** 2, g + pull * (x - points[2])

    slow = OWLQN(stopping=GradientNorm(1e-10)).minimize(FunctionLoss(loss.size, both), ElasticNet(2.0, 1.0), w0)
    assert_allclose(found.w, slow.w, atol=1e-6)


def entities():
    sentences = entity_corpus(120, seed=7)
    near = [[["", *(word for word, _, _ in s), ""][k : k + 3] for k in range(len(s))] for s in sentences]
    X = [[[f"{k}={word}" for k, word in enumerate(words)] for words in sentence] for sentence in near]
    return X, [[label for _, _, label in s] for s in sentences]


def dense():
    X, y, _ = gaussian_chains(150, 30, 8, seed=7)
    return list(X), y.tolist()


CHAINS = {"entities": entities, "dense": dense, "words": lambda: labelled_words(200, 12, seed=7)}


@cache
def generated(name):
    corpus = learn(*CHAINS[name](), None, 1)
    training = ChainTraining(n_threads=1)
    field, _ = training.make_field(corpus.data, corpus.vocabulary, corpus.classes.tolist())
    return training.make_loss(corpus.data, field)


@pytest.mark.parametrize("penalty", [L1(1.0), L1(4.0), L2(1.0), ElasticNet(1.0, 1.0)], ids=lambda p: p.name)
@pytest.mark.parametrize("name", CHAINS)
def test_rda_ends_within_two_percent_of_the_optimum_with_its_own_options(name, penalty):
    loss = generated(name)
    best = make_solver("owlqn", stopping=GradientNorm(1e-5)).minimize(loss, penalty, np.zeros(loss.size))
    found = RDA().minimize(loss, penalty, np.zeros(loss.size))
    assert -1e-9 < found.value / best.value - 1 < 0.02
