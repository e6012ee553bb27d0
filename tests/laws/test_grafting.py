"""The Grafting family on a regression that can grow: optima, selection, what it counts, candidates that come later."""

import numpy as np
import pytest
from functions import logistic
from growing import GrowingRegression, growing_regression
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from crfkit.errors import CapabilityError, ParameterError
from crfkit.penalties import L1, L2, ByBlock, ElasticNet, GroupL2, GroupLinf, NoPenalty
from crfkit.protocols import GrowingLoss
from crfkit.result import Status
from crfkit.solvers import GaussSeidel, GradientNorm, Grafting, GraftingLight, make_solver
from crfkit.solvers.owlqn import OWLQN
from crfkit.solvers.parts.loop import Steps
from crfkit.solvers.parts.moving import Moving
from crfkit.solvers.parts.objective import Objective, extended
from crfkit.training.path import regularisation_path

FAMILY = {
    "light": GraftingLight,
    "light, 3 steps": lambda **options: GraftingLight(inner_steps=3, **options),
    "grafting": Grafting,
    "grafting from the origin": lambda **options: Grafting(restart="origin", **options),
    "gauss-seidel": GaussSeidel,
}
PENALTIES = [L1(2.0), ElasticNet(1.5, 0.5), ByBlock(GroupL2, 3.0, L2(0.1)), ByBlock(GroupLinf, 3.0), ByBlock(L1, 2.0)]
every_member = pytest.mark.parametrize("name", FAMILY)


def solve(loss, penalty, name="light", w0=None, resume=None, **options):
    return FAMILY[name](**options).minimize(loss, penalty, np.zeros(loss.size) if w0 is None else w0, (), resume)


def in_full(result, loss):
    """The weights of all columns."""
    w = np.zeros(loss.whole().size)
    w[(result.loss or loss).columns] = result.w
    return w


def best(loss, penalty):
    """The whole problem at once."""
    whole = loss.whole()
    name = "owlqn" if not isinstance(penalty, ByBlock) else "fista"
    solver = make_solver(name, stopping=GradientNorm(1e-8), max_iterations=20_000)
    return solver.minimize(whole, penalty, np.zeros(whole.size))


def violation(loss, penalty, w):
    """The largest component of the least sub-gradient at w of all columns."""
    whole = loss.whole()
    bound = penalty.bind(whole)
    return np.abs(Objective(whole, bound).at(w).subgradient).max()


def test_the_regression_keeps_the_contract():
    loss = growing_regression()
    assert isinstance(loss, GrowingLoss)
    assert loss.n_candidates == 12
    larger, place = loss.activate([5, 2])
    assert larger.active_ids.tolist() == [2, 5]
    assert larger.n_candidates == 10
    w = np.array([0.7])
    assert larger.at(extended(w, place, larger.size)).value == loss.at(w).value


@pytest.mark.parametrize(
    ("name", "penalty", "select_unit"),
    [(n, p, (4, 1)[(i + k) % 2]) for i, n in enumerate(FAMILY) for k, p in enumerate(PENALTIES)],
    ids=lambda x: getattr(x, "name", x),
)
def test_the_optimum_of_all_candidates(name, penalty, select_unit):
    loss = growing_regression(1)
    expected = best(loss, penalty)
    result = solve(loss, penalty, name, select_unit=select_unit)
    assert result.status is Status.CONVERGED
    assert -1e-9 < result.value / expected.value - 1 < 1e-5
    tight = solve(loss, penalty, name, select_unit=select_unit, stopping=GradientNorm(1e-6))
    assert_allclose(tight.value, expected.value, rtol=1e-9)
    assert violation(loss, penalty, in_full(tight, loss)) <= 1e-5
    assert_allclose(in_full(tight, loss), expected.w, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "inner"), [("grafting", {"owlqn"}), ("grafting from the origin", {"owlqn"}), ("gauss-seidel", {"owlqn"}),
                        ("light", set())]
)  # fmt: skip
def test_minimisations_within_a_step_are_iterations_of_the_one_loop(name, inner, monkeypatch):
    """They stop by its rules, and every step of any solver is made by it."""
    loops, inside = [], []
    iterate, step = Steps.__iter__, OWLQN.step

    def watched(self):
        loops.append(self.solver.name)
        inside.append(self.solver.name)
        yield from iterate(self)
        inside.pop()

    def stepped(self, objective, state):
        assert name == "light" or inside[-1] == "owlqn"
        return step(self, objective, state)

    monkeypatch.setattr(Steps, "__iter__", watched)
    monkeypatch.setattr(OWLQN, "step", stepped)
    result = solve(growing_regression(1), L1(2.0), name, select_unit=2)
    assert loops[0] == result.state["solver"]
    assert set(loops[1:]) == inner
    assert len(loops) - 1 in (0, result.iterations)


