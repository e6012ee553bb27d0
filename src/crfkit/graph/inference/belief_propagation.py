"""Loopy belief propagation: sum-product messages, the Bethe approximation of log Z; exact on forests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crfkit import _core
from crfkit._checks import is_whole
from crfkit._threads import count_threads
from crfkit._types import Floats
from crfkit.errors import ParameterError
from crfkit.graph.fields.basis import native_basis
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.inference.marginals import InferenceStatus, Marginals
from crfkit.graph.inference.tree import check_threads
from crfkit.names import check_name

SCHEDULES = ("sweep", "flooding", "residual")


@dataclass(frozen=True)
class BeliefPropagation:
    """Loopy sum-product.

    schedule: "sweep" sends from the nodes of one colour after the other, always from the newest messages; "flooding"
    sends all from those of the last sweep; "residual" sends the message that changes most next. damping: share of
    the old message that is kept; None is 0, and one half for the second half of the iterations if the first did
    not settle. tolerance: on the largest change of a log message in a sweep, as it would be
    without damping.

    >>> from crfkit.graph.graph import Graph
    >>> field = Potentials.from_tables(Graph.grid((2, 2)), [[0, 1]] + 3 * [[0, 0]], [[0.5, 0], [0, 0.5]])
    >>> BeliefPropagation().run(field).nodes[3].round(3).tolist()
    [0.472, 0.528]
    """

    damping: float | None = None
    schedule: str = "sweep"
    max_iterations: int = 1000
    tolerance: float = 1e-10
    n_threads: int | None = None
    kernels: str = "auto"

    name = "bp"
    bound = "estimate"

    def __post_init__(self) -> None:
        check_name("schedule", self.schedule, SCHEDULES)
        check_iteration(self, adaptive=True)

    def run(self, potentials: Potentials, warm: Marginals | None = None) -> Marginals:
        return pass_messages(self, potentials, None, warm)


def pass_messages(engine: Any, potentials: Potentials, rho: Floats | None, warm: Marginals | None) -> Marginals:
    """Run sum-product with edges weighted by rho (None: all 1), in the fastest form that suits the potentials."""
    threads = count_threads(engine.n_threads)
    graph, arrays = potentials.graph.native, native_arrays(potentials)
    messages: Any = None
    if engine.schedule != "residual":
        blocks = potentials.graph.blocks
        if rho is None:
            messages = _core.SumProduct(graph, blocks, *arrays, engine.kernels, threads)
        if messages is None or not messages.fits:
            messages = _core.Reweighted(graph, blocks, *arrays, rho, engine.kernels, threads)
    schedule: bool | str = engine.schedule == "flooding"
    if messages is None or not messages.fits:
        messages, schedule = _core.LogMessages(graph, *arrays, rho, False), engine.schedule
    if warm is not None and type(warm.state) is type(messages):
        messages.start_from(warm.state)
    return iterate(engine, messages, schedule, threads)


def native_arrays(potentials: Potentials) -> tuple[Floats, Floats, Floats]:
    """Return (unary, coefficients, basis) as the core reads them."""
    unary = np.ascontiguousarray(potentials.unary, dtype=np.float64)
    return unary, np.ascontiguousarray(potentials.coefficients, dtype=np.float64), native_basis(potentials.basis)


def check_iteration(engine: Any, adaptive: bool = False) -> None:
    """Raises unless max_iterations, tolerance, damping and n_threads of an engine make sense; adaptive: damping may be
    None."""
    most = np.iinfo(np.int32).max
    if not is_whole(engine.max_iterations) or not 1 <= engine.max_iterations <= most:
        raise ParameterError(f"max_iterations must be an integer from 1 to {most}, not {engine.max_iterations!r}")
    if not _is_number(engine.tolerance) or not engine.tolerance >= 0:
        raise ParameterError(f"the tolerance must be a number >= 0, not {engine.tolerance!r}")
    if engine.damping is None and adaptive:
        pass
    elif not _is_number(engine.damping) or not 0 <= engine.damping < 1:
        raise ParameterError(f"damping must be a number from 0 to below 1, not {engine.damping!r}")
    check_threads(engine.n_threads)
    names = ("auto", *_core.available_kernels())
    if getattr(engine, "kernels", "auto") not in names:
        raise ParameterError(f"this machine runs the kernels {', '.join(names)}, not {engine.kernels!r}")


def _is_number(given: object) -> bool:
    return isinstance(given, (int, float, np.integer, np.floating))


def iteration_status(settled: bool, log_z: Floats) -> InferenceStatus:
    """Return the status. If potentials have overflowed, the change is NaN, which is not convergence."""
    finite = bool(np.isfinite(log_z).all())
    return InferenceStatus.CONVERGED if settled and finite else InferenceStatus.NOT_CONVERGED


def iterate(engine: Any, messages: Any, schedule: bool | str, threads: int) -> Marginals:
    """Run messages to their fixed point and return the marginals."""
    parts = [(engine.max_iterations, engine.damping)]
    if engine.damping is None:
        half = (engine.max_iterations + 1) // 2
        parts = [(half, 0.0), (engine.max_iterations - half, 0.5)]
    iterations, residual, settled = 0, np.inf, False
    for limit, damping in parts:
        if not settled and limit:
            done, residual, settled = messages.run(limit, engine.tolerance, damping, schedule, threads)
            iterations += done
    log_z = messages.log_z(threads)
    return Marginals(
        log_z,
        messages.nodes(threads),
        lambda: messages.edges(threads),
        iteration_status(settled, log_z),
        iterations,
        residual,
        messages,
        method=engine.name,
    )
