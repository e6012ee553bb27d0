"""Every loss of the registry with every penalty of the registry: two solvers that know nothing of either agree."""

import numpy as np
import pytest
from optima import reach

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
    best = make_solver("auto", **limits).minimize(function, chosen, start)
    assert np.isfinite(best.value)
    assert best.value <= best.trace[0].value
    # Weights without a penalty may grow for ever: there the values meet only slowly.
    penalised = [chosen.value(e) > 0 for e in np.eye(function.size)]
    gap = 1e-6 if all(penalised) else 1e-4 if any(penalised) else 1e-2
    # auto is never PQN, but it is FISTA where nothing else takes the penalty
    reach(make_solver("pqn", **limits), function, chosen, start, best.value, gap, below=gap)