@settings(max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    name=st.sampled_from(sorted(FAMILY)),
    unit=st.integers(1, 8),
    strength=st.sampled_from([0.5, 2.0, 8.0]),
    size=st.integers(1, 3),
    rest=st.integers(0, 2),
)
def test_random_regressions(seed, name, unit, strength, size, rest):
    loss = growing_regression(seed, n_blocks=8, size=size, samples=60, rest=rest)
    penalty = ElasticNet(strength, 0.1)
    result = solve(loss, penalty, name, select_unit=unit, stopping=GradientNorm(1e-6))
    assert_allclose(result.value, best(loss, penalty).value, rtol=1e-9)


@every_member
def test_a_strength_that_selects_nothing(name):
    loss = growing_regression(rest=0)
    result = solve(loss, L1(1e4), name)
    assert result.status is Status.CONVERGED
    assert result.loss is None
    assert result.w.shape == (0,)
    assert result.optimality == 0.0
    assert result.trace[-1].extra["selected"] == 0


@every_member
def test_weights_that_are_always_on_are_optimised_though_nothing_is_selected(name):
    loss = growing_regression(2, rest=2)
    penalty = ByBlock(L1, 1e4, L2(0.3))
    result = solve(loss, penalty, name, stopping=GradientNorm(1e-7))
    assert result.loss is None
    assert_allclose(result.value, best(loss, penalty).value, rtol=1e-9)


@every_member
def test_counts_are_those_of_the_loss(name):
    loss = growing_regression(3)
    result = solve(loss, L1(2.0), name, select_unit=2)
    assert (result.evaluations, result.passes) == (loss.calls["at"], loss.calls["candidates"])
    last = result.trace[-1]
    assert last.extra["selected"] == len(result.loss.active_ids)
    assert last.nonzeros == np.count_nonzero(result.w) < result.loss.size
    assert [row.extra["passes"] for row in result.trace] == sorted(row.extra["passes"] for row in result.trace)


@pytest.mark.parametrize("name", ["light", "grafting"])
def test_no_selection_exceeds_its_unit(name):
    selected = [row.extra["selected"] for row in solve(growing_regression(4), L1(1.0), name, select_unit=2).trace]
    assert max(np.diff([0, *selected])) == 2


def test_the_most_violating_come_first():
    loss = growing_regression(5)
    ids, scores = loss.candidates(loss.at(np.zeros(1)), "max", 2.0)
    assert list(scores) == sorted(scores, reverse=True)
    result = solve(loss, L1(2.0), select_unit=3, max_iterations=0)
    assert result.status is Status.MAX_ITERATIONS
    assert sorted(ids[:3]) == result.loss.active_ids.tolist()
    assert_allclose(result.optimality, np.linalg.norm(np.r_[excess(loss, result), scores[3:] - 2.0]))


def excess(loss, result):
    whole = Objective(loss.whole(), L1(2.0)).at(np.zeros(loss.whole().size)).subgradient
    return whole[result.loss.columns]


def test_grafting_light_is_owlqn_once_everything_is_on():
    loss = growing_regression(6).whole()
    light, full = solve(loss, L1(2.0)), OWLQN().minimize(loss, L1(2.0), np.zeros(loss.size))
    assert [row.value for row in light.trace] == [row.value for row in full.trace]
    assert light.evaluations == full.evaluations


def test_curvature_outlives_growth():
    loss = growing_regression(7).activate([1, 3, 8])[0]
    objective, solver = Objective(loss, L1(1.0)), OWLQN()
    state = solver.init(objective, np.zeros(loss.size), {})
    for _ in range(5):
        state = solver.step(objective, state)
    larger, place = loss.activate([0, 5])
    point = Objective(larger, L1(1.0)).at(extended(state.point.w, place, larger.size))
    old, new = state.curvature, state.curvature.extended(place, larger.size)
    assert len(new) == len(old) > 0
    p = np.random.default_rng(0).normal(size=loss.size)
    assert np.array_equal(new.index, np.flatnonzero(point.w))

    def along(curvature, p):
        none = np.zeros(0, dtype=np.int64)
        return curvature.direction(Moving(curvature.index, p[curvature.index], none, np.zeros(0), 0.0))[0]

    assert_allclose(along(new, extended(p, place, larger.size)), along(old, p))


