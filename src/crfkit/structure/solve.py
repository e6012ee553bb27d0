"""The optimum of structure learning: at one strength of the edge penalty, and of given edges without their penalty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from crfkit._threads import count_threads, using_threads
from crfkit._types import Floats, Ints
from crfkit.errors import ParameterError, StopTraining
from crfkit.penalties import L1, L2, Blockwise, ByBlock, GroupL2, GroupLinf
from crfkit.protocols import BlockNorm, Penalty
from crfkit.result import Result, Status
from crfkit.solvers import AnyOf, GradientNorm, SuccessiveChanges
from crfkit.solvers.parts.loop import Callback
from crfkit.solvers.parts.proximal_newton import ProximalNewton
from crfkit.structure.losses.edges import EdgeLoss
from crfkit.structure.losses.pseudo import StructurePseudoLikelihood
from crfkit.structure.losses.standardised import StandardisedEdges, column_scales
from crfkit.structure.options import StructureOptions

GROUP_PENALTIES: dict[str, type[Penalty]] = {"inf": GroupLinf, "2": GroupL2, "1": L1}  # by the norm of a group
DUAL_NORMS = {"inf": BlockNorm.L1, "2": BlockNorm.L2, "1": BlockNorm.MAX}  # these measure the gradient


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights and the loss that they belong to, with its active edges."""

    loss: EdgeLoss
    w: Floats
    result: Result | None = field(default=None, repr=False)

    @property
    def support(self) -> Ints:
        """Return the edges with a weight that is not zero, ascending."""
        return self.loss.nonzero_ids(self.w)

    def reduced(self) -> Solution:
        """Return the solution without the edges that are zero."""
        loss, w = self.loss.keep(self.support, self.w)
        return Solution(loss, w, self.result)

    def grown(self, edges: Ints) -> Solution:
        """Return the solution with more edges, of weight zero."""
        loss, place = self.loss.activate(edges)
        w = np.zeros(loss.size)
        w[place] = self.w
        return Solution(loss, w, self.result)

    def started_from(self, near: Solution | None) -> Solution:
        """Return the solution with the weights of `near`, where that has any."""
        if near is None:
            return self
        w = self.w.copy()
        mine, others = self.loss.block_index, near.loss.block_index
        both = np.intersect1d(mine, others)  # edges, and −1, the nodes
        here, there = (np.flatnonzero(np.isin(index, both)) for index in (mine, others))
        w[here[np.argsort(mine[here], kind="stable")]] = near.w[there[np.argsort(others[there], kind="stable")]]
        return Solution(self.loss, w, self.result)

    def checked(self) -> Solution:
        """Return the solution; raise KeyboardInterrupt or StopTraining if its minimisation was ended early."""
        status = None if self.result is None else self.result.status
        if status is Status.INTERRUPTED:
            raise KeyboardInterrupt(str(status))
        if status is Status.STOPPED_BY_CALLBACK:
            raise StopTraining(str(status))
        return self


