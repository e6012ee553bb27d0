"""Structured penalty × solver on losses that can grow: one optimum, whoever switches the blocks on."""

from functools import cache

import numpy as np
import pytest
from compatibility import compatible
from growing import growing_regression
from optima import reach

from crfkit.errors import CapabilityError
from crfkit.losses import StructurePseudoLikelihood
from crfkit.penalties import L1, L2, Blockwise, ByBlock, ElasticNet, GroupL1, GroupL2, GroupLinf
from crfkit.solvers import SOLVERS, GradientNorm, make_solver
from crfkit.solvers.parts.proximal_newton import ProximalNewton
from crfkit.structure.observations import Observations

PENALTIES = [
    L1(6.0),
    GroupL2(9.0),
    GroupLinf(16.0),
    GroupL1(6.0),
    ByBlock(L1, 6.0, L2(0.5)),
    ByBlock(GroupL2, 9.0, L1(0.5)),
    ByBlock(GroupLinf, 16.0, ElasticNet(0.2, 0.5)),
    ByBlock(GroupL1, 6.0),
]
NAMED = [
    Blockwise({"node": L2(0.5), "edge": L1(6.0)}),
    Blockwise({"node": L1(0.2), "edge": GroupL2(9.0)}),
    Blockwise({"edge": GroupLinf(16.0)}),
    Blockwise({"node": L2(0.5), "edge": ElasticNet(6.0, 0.1)}),
]
GROW = {name for name, solver in SOLVERS.items() if "candidates" in solver.needs}
SLOW = {"smd", "rda", "sgd", "asgd"}


@cache
def loss_of(name):
    if name == "regression":
        return growing_regression(seed=3, n_blocks=8, size=2, samples=60)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 3, size=(60, 4))
    rows[:, 1] = np.where(rng.random(60) < 0.7, rows[:, 0], rows[:, 1])
    return StructurePseudoLikelihood(Observations.of(rows, [3] * 4))


@cache
def whole(name):
    loss = loss_of(name)
    ids, _ = loss.candidates(loss.at(np.zeros(loss.size)), above=-1.0)
    return loss.activate(ids)[0]


@cache
def optimum(name, penalty):
    loss = whole(name)
    solver = make_solver("fista", stopping=GradientNorm(1e-9), max_iterations=100_000, backtracking=True)
    result = solver.minimize(loss, penalty, np.zeros(loss.size))
    assert result.optimality < 1e-5
    used = set(np.asarray(loss.block_index)[result.w != 0].tolist()) - {-1}
    assert 0 < len(used) < len(loss.active_ids)  # some blocks are zero, some are not
    return result.value


# Each loss has every norm once: one of them as it is, the other in ByBlock.
CASES = [(("regression", "table")[(k + k // 4) % 2], p) for k, p in enumerate(PENALTIES)] + [
    ("table", p) for p in NAMED
]
every_case = pytest.mark.parametrize(("name", "penalty"), CASES, ids=lambda x: x if isinstance(x, str) else x.name)


@every_case
@pytest.mark.parametrize("solver", sorted(set(SOLVERS) - SLOW))
def test_one_optimum_over_all_blocks(solver, name, penalty):
    loss = whole(name)
    chosen = make_solver(solver, stopping=GradientNorm(1e-6), max_iterations=20_000)
    if not compatible(chosen, loss, penalty):
        with pytest.raises(CapabilityError, match=solver):
            chosen.minimize(loss, penalty, np.zeros(loss.size))
        return
    reach(chosen, loss, penalty, np.zeros(loss.size), optimum(name, penalty), 1e-6)


@every_case
@pytest.mark.parametrize("solver", sorted(GROW))
def test_the_same_where_the_solver_switches_blocks_on(solver, name, penalty):
    """All structured penalties go to the solvers that select, and all other solvers that have a prox go to them."""
    loss = loss_of(name)
    assert compatible(SOLVERS[solver], loss, penalty)
    chosen = make_solver(solver, stopping=GradientNorm(1e-6), max_iterations=20_000, select_unit=1)
    result = reach(chosen, loss, penalty, np.zeros(loss.size), optimum(name, penalty), 1e-6)
    assert len(result.loss.active_ids) < len(whole(name).active_ids)


@pytest.mark.parametrize("kind", [L1, GroupL2, GroupLinf])
def test_agpm_and_grafting_light_take_one_and_the_same_penalty(kind):
    penalty = kind(4.0) if kind is not L1 else ByBlock(L1, 4.0)
    for solver in ("agpm", "spg", "pqn", "fista", "grafting-light"):
        assert compatible(SOLVERS[solver], whole("table"), penalty)


@pytest.mark.parametrize(
    "penalty",
    [ByBlock(L1, 2.0, L2(0.5)), Blockwise({"node": L2(0.5), "edge": L1(2.0)}), Blockwise({"edge": GroupL2(2.0)})],
    ids=lambda penalty: penalty.name,
)
def test_proximal_newton(penalty):
    rng = np.random.default_rng(1)
    spins = rng.integers(0, 2, size=(80, 5))
    spins[:, 1] = np.where(rng.random(80) < 0.8, spins[:, 0], spins[:, 1])
    loss = StructurePseudoLikelihood(Observations.of(spins, 2, ising=True))
    found = ProximalNewton(tolerance=1e-8).minimize(loss, penalty, np.zeros(loss.size))
    other = make_solver("grafting-light", stopping=GradientNorm(1e-8)).minimize(loss, penalty, np.zeros(loss.size))
    assert abs(found.value - other.value) < 1e-9 * abs(other.value)


def test_parts_that_differ_cannot_choose_candidates():
    """Groups of the user's own do not grow, and names that a loss does not have are refused."""
    loss = loss_of("table")
    for penalty in (
        Blockwise({"node": L1(1.0)}),  # candidates would not be penalised
        Blockwise({"edge": GroupL2(1.0, np.zeros(0, dtype=int))}),
    ):
        with pytest.raises(CapabilityError, match="by block"):
            make_solver("grafting-light").minimize(loss, penalty, np.zeros(loss.size))
