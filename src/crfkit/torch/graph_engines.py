"""Inference engines of graphs that run on a device, in the form in which crfkit takes engines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from crfkit.errors import ParameterError
from crfkit.torch.devices import enough_memory, find_device
from crfkit.torch.fixed_points import check_options, repeat
from crfkit.torch.graph_messages import GraphScores, NaiveMeanField, SumProduct

if TYPE_CHECKING:
    from crfkit.graph.fields.potentials import Potentials
    from crfkit.graph.inference.marginals import Engine, Marginals

TYPES = {"double": torch.float64, "single": torch.float32}


@dataclass(frozen=True)
class TensorEngine:
    """Sweeps of updates of a whole field at once.

    device: "cuda", "cuda:1" or "torch:cpu". damping: share of the old messages or marginals that a sweep keeps; None
    is 0, and one half for the second half of the sweeps if the first did not settle. tolerance: on the largest change
    of a log message (mean field: of a probability) in a sweep, as it would be without damping. precision: "double" or
    "single"; single floats need a tolerance of about 1e-5. log Z is summed in double.
    """

    device: str = "cuda"
    damping: float | None = None
    max_iterations: int = 1000
    tolerance: float = 1e-10
    precision: str = "double"

    name: ClassVar[str]
    bound: ClassVar[str]

    def __post_init__(self) -> None:
        check_options(self.damping, self.max_iterations, self.tolerance)
        if self.precision not in TYPES:
            raise ParameterError(f"precision must be 'double' or 'single', not {self.precision!r}")
        find_device(self.device)

    def _messages(self, scores: GraphScores, state: Tensor | None) -> Any:
        raise NotImplementedError

    def portable(self) -> Engine:
        """Return the engine of the core with the same fixed points, which model files record."""
        raise NotImplementedError

    @torch.no_grad()
    def run(self, potentials: Potentials, warm: Marginals | None = None) -> Marginals:
        """Return marginals and log Z; they are NumPy arrays."""
        from crfkit.graph.inference.belief_propagation import iteration_status
        from crfkit.graph.inference.marginals import Marginals

        device, dtype = find_device(self.device), TYPES[self.precision]
        with enough_memory(device, "inference", "use precision='single', fewer graphs at once, or the CPU"):
            scores = GraphScores.of(potentials, device, dtype)
            messages = self._messages(scores, _state(warm, scores))
            ended = repeat(messages.sweep, self.damping, self.max_iterations, self.tolerance)
            log_z = _host(messages.log_z())
            return Marginals(
                log_z,
                _host(messages.nodes()),
                lambda: _host(messages.edges()),
                iteration_status(ended.settled, log_z),
                ended.iterations,
                ended.residual,
                messages,
                method=self.name,
            )


@dataclass(frozen=True)
class TensorBeliefPropagation(TensorEngine):
    """Loopy sum-product with the fixed points of :class:`~crfkit.graph.inference.belief_propagation.BeliefPropagation`.

    >>> from crfkit import Graph
    >>> from crfkit.graph.fields.potentials import Potentials
    >>> field = Potentials.from_tables(Graph.grid((2, 2)), [[0, 1]] + 3 * [[0, 0]], [[0.5, 0], [0, 0.5]])
    >>> TensorBeliefPropagation("torch:cpu").run(field).nodes[3].round(3).tolist()
    [0.472, 0.528]
    """

    name = "bp"
    bound = "estimate"

    def portable(self) -> Engine:
        from crfkit.graph.inference.belief_propagation import BeliefPropagation

        return BeliefPropagation(self.damping, max_iterations=self.max_iterations, tolerance=self.tolerance)

    def _messages(self, scores: GraphScores, state: Any) -> SumProduct:
        return SumProduct(scores, state.messages if isinstance(state, SumProduct) else None)


@dataclass(frozen=True)
class TensorMeanField(TensorEngine):
    """Mean field with the fixed points of :class:`~crfkit.graph.inference.mean_field.MeanField`: a lower bound."""

    name = "mean-field"
    bound = "lower"

    def portable(self) -> Engine:
        from crfkit.graph.inference.mean_field import MeanField

        return MeanField(self.damping or 0.0, self.max_iterations, self.tolerance)

    def _messages(self, scores: GraphScores, state: Any) -> NaiveMeanField:
        return NaiveMeanField(scores)


def _state(warm: Marginals | None, scores: GraphScores) -> Any:
    """Return the messages of an earlier run, if they fit."""
    state = None if warm is None else warm.state
    if not isinstance(state, SumProduct):
        return None
    shape = (2 * len(scores.edges), scores.unary.shape[1])
    given = state.messages
    fits = given.shape == shape and given.dtype == scores.unary.dtype and given.device == scores.unary.device
    return state if fits and bool(given.isfinite().all()) else None


def _host(x: Tensor) -> Any:
    return x.cpu().numpy().astype(np.float64)
