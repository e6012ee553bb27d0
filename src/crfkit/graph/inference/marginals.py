"""The results of inference, and the contract of an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from crfkit._types import Floats, Ids
from crfkit.graph.fields.basis import projected
from crfkit.graph.fields.potentials import Potentials

NEGLIGIBLE = 1e-3  # a change in the last sweep that leaves probabilities right to two or three digits
MAX_TRUSTED_CHANGE = 0.1  # a change from which on the numbers mean little
_DAMPING = {
    "bp": ", add damping (make_engine('bp', damping=0.5))",
    "trw": "; where messages swing rather than settle, add damping (make_engine('trw', damping=0.5))",
}
_INSTEAD = dict.fromkeys(("bp", "mean-field"), ", or use 'trw', which has one fixed point")


class InferenceStatus(Enum):
    """The trustworthiness of an answer; the value is the cause and the remedy."""

    EXACT = "exact"
    CONVERGED = "converged: an approximation at its fixed point"
    NOT_CONVERGED = (
        "not converged: the limit of sweeps was reached first, and these are the numbers of the last sweep; raise the "
        "limit or add damping (Marginals.explain has the details)"
    )
    SAMPLED = "estimated from samples; more sweeps make it more accurate"

    @property
    def settled(self) -> bool:
        return self is not InferenceStatus.NOT_CONVERGED

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, eq=False)
class Marginals:
    """log Z (or its approximation) per graph, and marginals of nodes and edges.

    ``log_z`` is what the marginals differentiate: ∂ Σ log_z / ∂ unary = nodes, ∂ Σ log_z / ∂ tables = edges.

    >>> from crfkit.graph.graph import Graph
    >>> from crfkit.graph.inference.engines import make_engine
    >>> found = make_engine("tree").run(Potentials.from_tables(Graph.path(3), np.zeros((3, 2)), np.eye(2)))
    >>> found.nodes.tolist(), found.edges.shape, str(found.status)
    ([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]], (2, 2, 2), 'exact')
    """

    log_z: Floats  # [G]
    nodes: Floats  # [n, K] p(y_i = k)
    make_edges: Callable[[], Floats]  # → [E, K, K] p(y_i = k, y_j = l); computed when first needed
    status: InferenceStatus
    iterations: int = 0
    residual: float = 0.0
    state: Any = field(default=None, repr=False)  # where a warm start continues
    errors: Floats | None = None  # [G] standard errors of log_z, of estimates by sampling
    method: str = ""  # the name of the engine, where it iterates
    # Where all graphs are copies of one: weights [G] → [E, K, K], sums over graphs of the marginals of its edges.
    edge_sums: Callable[[Floats], Floats] | None = field(default=None, repr=False)

    @cached_property
    def edges(self) -> Floats:
        return self.make_edges()

    def __reduce__(self) -> tuple[object, ...]:
        """Copy and pickle the edges but not the state, which belongs to the engine and the field."""
        edges = partial(np.asarray, self.edges)
        return Marginals, (
            self.log_z, self.nodes, edges, self.status, self.iterations, self.residual, None, self.errors, self.method,
        )  # fmt: skip

    @property
    def matters(self) -> bool:
        """Return whether the last sweep changed messages or probabilities by more than :data:`NEGLIGIBLE` or to NaN."""
        return not self.status.settled and not (self.method and self.residual <= NEGLIGIBLE)

    def explain(self, option: str = "max_iterations", damping: bool = True) -> str:
        """Say what stopped, how large the last change was, what that means for the numbers, and what to do.

        `option` is the caller's name for the limit of sweeps; `damping`: whether the caller can add damping.
        """
        if not self.method:
            return f"inference has {self.status}"
        name = self.method
        if self.status.settled:
            return f"{name} is {self.status}"
        if not np.isfinite(self.log_z).all() or not np.isfinite(self.residual):
            return (
                f"inference has not converged: {name} has no finite result after {self.iterations} sweeps, because the "
                "scores of labels are too large. Scale the features, or use a stronger penalty"
            )
        limit = f"{self.iterations} sweep{'s' if self.iterations != 1 else ''}"
        what = "a probability" if self.method == "mean-field" else "a log message"
        said = (
            f"inference has not converged: {name} stopped at its limit of {limit}, and {what} still changed by "
            f"{self.residual:.2g} in the last one, so probabilities "
            + ("may be off by about as much" if self.residual < MAX_TRUSTED_CHANGE else "cannot be trusted")
            + f". Raise {option}"
        )
        return said + (_DAMPING.get(self.method, "") if damping else "") + _INSTEAD.get(self.method, "")

    def moments(self, basis: Floats) -> Floats:
        """Return an array [E, B]: the expectation of each table of a basis [B, K, K] on each edge."""
        return projected(self.edges, basis)


class Engine(Protocol):
    """An inference method with its options."""

    @property
    def name(self) -> str: ...
    @property
    def bound(self) -> str:
        """Return the kind of log Z: "exact", "upper" bound, "lower" bound or "estimate"."""
        ...

    def run(self, potentials: Potentials, warm: Marginals | None = None) -> Marginals:
        """Return the result of inference in all graphs; `warm` is an earlier result for the same graph."""
        ...


@runtime_checkable
class IterativeEngine(Engine, Protocol):
    """An engine that repeats sweeps until none changes the result by more than `tolerance`, a field of a dataclass."""

    @property
    def tolerance(self) -> float: ...


@runtime_checkable
class PortableEngine(Engine, Protocol):
    """An engine that needs more than the core, such as a device. Model files record one that does not."""

    def portable(self) -> Engine:
        """Return the engine of the core with the same fixed points."""
        ...


@runtime_checkable
class Sampler(Protocol):
    """An engine that can draw labellings."""

    def sample(self, potentials: Potentials, n_samples: int, seed: int = 0) -> Ids:
        """Return labellings [n_samples, n] drawn from the field."""
        ...
