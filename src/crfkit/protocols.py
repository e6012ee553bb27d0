"""The contracts of the three axes: loss, penalty, solver. Every hook is here, with its default.

``J(w) = loss(w) + penalty(w)``. Losses are sums over sequences, not means. ``L2(s) = s/2·‖w‖²``.
Vectors are one-dimensional arrays of one library (NumPy, or any that follows the array API); solvers use
only their operators and the functions of :mod:`crfkit.arrays`.

Members subclass these bases. What a member must define is under ``if TYPE_CHECKING``, as a read-only property: when
running there is nothing in its way, so that it may be a field of a dataclass, a class attribute, an attribute that
``__init__`` sets, or a property. Methods that raise NotImplementedError must be defined as well; all others are
optional, and what they do here is what a member without them means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from crfkit.capabilities import BlockNorm as BlockNorm
from crfkit.capabilities import Capability as Capability
from crfkit.capabilities import Kind as Kind
from crfkit.capabilities import Selection as Selection
from crfkit.errors import CapabilityError, ParameterError

if TYPE_CHECKING:
    from crfkit.result import Result, TraceRow
    from crfkit.solvers.parts.objective import Objective
    from crfkit.solvers.parts.stopping import StoppingRule

Vector = Any


# --- losses


class Evaluation(Protocol):
    """A loss at one point; what is asked for is computed once, when it is first asked for."""

    @property
    def value(self) -> float: ...
    @property
    def grad(self) -> Vector:
        """A vector of this evaluation's own: the caller may change it."""
        ...

    def hessp(self, v: Vector) -> Vector:
        """∇²loss(w)·v; where the loss has the capability "hessp"."""
        ...

    def hess_diag(self) -> Vector:
        """An approximation of the Hessian's diagonal, never negative; with the capability "hess_diag"."""
        ...


class Loss:
    """A smooth function of the weights. See :class:`Capability` for what else it may be able to do."""

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...
        @property
        def size(self) -> int:
            """Number of weights."""

        @property
        def layout(self) -> Mapping[str, slice]:
            """Named parts of the weight vector."""

        @property
        def capabilities(self) -> frozenset[Capability]:
            """What solvers may ask of it."""

    @classmethod
    def example(cls) -> Loss:
        """Return a small one, for the laws that every loss is tested with."""
        raise NotImplementedError

    def at(self, w: Vector, warm: Evaluation | None = None) -> Evaluation:
        """Return the loss at w; `warm` is the last evaluation, for losses that can start from it."""
        raise NotImplementedError

    def in_full(self, w: Vector) -> Vector:
        """Return the weights of the whole field, where those of the loss are some of them."""
        return w

    # --- with the capability of the same name

    def subset(self, ids: Any) -> Loss:
        """Return the loss of some sequences or graphs only."""
        raise self._cannot(Capability.SUBSET)

    def online(self) -> Any:
        """Return the loss's online form: weights that change with every sequence."""
        raise self._cannot(Capability.ONLINE)

    def expectations(self) -> Any:
        """Return what improved iterative scaling needs."""
        raise self._cannot(Capability.EXPECTATIONS)

    def lipschitz(self) -> float:
        """Return a bound of the Hessian's eigenvalues at every w."""
        raise self._cannot(Capability.LIPSCHITZ)

    def _cannot(self, capability: Capability) -> CapabilityError:
        return CapabilityError(f"the {self.name} has no {capability}")