@every_member
def test_batches_of_candidates_lead_to_the_same_optimum(name):
    whole = growing_regression(8, n_blocks=12)

    def columns(first, last):
        chosen = (whole.blocks >= first) & (whole.blocks < last)
        return whole.X[:, chosen], whole.blocks[chosen]

    start = GrowingRegression(whole.X[:, whole.blocks < 4], whole.y, whole.blocks[whole.blocks < 4])
    batches = [columns(4, 8), columns(8, 12)]
    result = solve(start, L1(2.0), name, select_unit=2, batches=batches, stopping=GradientNorm(1e-6))
    assert_allclose(result.value, best(whole, L1(2.0)).value, rtol=1e-9)
    assert result.loss.active_ids.max() >= 8
    assert_allclose(in_full(result, whole), best(whole, L1(2.0)).w, atol=1e-4)


@pytest.mark.parametrize("name", ["light", "grafting", "gauss-seidel"])
def test_a_run_goes_on_where_it_was(name):
    loss, rule = growing_regression(9), GradientNorm(1e-6)
    whole = solve(loss, L1(1.0), name, select_unit=2, stopping=rule)
    part = solve(loss, L1(1.0), name, select_unit=2, stopping=rule, max_iterations=2)
    assert part.status is Status.MAX_ITERATIONS
    rest = solve(part.loss, L1(1.0), name, part.w, part.state, select_unit=2, stopping=rule)
    assert rest.value == whole.value
    assert rest.iterations + 2 == whole.iterations
    others = np.setdiff1d(np.arange(12), part.loss.active_ids)[: len(part.loss.active_ids)]
    with pytest.raises(ParameterError, match="other blocks"):
        solve(loss.activate(others)[0], L1(1.0), name, part.w, part.state)


@every_member
def test_a_run_that_goes_on_takes_no_batch_twice(name):
    whole = growing_regression(8, n_blocks=12)
    start = GrowingRegression(whole.X[:, whole.blocks < 4], whole.y, whole.blocks[whole.blocks < 4])
    late = whole.blocks >= 4
    options = {"batches": [(whole.X[:, late], whole.blocks[late])], "stopping": GradientNorm(1e-6)}
    done = solve(start, L1(2.0), name, **options)
    assert done.state["batches"] == 1
    again = solve(done.loss, L1(2.0), name, done.w, done.state, **options)
    assert again.loss is None
    assert np.array_equal(done.loss.blocks, whole.blocks)
    assert again.value <= done.value


@pytest.mark.parametrize("restart", ["last", "origin"])
def test_a_minimisation_that_was_cut_short_is_not_the_end(restart):
    loss = growing_regression(1)
    options = {"restart": restart, "inner_iterations": 1, "select_unit": 1000, "stopping": GradientNorm(1e-7)}
    result = Grafting(**options).minimize(loss, L1(1.0), np.zeros(loss.size))
    assert result.status is Status.CONVERGED
    assert_allclose(result.value, best(loss, L1(1.0)).value, rtol=1e-9)


@every_member
def test_where_only_rounding_is_left_the_run_ends_and_says_so(name):
    result = solve(growing_regression(1), L1(1.0), name, stopping=GradientNorm(1e-30), max_iterations=2000)
    assert result.status is Status.ROUNDING
    assert result.optimality < 1e-9


def test_an_interrupt_leaves_weights_and_loss_that_fit():
    class Interrupted(GrowingRegression):
        def at(self, w, warm=None):
            if self.calls["at"] == 6:
                raise KeyboardInterrupt
            return super().at(w, warm)

        def activate(self, ids):
            larger, place = super().activate(ids)
            return Interrupted(self.X, self.y, self.blocks, larger.active_ids, self.calls), place

    toy = growing_regression(10)
    for name in FAMILY:
        result = solve(Interrupted(toy.X, toy.y, toy.blocks), L1(1.0), name, select_unit=1)
        assert result.status is Status.INTERRUPTED
        assert result.w.shape == ((result.loss or toy).size,)


@every_member
def test_what_cannot_be_minimised_is_said_first(name):
    loss = logistic()
    with pytest.raises(CapabilityError, match="needs candidates"):
        solve(loss, L1(1.0), name)
    assert loss.calls == 0
    loss = growing_regression()
    for penalty in (NoPenalty(), L2(1.0)):
        with pytest.raises(CapabilityError, match="all candidates would be selected"):
            solve(loss, penalty, name)
    with pytest.raises(CapabilityError, match="not smooth"):
        solve(loss, GroupL2(1.0, [0]), name)
    assert loss.calls["at"] == 0
    with pytest.raises(CapabilityError, match="blocks that can be switched on"):
        make_solver("fista").minimize(logistic(), ByBlock(GroupL2, 1.0), np.zeros(6))


