"""Laws of losses, over the example of every member of the registry."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crfkit.errors import CapabilityError
from crfkit.losses import LOSSES
from crfkit.protocols import Capability, GrowingLoss, Loss

every_loss = pytest.mark.parametrize("name", list(LOSSES))
# Those of which there is a law below.
LAWFUL = (Capability.SMOOTH, Capability.HESSP, Capability.HESS_DIAG, Capability.LIPSCHITZ, Capability.SUBSET)
seeds = pytest.mark.parametrize("seed", range(2))


@cache
def capabilities(name):
    return LOSSES[name].example().capabilities


def every_loss_with(capability):
    return pytest.mark.parametrize("name", [name for name in LOSSES if capability in capabilities(name)])


def example(name):
    """The loss, with all that it can switch on switched on."""
    loss = LOSSES[name].example()
    if isinstance(loss, GrowingLoss):
        ids, _ = loss.candidates(loss.at(np.zeros(loss.size)), above=-1.0)
        loss = loss.activate(ids)[0]
    return loss


def weights(loss, seed):
    return 0.5 * np.random.default_rng(seed).normal(size=loss.size)


@pytest.mark.parametrize("capability", LAWFUL)
def test_several_losses_have_each_capability(capability):
    """So that the laws of a capability are about something."""
    assert sum(capability in example(name).capabilities for name in LOSSES) >= 2


@every_loss
def test_it_keeps_the_contract(name):
    loss = example(name)
    assert isinstance(loss, Loss)
    assert isinstance(loss.name, str)
    assert loss.size > 0
    assert all(isinstance(capability, Capability) for capability in loss.capabilities)
    covered = np.zeros(loss.size, dtype=int)
    for place in loss.layout.values():
        covered[place] += 1
    assert (covered == 1).all()  # every weight is in one named part
    assert isinstance(loss, GrowingLoss) == (Capability.CANDIDATES in loss.capabilities)
    if {Capability.SMOOTH, Capability.GRADIENT} <= loss.capabilities:
        pytest.fail("a loss has a value, or a gradient in place of it")


@every_loss_with(Capability.SMOOTH)
@seeds
def test_evaluations_own_their_gradients(name, seed):
    loss = example(name)
    w = weights(loss, seed)
    kept = w.copy()
    first = loss.at(w)
    value, gradient = first.value, first.grad.copy()
    first.grad[:] = 0.0
    assert (w == kept).all()
    again = loss.at(w, first)
    assert_allclose(again.value, value, rtol=1e-9)
    assert_allclose(again.grad, gradient, rtol=1e-6, atol=1e-8)


@every_loss_with(Capability.SMOOTH)
@seeds
def test_the_gradient_is_the_derivative(name, seed):
    loss, h = example(name), 1e-5
    w = weights(loss, seed)
    slopes = [(loss.at(w + e).value - loss.at(w - e).value) / (2 * h) for e in h * np.eye(loss.size)]
    assert_allclose(loss.at(w).grad, slopes, rtol=1e-5, atol=1e-6)


@every_loss_with(Capability.HESSP)
@seeds
def test_products_with_the_hessian(name, seed):
    loss, h = example(name), 1e-5
    w, v = weights(loss, seed), weights(loss, seed + 10)
    ahead, behind = (loss.at(w + s * h * v).grad.copy() for s in (1.0, -1.0))
    assert_allclose(loss.at(w).hessp(v), (ahead - behind) / (2 * h), rtol=1e-5, atol=1e-6)


@every_loss_with(Capability.HESS_DIAG)
@seeds
def test_the_diagonal_is_not_negative(name, seed):
    loss = example(name)
    diagonal = loss.at(weights(loss, seed)).hess_diag()
    assert diagonal.shape == (loss.size,)
    assert (diagonal >= 0).all()


@every_loss_with(Capability.HESS_SAMPLE)
@seeds
def test_the_sample_is_the_hessian_on_average(name, seed):
    """Samples of all sequences, and of some of them; within six standard errors."""
    loss = example(name)
    at = loss.at(weights(loss, seed))
    hessian = np.array([at.hessp(e) for e in np.eye(loss.size)])
    for sequences in (2 * len(loss.data), max(1, len(loss.data) // 2)):
        samples = (at.hess_sample(sequences, k).toarray() for k in range(400))
        products = np.array([a.T @ a for a in samples])
        error = products.std(axis=0) / np.sqrt(len(products))
        assert (np.abs(products.mean(axis=0) - hessian) <= 6 * error + 1e-3 * hessian.max()).all()


@every_loss_with(Capability.LIPSCHITZ)
@seeds
def test_the_lipschitz_bound_holds(name, seed):
    loss = example(name)
    a, b = weights(loss, seed), 4.0 * weights(loss, seed + 10)
    change = np.linalg.norm(loss.at(a).grad.copy() - loss.at(b).grad)
    assert change <= loss.lipschitz() * np.linalg.norm(a - b) * (1 + 1e-12)


@every_loss_with(Capability.SUBSET)
@seeds
def test_subsets_add_up_to_the_whole(name, seed):
    loss = example(name)
    w, n = weights(loss, seed), len(loss.data)
    halves = [loss.subset(np.arange(n // 2)), loss.subset(np.arange(n // 2, n))]
    if Capability.GRADIENT not in loss.capabilities:
        assert_allclose(sum(half.at(w).value for half in halves), loss.at(w).value, rtol=1e-10)
    assert_allclose(sum(half.at(w).grad for half in halves), loss.at(w).grad, rtol=1e-8, atol=1e-10)


@every_loss
def test_what_it_cannot_do_is_an_error(name):
    loss = example(name)
    for capability, ask in (
        (Capability.ONLINE, loss.online),
        (Capability.EXPECTATIONS, loss.expectations),
        (Capability.LIPSCHITZ, loss.lipschitz),
    ):
        if capability not in loss.capabilities:
            with pytest.raises(CapabilityError, match=str(capability)):
                ask()