class GrowingLoss(Loss):
    """A loss with the capability "candidates": it has weights for its *active* blocks only and knows of others.

    A block is what is switched on as a whole: in chains an attribute with the weights of all its labels, in graphs an
    edge with all its weights. A candidate has an id, which is the same in every loss that has grown from one. Losses
    do not change; those of a family share what does not depend on the active blocks.
    """

    if TYPE_CHECKING:

        @property
        def n_candidates(self) -> int:
            """How many blocks can still be switched on."""

        @property
        def active_ids(self) -> Vector:
            """Ids of the blocks that were, in an order of the loss's own."""

        @property
        def block_index(self) -> Vector:
            """For every weight the id of its block, or −1 where it is always on (biases, transitions); [size]."""

    @property
    def growing(self) -> tuple[str, ...]:
        """Names of the layout under which weights of blocks stand, all others are always on; by default any."""
        return tuple(self.layout)

    def candidates(
        self, evaluation: Evaluation, norm: str = BlockNorm.MAX, above: float = 0.0
    ) -> tuple[Vector, Vector]:
        """Return (ids, scores) of candidates whose gradient has a larger norm than `above`, the highest score first.

        `norm` is a :class:`BlockNorm`. Of equal scores the lowest id comes first. The evaluation may be of a loss with
        the same active blocks and other candidates.
        """
        raise NotImplementedError

    def activate(self, ids: Vector) -> tuple[GrowingLoss, Vector]:
        """Return (the loss with these blocks switched on as well, the place of each old weight in its vector)."""
        raise NotImplementedError

    def add_candidates(self, *more: Any) -> GrowingLoss:
        """Return the same active blocks with more candidates; what they are depends on the shape."""
        raise NotImplementedError

    def carry(self, evaluation: Any, place: Any) -> Evaluation | None:
        """Return this loss where an evaluation of a smaller one was, with the new weights at zero, without inference.

        Of its gradient the new weights are read. None: it cannot be had without inference, and the loss is evaluated
        with the smaller one's evaluation as `warm`.
        """
        return None


# --- penalties


class Penalty:
    """A function of the weights that is added to the loss."""

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...
        @property
        def strength(self) -> float | None:
            """What `at` changes; None where there is no such number (no penalty, constraints)."""

    else:
        strength = None

    @classmethod
    def examples(cls, size: int) -> Sequence[Penalty]:
        """Return some, of vectors of `size` weights, for the laws that every penalty is tested with."""
        return (cls(),)

    def value(self, w: Vector) -> float:
        raise NotImplementedError

    def split(self) -> tuple[SmoothPenalty | None, RestPenalty | None]:
        """Return (smooth part, rest): solvers add the smooth part to the loss and treat the rest themselves."""
        raise NotImplementedError

    def bind(self, loss: Loss) -> Penalty:
        """Return the same penalty of the weights of this loss; asked for before a run and whenever the loss grows."""
        return self

    def at(self, strength: float) -> Penalty:
        """Return the same kind of penalty with another strength."""
        raise ParameterError(f"{self.name} has no strength that could be changed")

    def critical_strength(self, gradient: Vector) -> float | None:
        """Return the least strength at which w = 0 is optimal, from the gradient there; None if no strength is."""
        return None


class SmoothPenalty(Penalty):
    """A smooth part of a penalty."""

    if TYPE_CHECKING:

        @property
        def kinds(self) -> frozenset[Kind]:
            """For solvers that handle some penalties only."""

    def split(self) -> tuple[SmoothPenalty | None, RestPenalty | None]:
        return self, None

    def add_gradient(self, w: Vector, gradient: Vector) -> None:
        """gradient += ∇penalty(w), in place."""
        raise NotImplementedError

    def add_hessp(self, w: Vector, v: Vector, product: Vector) -> None:
        """product += ∇²penalty(w)·v, in place."""
        raise NotImplementedError

    def add_hess_diag(self, w: Vector, diagonal: Vector) -> None:
        """diagonal += the diagonal of ∇²penalty(w), in place."""
        raise NotImplementedError

    def lipschitz(self) -> float | None:
        """Return a bound of how fast its gradient changes; None: not known."""
        return None


class RestPenalty(Penalty):
    """A part that is not smooth (at zero)."""

    if TYPE_CHECKING:

        @property
        def kinds(self) -> frozenset[Kind]:
            """What solvers may use of it."""

    def split(self) -> tuple[SmoothPenalty | None, RestPenalty | None]:
        return None, self

    @property
    def selection(self) -> Selection | None:
        """The rule by which candidates of a growing loss stay out; None: it keeps none out."""
        return None

    def min_norm_subgradient(self, w: Vector, gradient: Vector) -> Vector:
        """Return the shortest sub-gradient of f + penalty at w, where gradient = ∇f(w): zero exactly at an optimum."""
        raise NotImplementedError

    def prox(self, w: Vector, step: float) -> Vector:
        """Return argmin_x ‖x − w‖²/2 + step·penalty(x)."""
        raise NotImplementedError

    def restricted(self, places: Any) -> RestPenalty:
        """Return the same penalty as a function of the weights at these places alone, with all others at zero."""
        raise ParameterError(f"{self.name} cannot be restricted to some of the weights")


