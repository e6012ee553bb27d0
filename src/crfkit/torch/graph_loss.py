"""The pseudo-likelihood of graphs on tensors: a loss of the contract whose vectors are tensors of one device.

    loss = Σ_i weight_i · (log Σ_k exp c_i(k) − c_i(y_i)),    c_i(k) = U_i(k) + Σ_{j ∈ N(i)} P_ij(k, y_j)

Scores c are linear in the weights: c = A w. So the gradient is Aᵀ of residuals, and ∇²loss·v = Aᵀ of covariances · A v.
Weights stand as in :class:`~crfkit.graph.fields.field.GraphField`, so that vectors go from NumPy to tensors and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from crfkit._types import Ints
from crfkit.chain.losses.precision import SINGLE, RoundedLoss
from crfkit.protocols import Capability, Evaluation
from crfkit.protocols.field_loss import LazyEvaluation
from crfkit.torch.chain_loss import check_vector
from crfkit.torch.chain_scores import tensor
from crfkit.torch.devices import enough_memory, find_device
from crfkit.torch.feature_maps import FeatureMap
from crfkit.torch.graph_arrays import GraphArrays
from crfkit.torch.graph_pairs import pairs_of
from crfkit.torch.grouped_sums import GroupedSums


class NodeScores:
    """The linear map A, w → scores of each node's states given its neighbours [n, K], on a device."""

    def __init__(self, arrays: GraphArrays, device: torch.device) -> None:
        self._nodes = FeatureMap(arrays.node_features, arrays.node_rows, arrays.node_types, arrays.node_active, device)
        self._edges = FeatureMap(arrays.edge_features, arrays.edge_rows, arrays.edge_types, arrays.edge_active, device)
        self._pairs = pairs_of(arrays, self._edges, device)
        ends = tensor(arrays.edges, device, torch.int64)
        self._by_node = GroupedSums.by_group(torch.cat([ends[:, 0], ends[:, 1]]), arrays.n_nodes)
        self._basis = None if arrays.node_basis is None else tensor(arrays.node_basis, device, torch.float64)
        self.absent: Tensor | None = None  # [n, K] states that a node does not have
        if (arrays.n_states < arrays.most_states).any():
            states = arrays.n_states[np.zeros(arrays.n_nodes, int) if arrays.node_types is None else arrays.node_types]
            self.absent = tensor(np.arange(arrays.most_states) >= states[:, None], device, torch.bool)

    def times(self, w: Tensor) -> Tensor:
        """Return A w."""
        unary = self._nodes.coefficients(w[: self._nodes.size])
        if self._basis is not None:
            unary = unary @ self._basis.to(w.dtype)
        return unary + self._by_node(self._pairs.messages(self._edges.rows(w[self._nodes.size :])))

    def transposed(self, values: Tensor) -> Tensor:
        """Return Aᵀ of values [n, K]."""
        along = values if self._basis is None else values @ self._basis.to(values.dtype).T
        nodes = self._nodes.adjoint(self._nodes.gathered(along))
        return torch.cat([nodes, self._edges.adjoint(self._pairs.adjoint(values))])

    def variances(self, p: Tensor, weights: Tensor) -> Tensor:
        """Return Σ weight · Var of each feature of each node and edge, as if the edges of a node were independent."""
        nodes = weights * p * (1 - p)
        if self._basis is not None:  # two states with ∓ scores: Var ±1 = 4 p(1 − p)
            nodes = 4 * nodes[:, 1:]
        by_row = self._nodes.adjoint(self._nodes.gathered(nodes), power=2)
        return torch.cat([by_row, self._edges.adjoint(self._pairs.variances(p, weights), power=2)])


