"""The default: stochastic epochs to get near, then a quasi-Newton method to get there.

Stochastic gradients reach the neighbourhood of the optimum in a few passes over the data but not the optimum itself;
L-BFGS is fast once it is near. Preconditioning by a power of the Hessian's diagonal at the hand-over shortens the rest.
(With the diagonal itself the first iterations are faster still and the last ones much slower; 0.5 to 0.7 are alike.)

Losses without an online form, those of graphs and tables, have few weights and expensive evaluations. For them a
diagonal from the start and 20 pairs pay: L-BFGS takes the Hessian's if the loss knows it and has fewer than 1000
weights, and OWL-QN, which without L1 is a quasi-Newton method like L-BFGS, learns one from its steps
(benchmarks/auto_shapes.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from crfkit._checks import check_online, check_positive
from crfkit.arrays import free, norm
from crfkit.errors import ParameterError
from crfkit.protocols import Capability, Kind, Loss, NonsmoothPenalty, Vector
from crfkit.result import Status, TraceRow
from crfkit.solvers.fista import FISTA
from crfkit.solvers.lbfgs import LBFGS
from crfkit.solvers.owlqn import OWLQN
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective
from crfkit.solvers.parts.quasi_newton import QuasiNewtonState
from crfkit.solvers.parts.saved import saved_count
from crfkit.solvers.parts.stochastic_start import StartState, epochs_that_pay
from crfkit.solvers.parts.stopping import AnyOf, PeriodDecrease, StoppingRule

POWER = 0.6  # of the diagonal
UNDERESTIMATE = 5.0  # how many times too small two predictions in a row of the decrease were, at worst
CALM_STEPS = 2  # in a row that predict a small decrease, after which training from a chosen start ends
L1_MEMORY = 60  # pairs that OWL-QN keeps: it takes an eighth fewer evaluations than with 20, and few weights are free
GRAPH_MEMORY = 20  # pairs that L-BFGS keeps for losses without an online form
EXPENSIVE_DIAGONAL = 1000  # weights from which on the Hessian's diagonal costs more evaluations than it saves there
FEW_WEIGHTS = 100_000  # up to which 20 pairs of vectors take little, without an online form


def finishing_solver(loss: Loss, rest: NonsmoothPenalty | None) -> str:
    """Return the name of the solver that suits a loss and the part of a penalty that is not smooth."""
    online = Capability.ONLINE in loss.capabilities
    if rest is None:
        known = Capability.HESS_DIAG in loss.capabilities and loss.size < EXPENSIVE_DIAGONAL
        learned = not online and not known and loss.size <= FEW_WEIGHTS
        return "owlqn" if learned and loss.convex else "lbfgs"
    return "owlqn" if Kind.L1 in rest.kinds or (Kind.ORTHANTS in rest.kinds and not online) else "fista"


@dataclass(frozen=True)
class Auto(IterativeSolver):
    """Choose a solver by what the loss and the penalty offer.

    That is OWL-QN with 60 curvature pairs under an L1 penalty, FISTA under other non-smooth penalties, and otherwise
    L-BFGS. Where the loss has an online form and it pays, L-BFGS begins after some stochastic epochs. Where it has none
    and up to 100,000 weights, L-BFGS has the Hessian's diagonal and 20 pairs, or is replaced by OWL-QN with 20 pairs if
    the loss is convex and does not know that diagonal or has 1000 weights or more. Losses with "hess_sample" give
    L-BFGS and OWL-QN a head.

    From a start that was chosen (warm_start), training also ends when L-BFGS with a head twice in a row predicts a
    smaller decrease than the stopping rule asks for: then no ten iterations without gain are needed to see it.

    The trace begins at the given start and has a row after the first epoch and one after the last.

    Parameters
    ----------
    memory : number of curvature pairs that L-BFGS keeps; at least 20 without an online form, as above.
    epochs : number of stochastic epochs before L-BFGS; fewer if one does not lower the objective. None: as many as pay,
        estimated from the number of weights, labels, tokens and threads.
    least_sequences : with fewer sequences than this there are no stochastic epochs.
    step_size : the first step of the epochs. None: chosen by short trials on a sample.
    seed : random seed for the order of the sequences.
    """

    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 1000
    seed: int = 0
    memory: int = 6
    epochs: int | None = None
    least_sequences: int = 100
    step_size: float | None = None

    name: ClassVar[str] = "auto"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH})
    handles_nonsmooth: ClassVar[frozenset[Kind]] = frozenset({Kind.L1, Kind.PROX})

    def __post_init__(self) -> None:
        check_online(self.max_iterations, self.seed)
        check_positive(memory=self.memory, **({} if self.step_size is None else {"step_size": self.step_size}))
        for name, value in (("epochs", self.epochs), ("least_sequences", self.least_sequences)):
            if value is not None and value < 0:
                raise ParameterError(f"{name} must be >= 0, not {value!r}")

    def _finish(self, objective: Objective, warmed: bool) -> Any:
        loss = objective.loss
        diagonal, sample = (c in loss.capabilities for c in (Capability.HESS_DIAG, Capability.HESS_SAMPLE))
        head = loss.dense_size() if diagonal and sample else 0
        name = finishing_solver(loss, objective.nonsmooth)
        if objective.nonsmooth is None:
            if name == "owlqn":
                return OWLQN()
            if diagonal and Capability.ONLINE not in loss.capabilities and loss.size <= FEW_WEIGHTS:
                return LBFGS(memory=max(self.memory, GRAPH_MEMORY), preconditioned=True)
            return LBFGS(memory=self.memory, preconditioned=warmed and diagonal, power=POWER, head=head * warmed)
        large = len(loss.data) >= self.least_sequences if head else False
        return OWLQN(memory=L1_MEMORY, head=head * large) if name == "owlqn" else FISTA()

    def init(self, objective: Objective, w0: Vector, saved: Mapping[str, Any]) -> AutoState | StartState:
        if "start_epochs" in saved:
            return StartState.resumed(objective, w0, saved)
        planned = 0 if saved else self._epochs(objective, w0)
        if planned > 0:
            return StartState(objective.at(w0), planned, step_size=self.step_size)
        warmed = bool(saved.get("warmed", False)) if saved else self._is_warm(objective, w0)
        solver = self._finish(objective, warmed)
        first_row, calm = (saved_count(saved, name, default=0) for name in ("first_row", "calm"))
        return AutoState(solver.init(objective, w0, saved), solver, warmed, first_row, calm)

    def step(self, objective: Objective, state: AutoState | StartState) -> AutoState | StartState | Status:
        if isinstance(state, StartState):
            later = state.after_epochs(objective, self.seed)
            if later is not None:
                return later
            solver = self._finish(objective, warmed=True)
            free()  # L-BFGS needs fewer vectors than the epochs have left
            state = AutoState(solver.begin(objective, state.point, {}), solver, True, state.rows)
        outcome = state.solver.step(objective, state.inner)
        if isinstance(outcome, Status):
            return outcome
        return replace(state, inner=outcome, calm=state.calm + 1 if self._gains_little(state, outcome) else 0)

    def finished(self, trace: Sequence[TraceRow], state: AutoState | StartState) -> bool:
        """Return whether the rows of L-BFGS alone satisfy the rule; epochs are too uneven for most rules."""
        last = len(trace) - 1
        first = last if isinstance(state, StartState) else min(state.first_row, last)
        return super().finished(trace[first:], state) or (isinstance(state, AutoState) and state.calm >= CALM_STEPS)

    def _gains_little(self, state: AutoState, inner: Any) -> bool:
        """Return whether L-BFGS from a chosen start predicts less than the rule's decrease from all further steps.

        With H near the inverse Hessian, that is ½·gᵀHg. In warm starts on 500 sentences of CoNLL-2000, single
        predictions were up to eight times too small, two in a row up to five times.
        """
        chosen = state.warmed and state.first_row == 0
        rules = self.stopping.rules if isinstance(self.stopping, AnyOf) else (self.stopping,)
        deltas = [rule.delta for rule in rules if isinstance(rule, PeriodDecrease)]
        if not chosen or not deltas or not isinstance(inner, QuasiNewtonState):
            return False
        if inner.head is None or inner.curvature.slope is None:
            return False
        return bool(UNDERESTIMATE * 0.5 * abs(inner.curvature.slope) < max(deltas) * abs(inner.point.value))

    def _is_warm(self, objective: Objective, w0: Vector) -> bool:
        """Return whether the start was chosen, so that the Hessian there is worth its price."""
        loss = objective.loss
        if objective.nonsmooth is not None or Capability.HESS_SAMPLE not in loss.capabilities:
            return False
        return norm(w0) > 0.0 and len(loss.data) >= self.least_sequences

    def _epochs(self, objective: Objective, w0: Vector) -> int:
        """Return how many stochastic epochs to begin with."""
        kinds = objective.smooth.kinds if objective.smooth is not None else frozenset({Kind.L2})
        loss: Any = objective.loss
        possible = (
            norm(w0) == 0.0  # from a start that was chosen, stochastic steps might lead away
            and objective.nonsmooth is None  # OWL-QN gains less from a near start than L1 epochs cost
            and Capability.ONLINE in loss.capabilities
            and Kind.L2 in kinds
            and len(loss.data) >= self.least_sequences
        )
        if not possible:
            return 0
        return epochs_that_pay(objective) if self.epochs is None else self.epochs


@dataclass(frozen=True)
class AutoState:
    inner: Any
    solver: Any
    warmed: bool
    first_row: int = 0  # of the trace that is not of an epoch's
    calm: int = 0  # steps in a row that predicted a small decrease

    @property
    def point(self) -> Any:
        return self.inner.point

    def saved(self) -> Mapping[str, Any]:
        return {"warmed": self.warmed, "first_row": self.first_row, "calm": self.calm, **self.inner.saved()}
