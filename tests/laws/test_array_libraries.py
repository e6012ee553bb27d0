"""Solvers work on the vectors of any library that follows the array API, and reach there what they reach on NumPy's.

array-api-strict has nothing but what the standard has: what runs on it runs on every library that keeps the standard.
"""

import re
from dataclasses import fields, replace
from functools import cache

import array_api_compat
import array_api_strict
import numpy as np
import pytest
from array_cases import ArrayLogistic, NoisyLogistic
from numpy.testing import assert_allclose
from optional import optional

from crfkit.errors import CapabilityError
from crfkit.penalties import (
    L1,
    L2,
    Blockwise,
    ElasticNet,
    GroupL1,
    GroupL2,
    GroupL2Ball,
    GroupLinf,
    HuberL1,
    L1Ball,
    NoPenalty,
)
from crfkit.result import Status
from crfkit.solvers import SOLVERS, GradientNorm, make_solver
from crfkit.solvers.parts import line_searches

GROUPS = [0, 0, 1, 1, 2]
PENALTIES = [
    NoPenalty(),
    L2(0.5),
    HuberL1(0.5, 0.1),
    L1(0.8),
    ElasticNet(0.5, 0.5),
    GroupL2(0.7, GROUPS),
    GroupLinf(0.7, GROUPS),
    GroupL1(0.7, GROUPS),
    L1Ball(0.7),
    GroupL2Ball(1.0, GROUPS),
    Blockwise({"first": L1(0.8), "second": L2(0.5)}),
]
LOSSES = (ArrayLogistic, NoisyLogistic)
DONE = {Status.CONVERGED, Status.ROUNDING}


def libraries():
    yield pytest.param(array_api_strict, id="strict")
    try:
        import torch
    except ImportError:
        return  # test_torch_is_one_of_them says so
    yield pytest.param(array_api_compat.array_namespace(torch.zeros(1)), id="torch")


LIBRARIES = list(libraries())
every_library = pytest.mark.parametrize("xp", LIBRARIES)
anywhere = pytest.mark.parametrize("name", sorted(name for name, solver in SOLVERS.items() if not solver.numpy_only))
on_numpy = pytest.mark.parametrize("name", sorted(name for name, solver in SOLVERS.items() if solver.numpy_only))


def test_torch_is_one_of_them():
    """Where it is installed, all tests of this file run on its tensors as well."""
    optional("torch")
    assert [library.id for library in LIBRARIES] == ["strict", "torch"]


def loss_for(solver):
    """The loss that has what the solver needs; that there is one is part of what is tested."""
    return next(loss for loss in LOSSES if solver.needs <= loss.capabilities)


def run(solver, xp, penalty):
    loss = loss_for(solver).random(xp)
    return solver.minimize(loss, penalty, loss.start())


@cache
def optimum(penalty):
    """On NumPy's vectors, by a solver that takes every penalty."""
    solver = make_solver("fista", stopping=GradientNorm(1e-10), max_iterations=50_000)
    result = run(solver, np, penalty)
    assert result.status in DONE
    return result


def check_same(solver, xp, penalty):
    """Run on both libraries: the same first iterations and the same end. Returns None if they cannot work together."""
    try:
        expected = run(solver, np, penalty)
    except CapabilityError as error:
        with pytest.raises(CapabilityError, match=re.escape(str(error))):
            run(solver, xp, penalty)
        return None
    found = run(solver, xp, penalty)
    assert type(found.w) is type(loss_for(solver).random(xp).start())
    assert found.status is expected.status or {found.status, expected.status} <= DONE
    assert_allclose(np.asarray(found.w), expected.w, rtol=1e-6, atol=1e-8)
    assert_allclose([row.value for row in found.trace[:5]], [row.value for row in expected.trace[:5]], rtol=1e-9)
    return found


@every_library
@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda penalty: type(penalty).__name__)
@anywhere
def test_solvers_reach_the_optimum_of_numpy(name, penalty, xp):
    most = 300 if SOLVERS[name].needs <= {"smooth", "hessp"} else 5  # many steps each, and the optimum is far
    solver = make_solver(name, stopping=GradientNorm(1e-7), max_iterations=most)
    found = check_same(solver, xp, penalty)
    if found is None or "gradient" in solver.needs:  # noisy gradients: a mean of iterates, near the optimum only
        return
    if found.status in DONE:
        assert_allclose(np.asarray(found.w), optimum(penalty).w, rtol=1e-5, atol=1e-6)


@every_library
@anywhere
def test_their_options_do_not_bind_them_to_numpy(name, xp):
    """Preconditioners and line searches, where a solver has them."""
    solver = make_solver(name, max_iterations=20)
    options = {item.name for item in fields(solver)}
    variants = []
    if "preconditioned" in options:
        variants.append(replace(solver, preconditioned=True))
    if "line_search" in options:
        searches = (getattr(line_searches, item) for item in line_searches.__all__)
        variants += [replace(solver, line_search=search()) for search in searches if isinstance(search, type)]
    for variant in variants:
        check_same(variant, xp, L2(0.5))


@every_library
@anywhere
def test_a_saved_state_is_of_the_library(name, xp):
    """A run of ten iterations is one of five and five more."""
    solver = make_solver(name, stopping=GradientNorm(0.0), max_iterations=5)
    loss = loss_for(solver).random(xp)
    half = solver.minimize(loss, L2(0.5), loss.start())
    if half.status is not Status.MAX_ITERATIONS:
        return  # it needs fewer
    rest = solver.minimize(loss, L2(0.5), half.w, resume=half.state)
    whole = replace(solver, max_iterations=10).minimize(loss, L2(0.5), loss.start())
    assert_allclose(np.asarray(rest.w), np.asarray(whole.w), rtol=1e-7, atol=1e-9)


@on_numpy
def test_the_others_say_so(name):
    loss = ArrayLogistic.random(array_api_strict)
    with pytest.raises(CapabilityError, match=rf"{name} works on NumPy vectors only"):
        make_solver(name).minimize(loss, L2(0.5), loss.start())


def test_most_solvers_work_anywhere():
    """What needs no more of a loss than values and derivatives has no reason to be bound to NumPy."""
    general = {name for name, solver in SOLVERS.items() if solver.needs <= ArrayLogistic.capabilities}
    assert general <= {name for name, solver in SOLVERS.items() if not solver.numpy_only}
    assert len(general) > len(SOLVERS) / 2
