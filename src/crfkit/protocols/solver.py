"""The contract of a solver: `init` and `step`. See :mod:`crfkit.protocols` for how to read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from crfkit.capabilities import Capability, Kind
from crfkit.protocols.loss import Loss, Vector
from crfkit.protocols.penalty import Penalty

if TYPE_CHECKING:
    from crfkit.result import Result, TraceRow
    from crfkit.solvers.parts.loop import Callback
    from crfkit.solvers.parts.objective import Objective
    from crfkit.solvers.parts.stopping import StoppingRule

Saved = Mapping[str, object]  # arrays and numbers by name, from which a later run can go on


class Iterate(Protocol):
    """The point of a solver: a :class:`~crfkit.solvers.parts.objective.Point`, or an online solver's own."""

    @property
    def w(self) -> Vector: ...
    @property
    def value(self) -> float: ...
    @property
    def optimality(self) -> float: ...
    @property
    def finite(self) -> bool: ...


class State(Protocol):
    """The values that a solver keeps from step to step."""

    @property
    def point(self) -> Iterate: ...
    def saved(self) -> Saved:
        """Return arrays and numbers from which a later run can continue at the same w."""
        ...


class Solver:
    """A solver is `init` and `step`; the loop (:mod:`crfkit.solvers.parts.loop`) owns the rest."""

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...
        @property
        def needs(self) -> frozenset[Capability]:
            """Capabilities that the loss must have."""

        @property
        def handles_smooth(self) -> frozenset[Kind] | None:
            """Which kinds of a penalty's smooth part it takes; None (the default): any."""

        @property
        def handles_nonsmooth(self) -> frozenset[Kind]:
            """Kinds of non-smooth penalties that it can minimise; none (the default): smooth objectives only."""

        @property
        def max_iterations(self) -> int: ...
        @property
        def stopping(self) -> StoppingRule: ...
        @property
        def nonmonotone(self) -> bool:
            """Whether values rise now and then; stopping rules then allow for it. False by default."""

        @property
        def first_order(self) -> bool:
            """Whether it needs more iterations the worse the problem is conditioned; False by default."""

        @property
        def numpy_only(self) -> bool:
            """Whether vectors must be NumPy's: it hands them to the compiled core or to SciPy. False by default."""

        @property
        def own_objective(self) -> bool:
            """Whether its values differ from loss + penalty; it may then end above the start. See below."""

    else:
        handles_smooth = None
        handles_nonsmooth = frozenset()
        nonmonotone = False
        first_order = False
        numpy_only = False
        own_objective = False

    def minimize(
        self,
        loss: Loss,
        penalty: Penalty,
        w0: Vector,
        callbacks: Sequence[Callback] = (),
        resume: Saved | None = None,
    ) -> Result:
        """Minimise from w0; `resume` is the `state` of an earlier result of the same solver, to continue from w0."""
        raise NotImplementedError

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> Any:
        """Return the :class:`State` at w0; `saved` is empty, or what a state of this solver at w0 saved."""
        raise NotImplementedError

    def step(self, objective: Objective, state: Any) -> Any:
        """Return the next state, or a :class:`~crfkit.result.Status` when it cannot continue."""
        raise NotImplementedError

    def finished(self, trace: Sequence[TraceRow], state: Any) -> bool:
        """Return whether to stop at this state, the one of the last row."""
        raise NotImplementedError

    def next_phase(self, objective: Objective, state: Any) -> Any:
        """Return the state to continue from where `finished` ends a phase only; None (the default): it ends the run."""
        return None

    def objective_name(self, objective: Objective) -> str:
        """Return what the values of the trace are; with `own_objective` something else than loss + penalty."""
        return objective.name

    def columns(self, state: Any) -> Mapping[str, float]:
        """Return numbers that it adds to the trace's row of this state."""
        return {}

    def grown_loss(self, state: Any) -> Loss | None:
        """Return the loss that the state's weights belong to, if it is not the one that was given."""
        return None

    def for_path(self) -> Solver:
        """Return the solver for several runs in a row, each with the loss of the last one."""
        return self
