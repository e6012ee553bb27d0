"""The likelihood of chains on tensors: a loss of the contract whose vectors are tensors of one device.

    loss = Σ_n weight_n · (log Z(x_n) − score(x_n, y_n)),    log Z as in :mod:`crfkit.torch.scaled`

Weights stand as in :class:`~crfkit.chain.fields.field.ChainField`, so that vectors go from NumPy to tensors and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from crfkit._types import Ints
from crfkit.chain.losses.precision import SINGLE, RoundedLoss
from crfkit.errors import DataError, ParameterError
from crfkit.protocols import Capability, Evaluation
from crfkit.torch.chain_arrays import ChainArrays
from crfkit.torch.chain_first_order import Chains, FirstOrder
from crfkit.torch.chain_rows import ChainRows
from crfkit.torch.devices import enough_memory, find_device
from crfkit.torch.kernels import usable, why_not
from crfkit.torch.log_space import LogChains
from crfkit.torch.scaled import ScaledChains
from crfkit.warn import warn_caller


class TensorChainLikelihood(RoundedLoss):
    """The negative log-likelihood of labelled sequences; exact.

    `precision` is that of scores, probabilities and gradients: "double", "single", or "auto": single until a solver
    sees rounding errors, then double. Sums over positions are in double precision always. Weights may be of either
    type; gradients have that of the weights.
    """

    name = "chain likelihood"
    data: ChainRows
    capabilities = frozenset({Capability.SMOOTH, Capability.HESSP, Capability.HESS_DIAG, Capability.SUBSET})

    def __init__(self, arrays: ChainArrays, device: str | torch.device = "cuda", precision: str = "double") -> None:
        self.device = find_device(device)
        self.arrays = arrays
        self.set_precision(precision)
        if arrays.labels is None or arrays.targets is not None or arrays.token_weights is not None:
            raise DataError("the likelihood of chains on tensors needs labels, one for each position, without weights")
        if self.device.type == "cuda" and not usable(self.device, arrays.n_labels):
            warn_caller(f"{why_not(arrays.n_labels)}: plain PyTorch is used, which is slower", RuntimeWarning)
        with enough_memory(self.device, "the training set", "use fewer sequences or attributes, or the CPU"):
            self.data = ChainRows.of(arrays, self.device)

    @property
    def size(self) -> int:
        return self.data.scores.field.size

    @property
    def layout(self) -> Mapping[str, slice]:
        return self.arrays.layout

    @property
    def n_terms(self) -> float:
        return self.data.n_terms

    def zeros(self) -> Tensor:
        """Return the vector of zeros to begin with: single floats if that is the precision, doubles otherwise."""
        dtype = torch.float32 if self.precision == "single" else torch.float64
        return torch.zeros(self.size, dtype=dtype, device=self.device)

    def vector(self, w: object) -> Tensor:
        """Return weights of any array library as a vector of this loss."""
        return torch.asarray(w, dtype=self.zeros().dtype, device=self.device, copy=True)

    def at(self, w: Tensor, warm: Evaluation | None = None) -> TensorChainEvaluation:
        check_vector(w, self.size, self.device)
        return TensorChainEvaluation(self, w)

    def subset(self, ids: Ints) -> TensorChainLikelihood:
        """The loss of some sequences only; multiply by ``len(data) / len(ids)`` to estimate the whole."""
        part = TensorChainLikelihood.__new__(TensorChainLikelihood)
        part.device, part.arrays = self.device, self.arrays
        part.set_precision(self.precision)
        part.data = self.data.take(torch.asarray(ids, dtype=torch.int64, device=self.device))
        return part

    @property
    def dtype(self) -> torch.dtype:
        """The type of numbers that evaluations compute with now."""
        return torch.float32 if self.tolerance == SINGLE else torch.float64


class TensorChainEvaluation:
    """The loss at w. Value and gradient are computed together; getting the value is the one wait for the device."""

    def __init__(self, loss: TensorChainLikelihood, w: Tensor) -> None:
        self.w = w
        self._loss = loss
        self._both: tuple[float, Tensor] | None = None
        self._dtype = loss.dtype
        self._chains: Chains | None = None
        self._lost = False  # whether probabilities could not hold this

    @property
    def value(self) -> float:
        return self._evaluate()[0]

    @property
    def grad(self) -> Tensor:
        return self._evaluate()[1]

    def hessp(self, v: Tensor) -> Tensor:
        """∇²loss(w)·v."""
        check_vector(v, self._loss.size, self._loss.device)
        rows = self._loss.data
        with self._enough_memory():
            chains = self._distributions()
            unary, pairs = rows.scores.linear(v.to(chains.nodes.dtype))
            d_nodes, d_pairs = chains.tangent(unary, pairs, rows.later_weights)
            return rows.scores.adjoint(rows.weighted(d_nodes), d_pairs).to(v.dtype)

    def hess_diag(self) -> Tensor:
        """Σ p(1−p) over the occurrences of each feature, values squared: the diagonal as if they were independent."""
        rows = self._loss.data
        with self._enough_memory():
            chains = self._distributions()
            pairs = chains.pair_sums(rows.later_weights) - chains.pair_sums(rows.later_weights, square=True)
            nodes = rows.weighted(chains.nodes * (1.0 - chains.nodes))
            return rows.scores.adjoint(nodes, pairs, power=2).clamp_min_(0.0).to(self.w.dtype)

    def _evaluate(self) -> tuple[float, Tensor]:
        if self._both is None:
            with self._enough_memory():
                self._both = self._compute()
        return self._both

    def _enough_memory(self) -> AbstractContextManager[None]:
        advice = "use fewer sequences, precision='single', or the CPU"
        return enough_memory(self._loss.device, "an evaluation", advice)

    def _distributions(self) -> Chains:
        """Return the distributions of all sequences, from which second derivatives follow."""
        self._evaluate()
        if self._chains is None:
            rows = self._loss.data
            unary, pairs = rows.scores.potentials(self.w.to(self._dtype))
            self._chains = (LogChains if self._lost else ScaledChains)(unary, pairs, rows.packing)
        return self._chains

    def _compute(self) -> tuple[float, Tensor]:
        rows = self._loss.data
        unary, pairs = rows.scores.potentials(self.w.to(self._dtype))
        for first_order in (FirstOrder.fast, FirstOrder.safe):
            found = first_order(rows, unary, pairs)
            gradient = found.gradient(rows).to(self.w.dtype)
            value, self._lost = found.numbers()
            self._chains = found.chains
            if not self._lost:
                break
        return value, gradient


def check_vector(w: Any, size: int, device: torch.device) -> None:
    """Raise ParameterError unless w is a vector of the loss."""
    if not isinstance(w, Tensor):
        raise ParameterError(
            f"the weights are a {type(w).__module__}.{type(w).__qualname__}; expected a tensor on {device}: convert "
            "them with loss.vector(w)"
        )
    if w.device != device or w.dtype not in (torch.float32, torch.float64) or w.shape != (size,):
        raise ParameterError(
            f"the weights are a tensor of shape {tuple(w.shape)} and type {w.dtype} on {w.device}; expected shape "
            f"({size},) and type float32 or float64 on {device}: convert them with loss.vector(w)"
        )
