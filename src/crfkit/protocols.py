"""The contracts of the three axes: loss, penalty, solver. One page; every member keeps it.

``J(w) = loss(w) + penalty(w)``. Losses are sums over sequences, not means. ``L2(s) = s/2·‖w‖²``.
Vectors are one-dimensional arrays of one library (NumPy, or any that follows the array API); solvers use
only their operators and the functions of :mod:`crfkit.arrays`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from crfkit.result import Result

Vector = Any


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


@runtime_checkable
class Loss(Protocol):
    """A smooth function of the weights."""

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int:
        """Number of weights."""
        ...

    @property
    def layout(self) -> Mapping[str, slice]:
        """Named blocks of the weight vector."""
        ...

    @property
    def capabilities(self) -> frozenset[str]:
        """What solvers may ask of it.

        "smooth" (the gradient is continuous), "hessp", "hess_diag" (of its evaluations); "gradient" in place of
        "smooth": an estimate of a gradient that differs from evaluation to evaluation, and no value (NaN), so that
        nothing may compare values. And four methods that a loss may have: "subset" (`subset(ids)`: the loss of some
        sequences only, for mini-batches), "online" (`online()`: updates sequence by sequence, see crfkit.losses.online;
        such a loss has `epoch_cost()`, the time of an epoch in evaluations, and `n_terms`, the number of its positions;
        with "mistakes" those that look only at the best labelling, which are wrong for a loss with a cost),
        "expectations" (`expectations()`: what improved iterative scaling needs), "lipschitz" (`lipschitz()`: a bound of
        the Hessian's eigenvalues at every w). "warm": an evaluation is quicker when it starts from the last one.
        "precision": it has a `tolerance` that solvers lower as they get near the optimum, down to `finest`; the loss at
        w is then exact to within that tolerance only. "candidates": the loss can grow, see :class:`GrowingLoss`.
        """
        ...

    def at(self, w: Vector, warm: Evaluation | None = None) -> Evaluation:
        """The loss at w; `warm` is the last evaluation, for losses that can start from it."""
        ...


@runtime_checkable
class GrowingLoss(Loss, Protocol):
    """A loss with the capability "candidates": it has weights for its *active* blocks only and knows of others.

    A block is what is switched on as a whole: in chains an attribute with the weights of all its labels, in graphs an
    edge with all its weights. A candidate has an id, which is the same in every loss that has grown from one. Losses
    do not change; those of a family share what does not depend on the active blocks. A loss may have
    ``carry(evaluation, place)``: its evaluation where an evaluation of a smaller one of the family was, with the new
    weights at zero, without inference (of its gradient the new weights are read); losses without it are evaluated
    again, with the smaller one's evaluation as `warm`.
    """

    @property
    def n_candidates(self) -> int:
        """How many blocks can still be switched on."""
        ...

    @property
    def active_ids(self) -> Vector:
        """Ids of the blocks that were, in an order of the loss's own."""
        ...

    @property
    def block_index(self) -> Vector:
        """For every weight the id of its block, or −1 where it is always on (biases, transitions); [size]."""
        ...

    def candidates(self, evaluation: Evaluation, norm: str = "max", above: float = 0.0) -> tuple[Vector, Vector]:
        """(ids, scores) of candidates whose gradient has a larger norm than `above`, the highest score first.

        `norm` is the dual of the penalty's norm of a block: "max" for L1, "l1" for L∞ and "l2" for L2 groups. Of equal
        scores the lowest id comes first. The evaluation may be of a loss with the same active blocks and other
        candidates.
        """
        ...

    def activate(self, ids: Vector) -> tuple[GrowingLoss, Vector]:
        """(the loss with these blocks switched on as well, the place of each old weight in its vector)."""
        ...

    def add_candidates(self, *more: Any) -> GrowingLoss:
        """The same active blocks with more candidates; what they are depends on the shape."""
        ...


@runtime_checkable
class Penalty(Protocol):
    """A function of the weights that is added to the loss."""

    @property
    def name(self) -> str: ...
    def value(self, w: Vector) -> float: ...

    # A penalty of named blocks may have bound(layout): the same with the blocks of a loss, which the loop asks for;
    # one of a loss's candidates over(loss), which is asked for whenever the loss grows.

    def split(self) -> tuple[SmoothPenalty | None, RestPenalty | None]:
        """(smooth part, rest): solvers add the smooth part to the loss and treat the rest themselves."""
        ...


@runtime_checkable
class SmoothPenalty(Penalty, Protocol):
    @property
    def kinds(self) -> frozenset[str]:
        """For solvers that handle some penalties only: "l2" is `strength`/2·‖w‖²."""
        ...

    def add_gradient(self, w: Vector, gradient: Vector) -> None:
        """gradient += ∇penalty(w), in place."""
        ...

    def add_hessp(self, w: Vector, v: Vector, product: Vector) -> None:
        """product += ∇²penalty(w)·v, in place."""
        ...

    def add_hess_diag(self, w: Vector, diagonal: Vector) -> None:
        """diagonal += the diagonal of ∇²penalty(w), in place."""
        ...


@runtime_checkable
class RestPenalty(Penalty, Protocol):
    """A part that is not smooth (at zero)."""

    @property
    def kinds(self) -> frozenset[str]:
        """What solvers may use of it: "l1" (`strength`·‖w‖₁), "orthants" (that of some weights), "prox", "epigraph"
        (see :class:`EpigraphPenalty`), "by block" (it grows with the loss)."""
        ...

    def min_norm_subgradient(self, w: Vector, gradient: Vector) -> Vector:
        """The shortest sub-gradient of f + penalty at w, where gradient = ∇f(w): zero exactly at an optimum."""
        ...

    def prox(self, w: Vector, step: float) -> Vector:
        """argmin_x ‖x − w‖²/2 + step·penalty(x)."""
        ...


class EpigraphPenalty(RestPenalty, Protocol):
    """A rest that is min_α cost·α over a set of (w, α) that can be projected onto: kind "epigraph".

    Of Σ_G strength·‖w_G‖ the set is {‖w_G‖ ≤ α_G}; a constraint has no α.
    """

    def epigraph_size(self, n_weights: int) -> int:
        """How many α there are for so many weights."""
        ...

    def epigraph_start(self, w: Vector) -> tuple[Vector, Vector]:
        """(the least α of w, the cost of each α)."""
        ...

    def project_epigraph(self, w: Vector, alpha: Vector) -> tuple[Vector, Vector]:
        """The nearest (w, α) of the set, as new vectors."""
        ...


class Solver(Protocol):
    """`init` and `step`; the loop owns the rest (see :mod:`crfkit.solvers.parts.loop`)."""

    @property
    def name(self) -> str: ...
    @property
    def needs(self) -> frozenset[str]:
        """Capabilities that the loss must have."""
        ...

    @property
    def handles_rest(self) -> frozenset[str]:
        """Which kinds of a penalty's rest it can minimise; none: smooth objectives only."""
        ...

    def minimize(
        self,
        loss: Loss,
        penalty: Penalty,
        w0: Vector,
        callbacks: Sequence[Any] = (),
        resume: Mapping[str, Any] | None = None,
    ) -> Result:
        """Minimises from w0; `resume` is the `state` of an earlier result of the same solver, to go on from w0."""
        ...