class EpigraphPenalty(RestPenalty):
    """A rest that is min_α cost·α over a set of (w, α) that can be projected onto: kind "epigraph".

    Of Σ_G strength·‖w_G‖ the set is {‖w_G‖ ≤ α_G}; a constraint has no α.
    """

    def epigraph_size(self, n_weights: int) -> int:
        """Return how many α there are for so many weights."""
        raise NotImplementedError

    def epigraph_start(self, w: Vector) -> tuple[Vector, Vector]:
        """Return (the least α of w, the cost of each α)."""
        raise NotImplementedError

    def project_epigraph(self, w: Vector, alpha: Vector) -> tuple[Vector, Vector]:
        """Return the nearest (w, α) of the set, as new vectors."""
        raise NotImplementedError


# --- solvers


class Iterate(Protocol):
    """Where a solver stands: a :class:`~crfkit.solvers.parts.objective.Point`, or what an online solver has instead."""

    @property
    def w(self) -> Vector: ...
    @property
    def value(self) -> float: ...
    @property
    def optimality(self) -> float: ...
    @property
    def finite(self) -> bool: ...


class State(Protocol):
    """What a solver keeps from step to step."""

    @property
    def point(self) -> Iterate: ...
    def saved(self) -> Mapping[str, Any]:
        """Return arrays and numbers from which a later run can go on at the same w."""
        ...


class Solver:
    """A solver is `init` and `step`; the loop (:mod:`crfkit.solvers.parts.loop`) owns the rest."""

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...
        @property
        def needs(self) -> frozenset[Capability]:
            """What the loss must be able to do."""

        @property
        def handles_smooth(self) -> frozenset[Kind] | None:
            """Which kinds of a penalty's smooth part it takes; None (the default): any."""

        @property
        def handles_rest(self) -> frozenset[Kind]:
            """Which kinds of a penalty's rest it can minimise; none (the default): smooth objectives only."""

        @property
        def max_iterations(self) -> int: ...
        @property
        def stopping(self) -> StoppingRule: ...
        @property
        def nonmonotone(self) -> bool:
            """Whether values rise now and then, so that stopping rules have to allow for it; False by default."""

        @property
        def first_order(self) -> bool:
            """Whether it needs more iterations the worse the problem is conditioned; False by default."""

        @property
        def numpy_only(self) -> bool:
            """Whether vectors must be NumPy's: it hands them to the compiled core or to SciPy. False by default."""

        @property
        def own_objective(self) -> bool:
            """Whether its values are not those of loss + penalty, so that it may end above the start; see below."""

    else:
        handles_smooth = None
        handles_rest = frozenset()
        nonmonotone = False
        first_order = False
        numpy_only = False
        own_objective = False

    def minimize(
        self,
        loss: Loss,
        penalty: Penalty,
        w0: Vector,
        callbacks: Sequence[Any] = (),
        resume: Mapping[str, Any] | None = None,
    ) -> Result:
        """Minimise from w0; `resume` is the `state` of an earlier result of the same solver, to go on from w0."""
        raise NotImplementedError

    def init(self, objective: Objective, w0: Vector, saved: Mapping[str, Any]) -> Any:
        """Return the :class:`State` at w0; `saved` is empty, or what a state of this solver at w0 saved."""
        raise NotImplementedError

    def step(self, objective: Objective, state: Any) -> Any:
        """Return the next state, or a :class:`~crfkit.result.Status` when it cannot go on."""
        raise NotImplementedError

    def finished(self, trace: Sequence[TraceRow], state: Any) -> bool:
        """Return whether to stop at this state, that of the last row."""
        raise NotImplementedError

    def next_phase(self, objective: Objective, state: Any) -> Any:
        """Return the state to go on from where `finished` ends a phase only; None (the default): it ends the run."""
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
