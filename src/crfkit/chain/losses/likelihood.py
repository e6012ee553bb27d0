"""Losses of chains: negative log-likelihood and its margin forms.

likelihood       Σ_n weight_n · (log Σ_y exp score(x_n, y) − score(x_n, y_n))
softmax margin   the same with score(x_n, y) + cost(y_n, y) in the sum (Gimpel & Smith 2010)
hinge            Σ_n weight_n · (max_y (score(x_n, y) + cost(y_n, y)) − score(x_n, y_n))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import ref

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfkit import _core
from crfkit._threads import count_threads
from crfkit._types import Floats
from crfkit.arrays import empty
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.chain.losses.online import OnlineChain, SingleEpochs
from crfkit.chain.losses.online_cost import dense_size, epoch_cost
from crfkit.chain.losses.precision import DOUBLE, SINGLE, RoundedLoss
from crfkit.errors import CapabilityError, DataError, ParameterError
from crfkit.protocols import Capability, Evaluation, LossOptions
from crfkit.protocols.field_loss import LazyEvaluation
from crfkit.training.costs import cost_matrix

if TYPE_CHECKING:
    from crfkit.chain.losses.expectations import ChainExpectations


SMALL = 40_000  # positions times labels, below which starting a thread takes as long as it saves


class ChainLoss(RoundedLoss):
    """A loss of a field on labelled sequences. `cost` is [gold label, label]."""

    hinge: ClassVar[bool] = False
    has_single = True
    shardable = True

    @classmethod
    def make(cls, data: SequenceData, field: ChainField, options: LossOptions) -> ChainLoss:
        given: dict[str, Any] = {"cost": options.cost} if cls.takes_cost else {}
        if cls.has_single:
            given["precision"] = options.precision
        return cls(data, field, n_threads=options.n_threads, **given)

    @classmethod
    def example(cls) -> ChainLoss:
        from crfkit.chain.losses.examples import chain_example

        return cls(*chain_example())

    def __init__(
        self,
        data: SequenceData,
        field: ChainField,
        n_threads: int | None = None,
        kernels: str = "auto",
        cache_bytes: int = 1 << 30,
        cost: Floats | None = None,
        precision: str = "double",
        plan: _core.KeptPlan | None = None,
    ) -> None:
        """`cache_bytes`: how much memory Hessian products may use to save time. `plan`: what :meth:`plan` returned for
        the same data and field; it saves most of the time that a new loss takes.

        `precision` is that of scores, messages and gradients: "double", "single" (faster; values, log Z and sums over
        the data are doubles still), or "auto": single until a solver sees rounding errors, then double. Hessian
        products, margins of the hinge and weights that single floats cannot hold are computed in double always.
        """
        self.data = data
        self.field = field
        self.cost = cost
        self.n_threads = n_threads
        self.kernels = kernels
        self._cache_bytes = cache_bytes
        self.set_precision(precision, possible=not self.hinge)
        flat = None if cost is None else cost.ravel()
        try:
            self._objective = _core.Objective(
                data.native, field.native, self.used_threads, kernels, flat, self.hinge, plan
            )
        except ParameterError:  # CRFKIT_KERNELS
            raise
        except ValueError as error:
            raise DataError(str(error)) from None
        self._curved = False  # whether a Hessian product was asked for: the next evaluations prepare for it
        # the evaluation that the native objective stands at; not kept alive, as it knows the loss
        self._held: ref[ChainEvaluation] | None = None

    @property
    def used_threads(self) -> int:
        """The number of threads of an evaluation: as given, or all cores; one if the data are small."""
        if self.n_threads is None and self.data.n_positions * self.field.n_labels < SMALL:
            return 1
        return count_threads(self.n_threads)

    def plan(self) -> Mapping[str, NDArray[Any]]:
        """Return the arrays that the data were written out to for the kernels, by their names in `KeptPlan`."""
        return self._objective.plan()

    def at(self, w: Floats, warm: Evaluation | None = None) -> ChainEvaluation:
        return ChainEvaluation(self, w)

    def subset(self, ids: ArrayLike) -> ChainLoss:
        """The loss of some sequences only; multiply by ``len(data) / len(ids)`` to estimate the whole."""
        part = type(self).__new__(type(self))
        ChainLoss.__init__(
            part,
            self.data.take(ids),
            self.field,
            self.n_threads,
            self.kernels,
            self._cache_bytes,
            self.cost,
            self.precision,
        )
        return part

    def online(self) -> OnlineChain:
        """Updates sequence by sequence."""
        if Capability.ONLINE not in self.capabilities:
            raise self._cannot(Capability.ONLINE)
        return OnlineChain(self.data, self.field, self.kernels, self.cost, self.hinge)

    def epochs(self) -> OnlineChain | SingleEpochs:
        """Plain stochastic gradients, in the precision that evaluations have now."""
        if self.tolerance != SINGLE:
            return self.online()
        return SingleEpochs(self.data, self.field, self.kernels, self.cost)

    @property
    def n_terms(self) -> float:
        """The number of positions, each counted with the weight of its sequence."""
        lengths, weights = self.data.lengths, self.data.weights
        return float(lengths.sum() if weights is None else lengths @ weights)

    def epoch_cost(self) -> float:
        """The time of an epoch of `online().sgd`, in evaluations; counted, not measured."""
        data = self.data
        return epoch_cost(data.n_positions, len(data.attributes), len(data), self.field, self.used_threads)

    def dense_size(self) -> int:
        """Return for how many weights a dense Hessian costs no more to factor than some evaluations; counted."""
        data = self.data
        return dense_size(data.n_positions, len(data.attributes), len(data), self.field, self.used_threads)

    def expectations(self) -> ChainExpectations:
        """Expected feature counts by total count, for improved iterative scaling."""
        if Capability.EXPECTATIONS not in self.capabilities:
            raise self._cannot(Capability.EXPECTATIONS)
        from crfkit.chain.losses.expectations import ChainExpectations

        return ChainExpectations(self)


class ChainLikelihood(ChainLoss):
    """The negative log-likelihood; exact."""

    name = "chain likelihood"
    screenable = True
    growing_form: ClassVar[str | None] = "chain-candidates"
    partial_form: ClassVar[str | None] = "chain-marginal-likelihood"
    capabilities = frozenset(
        {
            Capability.SMOOTH,
            Capability.HESSP,
            Capability.HESS_DIAG,
            Capability.HESS_SAMPLE,
            Capability.SUBSET,
            Capability.ONLINE,
            Capability.MISTAKES,
            Capability.EXPECTATIONS,
        }
    )


class SoftmaxMargin(ChainLoss):
    """Likelihood in a field where wrong labels score higher by their cost: a smooth margin. `cost` None: Hamming."""

    name = "softmax margin"
    takes_cost = screenable = True
    growing_form = "chain-margin-candidates"
    capabilities = frozenset(
        {Capability.SMOOTH, Capability.HESSP, Capability.HESS_DIAG, Capability.SUBSET, Capability.ONLINE}
    )

    def __init__(
        self,
        data: SequenceData,
        field: ChainField,
        cost: ArrayLike | None = None,
        n_threads: int | None = None,
        kernels: str = "auto",
        cache_bytes: int = 1 << 30,
        precision: str = "double",
    ) -> None:
        super().__init__(data, field, n_threads, kernels, cache_bytes, cost_matrix(cost, field.n_labels), precision)


class StructuredHinge(ChainLoss):
    """The margin loss of structured support vector machines; it is not smooth. `cost` None: Hamming."""

    name = "structured hinge"
    capabilities = frozenset({Capability.SUBSET, Capability.ONLINE})
    takes_cost = hinge = True
    has_single = False

    def __init__(
        self,
        data: SequenceData,
        field: ChainField,
        cost: ArrayLike | None = None,
        n_threads: int | None = None,
        kernels: str = "auto",
    ) -> None:
        super().__init__(data, field, n_threads, kernels, 0, cost_matrix(cost, field.n_labels))


class ChainEvaluation(LazyEvaluation):
    """A chain loss at w; value and gradient are computed together when either is first asked for."""

    def _evaluate(self) -> tuple[float, Floats]:
        loss = self._loss
        gradient = empty(len(self.w))
        objective = loss._objective
        keep = loss._curved and objective.cache_bytes <= loss._cache_bytes
        loss._held = None
        if loss.tolerance > DOUBLE and not loss._curved:
            single = objective.single_value_gradient(self.w, gradient)
            if single is not None:
                return single, gradient
            loss.fall_back()
        value = objective.value_gradient(self.w, gradient, keep, loss._curved)
        loss._held = ref(self)
        return value, gradient

    def hessp(self, v: Floats) -> Floats:
        """∇²loss(w)·v."""
        loss = self._loss
        self._require(Capability.HESSP)
        if loss._held is None or loss._held() is not self or not loss._curved:
            loss._curved = True
            self._evaluate()
        product = empty(len(self.w))
        loss._objective.hessian_product(np.ascontiguousarray(v), product)
        return product

    def hess_diag(self) -> Floats:
        """Σ p(1−p) over the occurrences of each feature, values squared: the diagonal as if they were independent."""
        self._require(Capability.HESS_DIAG)
        diagonal = empty(len(self.w))
        self._loss._held = None
        self._loss._objective.hessian_diagonal(self.w, diagonal, self._loss.tolerance > DOUBLE)
        return diagonal

    def hess_sample(self, sequences: int, seed: int) -> Any:
        """See :mod:`crfkit.chain.losses.sampled_hessian`."""
        from crfkit.chain.losses.sampled_hessian import sampled_hessian

        self._require(Capability.HESS_SAMPLE)
        loss = self._loss
        return sampled_hessian(loss.data, loss.field, self.w, sequences, seed, loss.n_threads, loss.kernels)

    def _require(self, capability: Capability) -> None:
        if capability not in self._loss.capabilities:
            raise CapabilityError(f"the {self._loss.name} has no {capability}")