@pytest.mark.parametrize("kind", [GraftingLight, Grafting, GaussSeidel])
def test_options_are_checked(kind):
    for unit in (0, -1, 1.5, True):
        with pytest.raises(ParameterError, match="select_unit"):
            kind(select_unit=unit)
    with pytest.raises(ParameterError, match="memory"):
        kind(memory=1.5)
    with pytest.raises(ParameterError, match="inner_steps"):
        GraftingLight(inner_steps=0)
    with pytest.raises(ParameterError, match="restart"):
        Grafting(restart="nowhere")


@pytest.mark.parametrize("penalty", [L1(1.0), ByBlock(GroupL2, 1.0, L2(0.2))], ids=lambda penalty: penalty.name)
def test_a_path_goes_on_with_what_was_selected(penalty):
    loss = growing_regression(11, rest=1)
    solver = GraftingLight(select_unit=2, stopping=GradientNorm(1e-6))
    points = regularisation_path(loss, penalty, n=5, ratio=0.1, solver=solver)
    selected = [point.result.trace[-1].extra["selected"] for point in points]
    assert selected[0] == 0
    assert selected == sorted(selected)
    assert selected[-1] > 3
    for point in points:
        assert_allclose(point.value, best(loss, penalty.at(point.strength)).value, rtol=1e-7)


def test_a_path_takes_batches_once_and_grafts_by_default():
    whole = growing_regression(8, n_blocks=12)
    few, late = whole.blocks < 4, whole.blocks >= 4
    start = GrowingRegression(whole.X[:, few], whole.y, whole.blocks[few])
    solver = GraftingLight(batches=[(whole.X[:, late], whole.blocks[late])], stopping=GradientNorm(1e-6))
    points = regularisation_path(start, L1(), [4.0, 2.0], solver=solver)
    assert np.array_equal(points[-1].result.loss.blocks, whole.blocks)
    usual = regularisation_path(whole, L1(), [4.0, 2.0])
    for mine, other in zip(points, usual, strict=True):
        assert_allclose(mine.value, other.value, rtol=1e-4)
        assert_allclose(mine.value, best(whole, L1(mine.strength)).value, rtol=1e-8)


# --- penalties by block


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from([L1, GroupL2, GroupLinf]),
    rest=st.sampled_from([None, L2(0.5), L1(0.3), ElasticNet(0.2, 0.4)]),
)
def test_by_block_is_the_sum_of_its_parts(seed, kind, rest):
    loss = growing_regression(rest=3, n_blocks=3, size=2).whole()
    rng = np.random.default_rng(seed)
    w = np.where(rng.random(loss.size) < 0.3, 0.0, rng.normal(size=loss.size))
    bound = ByBlock(kind, 0.7, rest).bind(loss)
    on = loss.block_index >= 0
    blocks = L1(0.7) if kind is L1 else kind(0.7, loss.block_index[on])
    assert_allclose(bound.value(w), blocks.value(w[on]) + (0.0 if rest is None else rest.value(w[~on])))
    smooth, corners = bound.split()
    assert_allclose((smooth.value(w) if smooth else 0.0) + corners.value(w), bound.value(w))
    near = corners.prox(w, 0.5)
    assert_allclose(near[on], blocks.prox(w[on], 0.5))
    for _ in range(5):  # nothing near it is better
        other = near + 1e-3 * rng.normal(size=loss.size)
        assert _moreau(corners, w, near) <= _moreau(corners, w, other) + 1e-15
    if smooth:
        gradient = np.zeros(loss.size)
        smooth.add_gradient(w, gradient)
        assert np.all(gradient[on] == 0)
        assert_allclose(gradient[~on], rest.split()[0].strength * w[~on])


def _moreau(corners, w, x):
    return 0.5 * np.sum((x - w) ** 2) + 0.5 * corners.value(x)


def test_by_block_checks_what_it_is_given():
    for wrong in ({"kind": L2}, {"kind": L1, "strength": -1.0}, {"kind": L1, "rest": L2}):
        with pytest.raises(ParameterError):
            ByBlock(**wrong)
    with pytest.raises(ParameterError, match=r"use bind\(loss\)"):
        ByBlock(L1).value(np.zeros(3))
