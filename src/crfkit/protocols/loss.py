"""The contract of a loss: a smooth function of the weights. See :mod:`crfkit.protocols` for how to read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from crfkit._types import Ints
from crfkit._types import Vector as Vector
from crfkit.capabilities import BlockNorm, Capability
from crfkit.errors import CapabilityError

if TYPE_CHECKING:
    from crfkit.graph.inference.marginals import Engine


class Evaluation(Protocol):
    """A loss at one point; what is asked for is computed once, when it is first needed."""

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


class Epochs(Protocol):
    """Plain stochastic gradients: weights that change with every sequence, in an order that is given."""

    n_sequences: int

    def start(self, w: Vector) -> None: ...
    def weights(self) -> Vector: ...
    def square(self) -> float:
        """Return ``‖w‖²``."""
        ...

    def sgd(self, order: Vector, steps: Vector, l2: float = 0.0, l1: float = 0.0, averaged: bool = False) -> float:
        """Return the sum of the losses, each before its update."""
        ...


class Online(Epochs, Protocol):
    """The online form of a loss: epochs, the average of their weights, and a state from which a run goes on."""

    def start(self, w: Vector, variances: Vector = None) -> None: ...
    def average(self) -> Vector: ...
    def save(self) -> Mapping[str, Any]: ...
    def restore(self, saved: Mapping[str, Any]) -> None: ...


class SampledEvaluation(Evaluation, Protocol):
    """An evaluation of a loss with the capability "hess_sample"."""

    def hess_sample(self, sequences: int, seed: int) -> Any:
        """A sparse matrix A with E[AᵀA] = ∇²loss(w), a sample of about so many sequences."""
        ...


@dataclass(frozen=True)
class LossOptions:
    """Options of :meth:`Loss.make` besides data and field. A loss takes those that it needs."""

    name: str = ""  # the option that named the loss
    n_threads: int | None = None
    seed: int = 0
    cost: Vector = None  # [gold label, label], of losses with `takes_cost`
    precision: str = "double"  # of losses with `has_single`
    attributes: Any = None  # which attributes of the training set those of the field are, if they are not all
    engine: Callable[[], Engine] | None = None  # makes the engine of losses with inference
    start_tolerance: float | None = None  # of such an engine


class Loss:
    """A smooth function of the weights. See :class:`Capability` for what else it may be able to do."""

    takes_cost: ClassVar[bool] = False  # whether mistakes have costs (softmax margin, hinge)
    has_single: ClassVar[bool] = False  # whether it evaluates in single precision
    screenable: ClassVar[bool] = False  # whether attributes that L1 holds at zero may be omitted from training
    growing_form: ClassVar[str | None] = None  # the loss, by its name in the index, for solvers that select attributes
    partial_form: ClassVar[str | None] = None  # the same for labels that are known in part
    sums_over_unknown: ClassVar[bool] = False  # whether it sums over unknown labels of graphs; others need all
    sees_neighbours: ClassVar[bool] = False  # whether it is given the true labels of neighbours
    rows: ClassVar[str] = "all"  # what it needs of a table without inputs: all rows, "distinct" ones, or "counts"
    held_out_strength: ClassVar[bool] = False  # whether its L2 strength may be chosen on held-out rows
    shardable: ClassVar[bool] = False  # whether it is the sum of losses of parts of the data, on a cluster

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
            """Capabilities that solvers may use."""

        @property
        def n_terms(self) -> float: ...  # how many terms it sums, positions say; with the capability "online"
        # with the capability "precision": the relative rounding error of values, and the length of the gradient above
        # which its own error does not matter
        @property
        def rounding(self) -> float: ...
        @property
        def trusted(self) -> float: ...
    else:
        n_terms = rounding = trusted = 0.0

    convex: bool = True  # whether it is known to be convex: a stationary point is then the optimum
    data: Any = None  # the sequences or graphs of the ids of `subset`, if it keeps them
    engine: Any = None  # of inference; None for losses without
    tolerance: float = 0.0  # the error of evaluations; with the capability "precision" solvers lower it to `finest`
    finest: float = 0.0

    @property
    def used(self) -> str | None:
        """The precision that evaluations have now, and had before; None for losses with one precision."""
        return None

    @classmethod
    def example(cls) -> Loss:
        """Return a small one, for the laws that every loss is tested with."""
        raise NotImplementedError

    @classmethod
    def make(cls, data: Any, field: Any, options: LossOptions) -> Loss:
        """Return the loss of data and a field, for the option `loss=` that names it."""
        raise NotImplementedError

    def at(self, w: Vector, warm: Evaluation | None = None) -> Evaluation:
        """Return the loss at w; `warm` is the last evaluation, for losses that can start from it."""
        raise NotImplementedError

    def in_full(self, w: Vector) -> Vector:
        """Return the weights of the whole field, of which the loss may have some only."""
        return w

    def of_full(self, w: Vector) -> Vector:
        """Return the loss's weights for weights of the whole field."""
        return w

    # --- with the capability of the same name

    def subset(self, ids: Ints) -> Loss:
        """Return the loss of some sequences or graphs only."""
        raise self._cannot(Capability.SUBSET)

    def online(self) -> Online:
        """Return the loss's online form: weights that change with every sequence."""
        raise self._cannot(Capability.ONLINE)

    def epochs(self) -> Epochs:
        """Plain stochastic gradients (`start`, `sgd`, `weights`), as fast as the loss has them."""
        return self.online()

    def epoch_cost(self) -> float:
        """Return the time of an epoch of stochastic gradients, in evaluations."""
        raise self._cannot(Capability.ONLINE)

    def dense_size(self) -> int:
        """Return for how many weights a dense Hessian costs no more to factor than some evaluations."""
        raise self._cannot(Capability.HESS_SAMPLE)

    def order(self, n: int, seed: int, epoch: int) -> Vector:
        """Return the order of the n sequences in an epoch of stochastic gradients; its arguments determine it."""
        return np.random.default_rng([seed, epoch]).permutation(n)

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

    def carry(self, evaluation: Any, place: Vector) -> Evaluation | None:
        """Return this loss where an evaluation of a smaller one was, with the new weights at zero, without inference.

        Of its gradient the new weights are read. None: it cannot be had without inference, and the loss is evaluated
        with the smaller one's evaluation as `warm`.
        """
        return None
