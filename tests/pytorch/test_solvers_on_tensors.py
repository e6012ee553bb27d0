"""Solvers minimise losses on tensors: the optimum of NumPy's vectors, without looking at vectors on the way."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from optional import optional

torch = optional("torch")

from tensor_cases import as_on_a_device, chains, tensor_loss  # noqa: E402

from crfkit.errors import CapabilityError  # noqa: E402
from crfkit.losses import ChainLikelihood  # noqa: E402
from crfkit.penalties import L1, L2, ElasticNet  # noqa: E402
from crfkit.solvers import SOLVERS, GradientNorm, make_solver  # noqa: E402
from crfkit.torch.chain_batches import TensorChainBatches  # noqa: E402

CAPABILITIES = tensor_loss(*chains()).capabilities
ANYWHERE = sorted(name for name, s in SOLVERS.items() if not s.numpy_only and s.needs <= CAPABILITIES)
EXACT = {name for name in ANYWHERE if name not in ("rda", "smd")}  # the others are stochastic
PENALTIES = [L2(0.5), L1(0.5), ElasticNet(0.4, 0.3)]


def optimum(penalty) -> float:
    loss = ChainLikelihood(*chains())
    solver = make_solver("fista", stopping=GradientNorm(1e-9), max_iterations=20_000)
    return solver.minimize(loss, penalty, np.zeros(loss.size)).value


OPTIMA = {penalty: optimum(penalty) for penalty in PENALTIES}


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda penalty: type(penalty).__name__)
@pytest.mark.parametrize("name", ANYWHERE)
def test_they_reach_the_optimum_of_the_core(name, penalty):
    options = {"stopping": GradientNorm(1e-6), "max_iterations": 1000} if name in EXACT else {"max_iterations": 3}
    solver, loss = make_solver(name, **options), tensor_loss(*chains())
    if penalty.split()[1] is not None and not solver.handles_nonsmooth:
        return
    with as_on_a_device():
        found = solver.minimize(loss, penalty, loss.zeros())
    assert isinstance(found.w, torch.Tensor)
    if name in EXACT:
        assert_allclose(found.value, OPTIMA[penalty], rtol=1e-8)
    else:
        assert found.value < loss.at(loss.zeros()).value


@pytest.mark.parametrize("name", sorted(name for name, solver in SOLVERS.items() if solver.numpy_only))
def test_solvers_of_numpy_refuse_before_they_start(name):
    loss = tensor_loss(*chains())
    with pytest.raises(CapabilityError, match=rf"{name} works on NumPy vectors only"):
        make_solver(name).minimize(loss, L2(0.5), loss.zeros())


def test_single_precision_comes_close():
    loss = tensor_loss(*chains(), precision="single")
    assert loss.zeros().dtype == torch.float32
    found = make_solver("lbfgs").minimize(loss, L2(0.5), loss.zeros())
    assert_allclose(found.value, OPTIMA[L2(0.5)], rtol=1e-5)


def test_automatic_precision_ends_in_double():
    loss = tensor_loss(*chains(), precision="auto")
    solver = make_solver("lbfgs", stopping=GradientNorm(1e-9), max_iterations=500)
    found = solver.minimize(loss, L2(0.5), loss.zeros())
    assert loss.tolerance == loss.finest
    assert_allclose(found.value, OPTIMA[L2(0.5)], rtol=1e-10)


# Reads by the host for each evaluation; on a GPU each waits for the device.
@pytest.mark.parametrize(
    ("name", "most"), [("lbfgs", 6), ("owlqn", 7), ("tron", 28), ("fista", 5), ("gradient-descent", 5.1)]
)
def test_the_host_reads_little(name, most):
    loss = tensor_loss(*chains())
    with as_on_a_device() as reads:
        found = make_solver(name).minimize(loss, L2(0.5), loss.zeros())
    assert sum(reads.values()) <= most * found.evaluations, reads


def test_an_evaluation_is_one_read():
    loss = tensor_loss(*chains())
    w = loss.zeros()
    with as_on_a_device() as reads:
        here = loss.at(w)
        assert here.value > 0
        assert here.grad is here.grad
        assert sum(reads.values()) == 1
        here.hessp(w)
        assert sum(reads.values()) == 1


def test_adam_follows_batches():
    loss = tensor_loss(*chains(n=200))
    exact = make_solver("lbfgs", stopping=GradientNorm(1e-7)).minimize(loss, L2(0.5), loss.zeros())
    batches = TensorChainBatches(loss, size=32)
    adam = make_solver("adam", stopping=GradientNorm(0.0), max_iterations=40)
    with as_on_a_device():
        found = adam.minimize(batches, L2(0.5), loss.zeros())
    value = loss.at(found.w).value + L2(0.5).value(found.w)
    assert exact.value < value < 1.005 * exact.value


def test_an_epoch_of_batches_is_the_whole():
    loss = tensor_loss(*chains())
    w, batches = loss.zeros() + 0.1, TensorChainBatches(loss, size=7)
    assert len(loss.data) == 40  # five batches of 7 and one of 5
    parts = [batches.at(w).grad * (n / 40) for n in (7, 7, 7, 7, 7, 5)]
    torch.testing.assert_close(sum(parts), loss.at(w).grad)
