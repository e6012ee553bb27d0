"""Loss × penalty × solver: every combination reaches the same optimum, or says why it cannot be tried."""

from functools import cache

import numpy as np
import pytest
from compatibility import compatible
from optima import reach
from oracle import make_problem

from crfkit.errors import CapabilityError
from crfkit.losses import ChainLikelihood, SoftmaxMargin, StructuredHinge
from crfkit.penalties import L1, L2, ElasticNet, NoPenalty
from crfkit.solvers import SOLVERS, GradientNorm, make_solver

LOSSES = {"likelihood": ChainLikelihood, "softmax margin": SoftmaxMargin, "hinge": StructuredHinge}
PENALTIES = [L2(0.5), L2(3.0), L1(0.8), ElasticNet(0.5, 0.5)]
# Relative; 1e-6 for those that see all data in every step.
STOCHASTIC = {name: 1e-3 for name, solver in SOLVERS.items() if solver.needs & {"online", "subset"}} | {"rda": 1e-2}
LEARNERS = {name for name, solver in SOLVERS.items() if "mistakes" in solver.needs}  # they have no objective


@cache
def problem(order: int):
    return make_problem(5, 3, (4, 6, 5, 3, 7, 2, 5, 4), 6, order=order, weights=True)


@cache
def optimum(name: str, penalty, order: int) -> float:
    """By OWL-QN where there are corners, by TRON elsewhere."""
    solver = make_solver(
        "tron" if penalty.split()[1] is None else "owlqn", stopping=GradientNorm(1e-9), max_iterations=5000
    )
    result = solver.minimize(loss_of(name, order), penalty, np.zeros(problem(order).field.size))
    assert result.optimality < 1e-5
    return result.value


def loss_of(name: str, order: int):
    return LOSSES[name](problem(order).data, problem(order).field, n_threads=1)


# Every solver meets every penalty, and each loss with and without corners; test_every_pair.py has every loss with every
# penalty. The order changes the loss, which a solver does not see, and updates of single sequences, which penalties do
# not see: with order 2, each loss has a penalty with corners or one without.
CASES = [(("likelihood", "softmax margin")[k % 2], penalty, 1) for k, penalty in enumerate(PENALTIES)]
CASES += [("likelihood", PENALTIES[2], 2), ("softmax margin", PENALTIES[0], 2)]


@pytest.mark.parametrize(("name", "penalty", "order"), CASES, ids=lambda p: getattr(p, "name", p))
@pytest.mark.parametrize("solver", sorted(set(SOLVERS) - LEARNERS))
def test_one_optimum(solver, name, penalty, order):
    loss = loss_of(name, order)
    options = {"stopping": GradientNorm(1e-7), "max_iterations": 20000}
    if solver in STOCHASTIC:
        options = {"stopping": GradientNorm(1e-3), "max_iterations": 2000}
    if solver == "sgd":
        options["step_size"] = 0.1
    chosen = make_solver(solver, **options)
    start = np.zeros(problem(order).field.size)
    if not compatible(chosen, loss, penalty):
        with pytest.raises(CapabilityError, match=solver):
            chosen.minimize(loss, penalty, start)
        return
    reach(chosen, loss, penalty, start, optimum(name, penalty, order), STOCHASTIC.get(solver, 1e-6), below=1e-9)


@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_the_hinge_is_for_those_that_can(solver):
    loss, start = loss_of("hinge", 1), np.zeros(problem(1).field.size)
    chosen = make_solver(solver, max_iterations=30)
    if chosen.needs <= loss.capabilities:
        result = chosen.minimize(loss, L2(0.5), start)
        assert result.value < result.trace[0].value
    else:
        with pytest.raises(CapabilityError, match=solver):
            chosen.minimize(loss, NoPenalty(), start)
