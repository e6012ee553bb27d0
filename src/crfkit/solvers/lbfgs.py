"""L-BFGS: strong-Wolfe line search + limited-memory quasi-Newton direction (Liu & Nocedal 1989)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from array_api_compat import array_namespace

from crfkit._checks import is_whole
from crfkit.arrays import free, row_type, scale_type
from crfkit.errors import ParameterError
from crfkit.protocols import Capability, Vector
from crfkit.result import Status
from crfkit.solvers.parts.descent import check_iterations
from crfkit.solvers.parts.head import Head
from crfkit.solvers.parts.line_searches import StrongWolfe
from crfkit.solvers.parts.line_searches.trial import LineSearch
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.memory import CurvaturePairs
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.preconditioner import NeedsHead, power_scale
from crfkit.solvers.parts.progress import Progress
from crfkit.solvers.parts.quasi_newton import QuasiNewtonState, quasi_newton_step
from crfkit.solvers.parts.saved import check_matrix, saved_vector
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule


@dataclass(frozen=True)
class LBFGS(IterativeSolver):
    """Minimise smooth objectives.

    Parameters
    ----------
    memory : number of curvature pairs; each takes two vectors.
    stopping : when to stop, a rule of :mod:`crfkit.solvers.parts.stopping`.
    max_iterations : maximum number of iterations.
    line_search : one of :mod:`crfkit.solvers.parts.line_searches`; curvature is learned from Wolfe steps.
    initial_scaling : H₀ = γ·I with γ = sᵀy/yᵀy of the newest pair, or the identity.
    preconditioned : H₀ = γ·diag(h)^(−power), where h is the Hessian's diagonal at the start.
    power : exponent of `preconditioned`; 1 is Jacobi's, less is safer where the diagonal changes on the way.
    head : with `preconditioned`, the number of weights of most curvature for which H₀ is a power of the inverse of the
        whole block of the Hessian, estimated from labellings that are drawn from the model. Needs a loss with
        "hess_sample" and NumPy vectors. 0: none.
    double : keep curvature pairs and directions in double precision. By default those of many weights are single
        floats, which is faster; the first iterations are then the same to about eight digits, later ones to fewer.
        Those of a million weights or more are half floats (bfloat16): less than half the memory, and about as many
        iterations.
    """

    memory: int = 6
    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 1000
    line_search: LineSearch = field(default_factory=StrongWolfe)
    initial_scaling: bool = True
    preconditioned: bool = False
    power: float = 0.5
    head: int = 0
    double: bool = False

    name: ClassVar[str] = "lbfgs"
    needs = NeedsHead(Capability.SMOOTH)

    def __post_init__(self) -> None:
        if self.memory < 1:
            raise ParameterError(f"memory must be >= 1, not {self.memory!r}")
        if not 0 <= self.power <= 1:
            raise ParameterError(f"power must be between 0 and 1, not {self.power!r}")
        check_iterations(self.max_iterations)
        if not is_whole(self.head) or self.head < 0 or (self.head and not self.preconditioned):
            raise ParameterError(f"head must be 0, or a whole number > 0 with preconditioned=True, not {self.head!r}")

    def init(self, objective: Objective, w0: Vector, saved: Mapping[str, Any]) -> QuasiNewtonState:
        if "pairs" in saved and ("scale" in saved) != self.preconditioned:
            raise ParameterError("the saved state is of an L-BFGS with another setting of `preconditioned`")
        if "pairs" in saved:
            check_matrix(saved, "pairs", w0.shape[0])
        return self.begin(objective, objective.at(w0), saved)

    def begin(self, objective: Objective, start: Point, saved: Mapping[str, Any]) -> QuasiNewtonState:
        """Return the state at a point that was evaluated before; `saved` fits it."""
        scale, head = None, None
        if self.preconditioned and start.finite:
            rows = saved["pairs"].dtype if "pairs" in saved else start.w.dtype if self.double else row_type(start.w)
            dtype = scale_type(rows, start.w)
            if "scale" in saved:
                scale = array_namespace(start.w).astype(saved_vector(saved, "scale", start.w), dtype, copy=False)
                head = Head.restored(saved, start.w.shape[0])
            else:
                diagonal = objective.hess_diag(start)
                if self.head > 0:
                    head = Head.sampled(objective, start, diagonal, self.head, self.power)
                scale = power_scale(diagonal, self.power, dtype)
                if head is not None:
                    scale[head.places] = 1.0
                del diagonal
                free()  # what curvature took, curvature pairs may take
        pairs = CurvaturePairs(self.memory, saved, scale, self.initial_scaling, self.double, head)
        return QuasiNewtonState(start, pairs, Progress.at(start, saved), scale, head)

    def step(self, objective: Objective, state: QuasiNewtonState) -> QuasiNewtonState | Status:
        return quasi_newton_step(objective, state, self.line_search)
