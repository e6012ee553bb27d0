"""The weights that can move at a point of f(w) + penalty, where most weights are held at zero.

With p = −(the shortest sub-gradient), a weight is *free* if the penalty does not hold it (it is not zero, or there
is no non-smooth penalty), and *entering* if it is zero and p leads away from it. All others stay where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from array_api_compat import device

from crfkit._compiled import _core
from crfkit._threads import thread_count
from crfkit.arrays import is_native, namespace, norm
from crfkit.protocols import Kind, NonsmoothPenalty, Vector


@dataclass(frozen=True)
class Moving:
    """Places and p of the free weights and of the entering ones, each ascending, and ‖p‖ of both."""

    free: Any
    p_free: Vector
    entering: Any
    p_entering: Vector
    norm: float

    @classmethod
    def at(cls, w: Vector, grad: Vector, rest: NonsmoothPenalty | None) -> Moving:
        """Return those at w, where `grad` is the gradient of the smooth part."""
        if rest is not None and Kind.L1 in rest.kinds and is_native(w, grad):
            assert rest.strength is not None
            return cls(*_core.moving_weights(w, grad, rest.strength, thread_count()))
        xp = namespace(w)
        if rest is None:
            places = xp.arange(w.shape[0], device=device(w))
            return cls(places, -1.0 * grad, places[:0], grad[:0], norm(grad))
        p = -1.0 * rest.min_norm_subgradient(w, grad)
        free, entering = xp.nonzero(w != 0)[0], xp.nonzero((w == 0) & (p != 0))[0]
        return cls(free, xp.take(p, free), entering, xp.take(p, entering), norm(p))

    @cached_property
    def index(self) -> Any:
        """The places of both, the free weights first."""
        return namespace(self.p_free).concat([self.free, self.entering])

    @cached_property
    def p(self) -> Vector:
        return namespace(self.p_free).concat([self.p_free, self.p_entering])