class TensorPseudoLikelihood(RoundedLoss):
    """The negative log-pseudo-likelihood of fully labelled graphs; exact, convex and without inference.

    `precision` is that of scores and gradients: "double", "single", or "auto": single until a solver sees rounding
    errors, then double. Weights may be of either type; gradients have that of the weights.
    """

    name = "pseudo-likelihood"
    sees_neighbours = True
    capabilities = frozenset({Capability.SMOOTH, Capability.HESSP, Capability.HESS_DIAG, Capability.SUBSET})

    def __init__(self, arrays: GraphArrays, device: str | torch.device = "cuda", precision: str = "double") -> None:
        self.device = find_device(device)
        self.arrays = self.data = arrays
        self.set_precision(precision)
        with enough_memory(self.device, "the training set", "use fewer graphs or features, or the CPU"):
            self.scores = NodeScores(arrays, self.device)
            self.labels = tensor(arrays.labels, self.device, torch.int64)
            weights = np.repeat(arrays.weights, np.diff(arrays.node_offsets))
            self.node_weights = tensor(weights, self.device, torch.float64)

    @property
    def size(self) -> int:
        return self.layout["edge"].stop

    @property
    def layout(self) -> Mapping[str, slice]:
        return self.arrays.layout

    @cached_property
    def n_terms(self) -> float:
        return float(self.node_weights.sum())

    @property
    def dtype(self) -> torch.dtype:
        """The type of numbers that evaluations compute with now."""
        return torch.float32 if self.tolerance == SINGLE else torch.float64

    def zeros(self) -> Tensor:
        """Return the vector of zeros to begin with: single floats if that is the precision, doubles otherwise."""
        dtype = torch.float32 if self.precision == "single" else torch.float64
        return torch.zeros(self.size, dtype=dtype, device=self.device)

    def vector(self, w: object) -> Tensor:
        """Return weights of any array library as a vector of this loss."""
        return torch.asarray(w, dtype=self.zeros().dtype, device=self.device, copy=True)

    def at(self, w: Tensor, warm: Evaluation | None = None) -> TensorPseudoEvaluation:
        check_vector(w, self.size, self.device)
        return TensorPseudoEvaluation(self, w)

    def subset(self, ids: Ints) -> TensorPseudoLikelihood:
        """The loss of some graphs only."""
        return TensorPseudoLikelihood(self.arrays.take(np.atleast_1d(ids)), self.device, self.precision)


class TensorPseudoEvaluation(LazyEvaluation):
    """The loss at w. Getting the value is the one wait for the device."""

    w: Tensor

    def __init__(self, loss: TensorPseudoLikelihood, w: Tensor) -> None:
        super().__init__(loss, w)
        self._dtype = loss.dtype

    @cached_property
    def _conditionals(self) -> Tensor:
        """[n, K] log p(y_i = k | the labels of the neighbours)."""
        scores = self._loss.scores.times(self.w.to(self._dtype))
        if self._loss.scores.absent is not None:
            scores = scores.masked_fill(self._loss.scores.absent, -torch.inf)
        return torch.log_softmax(scores, dim=1)

    @cached_property
    def _weights(self) -> Tensor:
        return self._loss.node_weights[:, None].to(self._dtype)

    def _evaluate(self) -> tuple[float, Tensor]:
        loss = self._loss
        with enough_memory(loss.device, "an evaluation", "use fewer graphs, precision='single', or the CPU"):
            log_p = self._conditionals
            places = loss.labels[:, None]
            lost = -(loss.node_weights * log_p.gather(1, places)[:, 0].double()).sum()
            residuals = log_p.exp().scatter_add_(1, places, log_p.new_full(places.shape, -1.0)) * self._weights
            gradient = loss.scores.transposed(residuals).to(self.w.dtype)
        return lost.item(), gradient

    def hessp(self, v: Tensor) -> Tensor:
        """∇²loss(w)·v."""
        check_vector(v, self._loss.size, self._loss.device)
        p, scores = self._conditionals.exp(), self._loss.scores
        change = scores.times(v.to(self._dtype))
        moved = p * (change - (p * change).sum(1, keepdim=True)) * self._weights
        found: Tensor = scores.transposed(moved).to(v.dtype)
        return found

    def hess_diag(self) -> Tensor:
        """The diagonal as if the edges of a node were independent; exact for node weights, and if no node has two."""
        p = self._conditionals.exp()
        found: Tensor = self._loss.scores.variances(p, self._weights).clamp_min_(0.0).to(self.w.dtype)
        return found
