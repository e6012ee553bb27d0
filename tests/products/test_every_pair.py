"""Every loss of the registry with every penalty of the registry: two solvers that know nothing of either agree."""

import numpy as np
import pytest

from crfkit.errors import CapabilityError
from crfkit.losses import LOSSES
from crfkit.penalties import PENALTIES
from crfkit.protocols import Capability
from crfkit.solvers import GradientNorm, make_solver


def penalty_for(name, loss):
    """The first example, of the weights of the loss; None if it cannot be bound to it."""
    try:
        return PENALTIES[name].examples(loss.size)[0].bind(loss)
    except CapabilityError:
        return None


EXAMPLES = {name: loss.example() for name, loss in LOSSES.items()}
SMOOTH = {name: loss for name, loss in EXAMPLES.items() if Capability.SMOOTH in loss.capabilities}
PAIRS = [(loss, name) for name in PENALTIES for loss in SMOOTH if penalty_for(name, SMOOTH[loss]) is not None]


def test_pairs_are_missing_for_two_reasons_only():
    """Losses that are not smooth, and penalties on blocks of weights with losses that cannot grow."""
    assert len(SMOOTH) > len(LOSSES) / 2
    for name in PENALTIES:
        for loss in SMOOTH:
            assert (loss, name) in PAIRS or Capability.CANDIDATES not in SMOOTH[loss].capabilities
    assert len(PAIRS) > 0.9 * len(SMOOTH) * len(PENALTIES)


@pytest.mark.parametrize(("loss", "penalty"), PAIRS, ids=lambda name: name)
def test_two_solvers_agree(loss, penalty):
    function = SMOOTH[loss]
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
