"""The default: stochastic epochs to get near, then a quasi-Newton method to get there.

Stochastic gradients reach the neighbourhood of the optimum in a few passes over the data but not the optimum itself;
L-BFGS is fast once it is near. Preconditioning by a power of the Hessian's diagonal at the hand-over shortens the rest.
(With the diagonal itself the first iterations are faster still and the last ones much slower; 0.5 to 0.7 are alike.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from crfkit.arrays import norm
from crfkit.errors import ParameterError
from crfkit.protocols import Vector
from crfkit.result import Status
from crfkit.solvers.fista import FISTA
from crfkit.solvers.lbfgs import LBFGS
from crfkit.solvers.loop import IterativeSolver
from crfkit.solvers.objective import Objective
from crfkit.solvers.online import check_online, check_positive
from crfkit.solvers.owlqn import OWLQN
from crfkit.solvers.sgd import calibrate, run_epoch
from crfkit.solvers.stopping import PeriodDecrease, StoppingRule

POWER = 0.6  # of the diagonal


@dataclass(frozen=True)
class Auto(IterativeSolver):
    """Chooses by what the loss and the penalty offer: OWL-QN under an L1 penalty, FISTA under others with corners, else
    L-BFGS, from a start that stochastic epochs have made where the loss has an online form and there is enough data for
    them to pay.

    Parameters
    ----------
    memory : curvature pairs of L-BFGS.
    epochs : stochastic epochs before it.
    least_sequences : with fewer there are none.
    seed : of their order.
    """

    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 1000
    seed: int = 0
    memory: int = 6
    epochs: int = 10
    least_sequences: int = 200

    name: ClassVar[str] = "auto"
    needs: ClassVar[frozenset[str]] = frozenset({"smooth"})
    handles_rest: ClassVar[frozenset[str]] = frozenset({"l1", "prox"})

    def __post_init__(self) -> None:
        check_online(self.max_iterations, self.seed)
        check_positive(memory=self.memory)
        for name in ("epochs", "least_sequences"):
            if getattr(self, name) < 0:
                raise ParameterError(f"{name} must be >= 0, not {getattr(self, name)!r}")

    def _finish(self, objective: Objective, warmed: bool) -> Any:
        if objective.rest is not None:
            return OWLQN() if "l1" in objective.rest.kinds else FISTA()
        diagonal = warmed and "hess_diag" in objective.loss.capabilities
        return LBFGS(memory=self.memory, preconditioned=diagonal, power=POWER)

    def init(self, objective: Objective, w0: Vector, saved: Mapping[str, Any]) -> AutoState:
        warmed = bool(saved.get("warmed", False)) if saved else self._pays(objective, w0)
        if warmed and not saved:
            w0 = self._warm_up(objective, w0)
        solver = self._finish(objective, warmed)
        return AutoState(solver.init(objective, w0, saved), solver, warmed)

    def step(self, objective: Objective, state: AutoState) -> AutoState | Status:
        outcome = state.solver.step(objective, state.inner)
        return outcome if isinstance(outcome, Status) else AutoState(outcome, state.solver, state.warmed)

    def _pays(self, objective: Objective, w0: Vector) -> bool:
        kinds = objective.smooth.kinds if objective.smooth is not None else frozenset({"l2"})
        loss: Any = objective.loss
        return (
            self.epochs > 0
            and norm(w0) == 0.0  # from a start that was chosen, stochastic steps might lead away
            and objective.rest is None  # OWL-QN gains less from a near start than L1 epochs cost
            and "online" in loss.capabilities
            and "l2" in kinds
            and len(loss.data) >= self.least_sequences
        )

    def _warm_up(self, objective: Objective, w0: Vector) -> Vector:
        loss: Any = objective.loss
        online = loss.online()
        step_size = calibrate(online, objective, w0, 300, self.seed)
        for epoch in range(self.epochs):
            run_epoch(online, objective, step_size, self.seed, epoch, epoch * online.n_sequences, False)
        return online.weights()


@dataclass(frozen=True)
class AutoState:
    inner: Any
    solver: Any
    warmed: bool

    @property
    def point(self) -> Any:
        return self.inner.point

    def saved(self) -> Mapping[str, Any]:
        return {"warmed": self.warmed, **self.inner.saved()}
