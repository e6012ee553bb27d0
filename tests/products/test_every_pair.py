"""Every loss of the registry with every penalty of the registry: two solvers that know nothing of either agree."""

import numpy as np
import pytest

from crfkit.errors import CapabilityError
from crfkit.losses import LOSSES
from crfkit.penalties import PENALTIES
from crfkit.protocols import Capability
from crfkit.solvers import GradientNorm, make_solver


def penalty_for(name, loss):
    """The first example, of the weights of the loss."""
    penalty = PENALTIES[name].examples(loss.size)[0]
    try:
        return penalty.bind(loss)
    except CapabilityError:
        pytest.skip("it is for losses that can grow")


@pytest.mark.parametrize("penalty", list(PENALTIES))
@pytest.mark.parametrize("loss", list(LOSSES))
def test_two_solvers_agree(loss, penalty):
    function = LOSSES[loss].example()
    if Capability.SMOOTH not in function.capabilities:
        pytest.skip("it is not smooth")
    chosen = penalty_for(penalty, function)
    start = np.zeros(function.size)
    limits = {"stopping": GradientNorm(1e-5), "max_iterations": 3000}
    values = []
    for name in ("fista", "auto"):
        result = make_solver(name, **limits).minimize(function, chosen, start)
        assert np.isfinite(result.value)
        assert result.value <= result.trace[0].value
        values.append(result.value)
    # Without a penalty some weights may grow for ever: there the values meet only slowly.
    tolerance = 1e-6 if chosen.value(start + 1.0) > 0 else 1e-2
    assert abs(values[0] - values[1]) <= tolerance * max(1.0, abs(values[1]))