@dataclass(frozen=True)
class EdgeSolver:
    """Minimises the loss of a table plus penalties on nodes and edges."""

    options: StructureOptions = field(default_factory=StructureOptions)
    callbacks: tuple[Callback, ...] = ()  # of every minimisation at a strength

    # --- with the edge penalty

    def penalty(self, loss: EdgeLoss | StandardisedEdges, strength: float) -> Penalty:
        """Return the penalty of nodes and edges at a strength; all methods take the same one."""
        one_weight = loss.table.single and loss.table.widths[1] == 1  # per edge, where all norms are equal
        group = L1 if one_weight else GROUP_PENALTIES[self.options.group_norm]
        return ByBlock(group, strength, L2(self.options.node_strength))

    def method_for(self, loss: EdgeLoss) -> str:
        """Return the method for a loss; "auto" is Newton's where the Hessian is sparse."""
        method, suits = self.options.method, newton_suits(loss)
        if method == "newton" and not suits:
            raise ParameterError(
                "method='newton' is for the pseudo-likelihood of binary columns without inputs; use 'grafting-light'"
            )
        if method == "auto":
            return "newton" if suits else "grafting-light"
        return method

    def solve(self, start: Solution, strength: float, rough: bool = False) -> Solution:
        """Return the optimum over all candidates; raise KeyboardInterrupt or StopTraining if it was ended early."""
        return self.minimise(start, strength, rough).checked()

    def minimise(self, start: Solution, strength: float, rough: bool = False) -> Solution:
        """Return the optimum over all candidates, or the weights at which it was ended early.

        Callbacks see the strength as a number of the trace, and the weights of standardised columns if `standardize`.
        """
        if self.method_for(start.loss) in ("agpm", "full") and len(candidates := start.loss.candidate_ids):
            start = replace(start.grown(candidates), result=None)
        callbacks: Sequence[Callback] = (lambda _: {"strength": strength}, *self.callbacks) if self.callbacks else ()
        solver = self._solver(start.loss, strength, rough)
        if not self.options.standardize:
            result = solver.minimize(start.loss, self.penalty(start.loss, strength), start.w, callbacks)
            return Solution(result.loss or start.loss, result.w, result)
        loss = StandardisedEdges(start.loss, column_scales(start.loss.table))
        result = solver.minimize(loss, self.penalty(loss, strength), start.w * loss.factors, callbacks)
        found: Any = result.loss or loss
        w = result.w / found.factors
        return Solution(found.loss, w, replace(result, w=w, loss=None if result.loss is None else found.loss))

    def _solver(self, loss: EdgeLoss, strength: float, rough: bool) -> Any:
        options, tunables = self.options.solver, self.options.tunables
        method, given = self.method_for(loss), options.tolerance
        number = isinstance(given, (int, float))
        if method == "newton":
            tolerance = max(tunables.path_tolerance, given) if rough and isinstance(given, (int, float)) else given
            most = {} if options.max_iterations is None else {"max_iterations": options.max_iterations}
            return ProximalNewton(tolerance if number else 1e-5, **most)  # type: ignore[arg-type]
        if method.startswith("grafting"):
            # FISTA on tables of weights is slow at the end: its last steps decrease little and still move weights.
            fine = number and not rough and not loss.table.single
            if fine:
                options = replace(options, tolerance=tunables.table_tolerance_ratio * given)  # type: ignore[operator]
            return replace(options, solver=method).make_solver(select_unit=self.options.select_unit)
        if method == "full":
            return replace(options, solver="fista").make_solver()
        options = replace(options, solver="agpm")
        if not number:
            return options.make_solver()
        # AGPM is not monotone: ten steps without a decrease say nothing. It ends by its projected gradient.
        eps = 1000.0 * given * max(strength, 1.0)  # type: ignore[operator]
        return options.make_solver(stopping=GradientNorm(given), eps=eps)  # type: ignore[arg-type]

    def critical_strength(self, empty: Solution) -> float:
        """Return the smallest strength at which no edge is selected."""
        loss = empty.loss
        scales = column_scales(loss.table) if self.options.standardize else None
        scores = loss.candidates(loss.at(empty.w), self.dual_norm, 0.0, scales)[1]
        return float(scores[0]) if len(scores) else 0.0

    @property
    def dual_norm(self) -> str:
        """Return the norm of the gradient by an edge that the strength is compared with."""
        return DUAL_NORMS[self.options.group_norm]

    # --- without it

    def empty(self, loss: EdgeLoss) -> Solution:
        """Return the optimum without edges."""
        none = loss.with_active(())
        return self.refit(Solution(none, np.zeros(none.size)))

    def refit(self, start: Solution) -> Solution:
        """Return the optimum of the loss on these edges, with only a trace of L2 on them."""
        penalties = {"node": L2(self.options.node_strength), "edge": L2(self.options.tunables.edge_ridge)}
        solver = self._refit_solver(start.loss)
        result = solver.minimize(start.loss, Blockwise(penalties, start.loss.layout), start.w)
        return Solution(start.loss, result.w, result).checked()

    def ridge(self, loss: EdgeLoss) -> Floats:
        """Return the strength of L2 on each weight in a refit."""
        found = np.full(loss.size, self.options.tunables.edge_ridge)
        found[: loss.field.n_node_weights] = self.options.node_strength
        return found

    def _refit_solver(self, loss: EdgeLoss) -> Any:
        """Return Newton's method where the Hessian is known: it takes a few steps, where L-BFGS takes dozens."""
        options, ratio = self.options.solver, self.options.tunables.newton_tolerance_ratio
        given = options.tolerance
        if not isinstance(loss, StructurePseudoLikelihood) or not isinstance(given, (int, float)):
            given = ratio * given if isinstance(given, (int, float)) else given
            return replace(options, solver="lbfgs", tolerance=given).make_solver()
        stopping = AnyOf((SuccessiveChanges(ratio * given, 1), GradientNorm(given)))
        return replace(options, solver="newton").make_solver(direction=self._direction(loss), stopping=stopping)

    def _direction(self, loss: StructurePseudoLikelihood) -> str:
        """Return how Newton's method finds its direction."""
        tunables = self.options.tunables
        if loss.sparse:
            return "sparse"
        if loss.patterned:
            entries = sum(part.index.size**2 for part in loss.conditionals)
            if entries <= tunables.factored_hessian_entries:
                return "factored"
        return "dense" if loss.size <= tunables.dense_hessian_weights else "cg"


def newton_suits(loss: EdgeLoss) -> bool:
    """Return whether a loss is the pseudo-likelihood of binary columns without inputs, whose Hessian is sparse."""
    table = loss.table
    return bool(loss.name == StructurePseudoLikelihood.name and table.ising and not table.has_inputs)


# --- threads


@contextmanager
def structure_threads(n_threads: int | None) -> Iterator[None]:
    """Use these threads (None for all) inside this block, and one of BLAS, which would only wait on small matrices."""
    with using_threads(count_threads(n_threads)), _SINGLE_BLAS:
        yield


class _SingleThreadedBlas:
    """Limits BLAS, which is shared by all threads of the process, until the last user of the limit is done."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._limits = threadpool_limits(1, "blas")
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._limits.restore_original_limits()
                self._limits = None


_SINGLE_BLAS = _SingleThreadedBlas()
