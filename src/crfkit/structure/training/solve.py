"""The optimum of structure learning at one strength of the edge penalty."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from crfkit.errors import ParameterError
from crfkit.penalties import L1, L2, ByBlock, GroupL2, GroupLinf
from crfkit.protocols import BlockNorm, Penalty
from crfkit.solvers import GradientNorm
from crfkit.solvers.parts.loop import Callback
from crfkit.solvers.parts.proximal_newton import ProximalNewton
from crfkit.structure.losses.edges import EdgeLoss
from crfkit.structure.losses.standardised import StandardisedEdges, column_scales
from crfkit.structure.training.method import default_method, newton_suits
from crfkit.structure.training.refit import Refits, Solution, checked
from crfkit.training.options import SolverOptions

METHODS = ("auto", "newton", "agpm", "grafting-light", "grafting", "full")
KINDS: dict[str, Any] = {"inf": GroupLinf, "2": GroupL2, "1": L1}  # by the norm of a group
# norm of a group → its dual, which measures the gradient
NORMS = {"inf": BlockNorm.L1, "2": BlockNorm.L2, "1": BlockNorm.MAX}
TABLES = 1e-2  # share of the tolerance that tables of weights need
ROUGH = 1e-3  # tolerance along a path whose solutions are refitted: only their supports count


@dataclass(frozen=True)
class EdgeSolver:
    """Minimises the loss of a table plus penalties on nodes and edges; the options are those of StructureLearner."""

    method: str = "auto"
    group_norm: str = "inf"
    node_strength: float = 1.0
    select_unit: int = 10
    options: SolverOptions = field(default_factory=SolverOptions)
    standardize: bool = True
    gamma: float = 0.35
    callbacks: tuple[Callback, ...] = ()  # of every minimisation at a strength

    @property
    def refits(self) -> Refits:
        return Refits(self.node_strength, self.gamma, self.options)

    def penalty(self, loss: Any, strength: float) -> Penalty:
        """Return the penalty of nodes and edges at a strength; all methods take the same one."""
        single = loss.table.single and loss.table.widths[1] == 1  # groups of one weight
        return ByBlock(L1 if single else KINDS[self.group_norm], strength, L2(self.node_strength))

    def method_for(self, loss: Any) -> str:
        """Return the method for a loss; "auto" is decided in :func:`default_method`."""
        if self.method == "newton" and not newton_suits(loss):
            raise ParameterError(
                "method='newton' is for the pseudo-likelihood of binary columns without inputs; use 'grafting-light'"
            )
        return self.method if self.method != "auto" else default_method(loss)

    def solve(self, start: Solution, strength: float, rough: bool = False) -> Solution:
        """Return the optimum over all candidates; raise KeyboardInterrupt or StopTraining if it was ended early."""
        return checked(self.minimise(start, strength, rough))

    def minimise(self, start: Solution, strength: float, rough: bool = False) -> Solution:
        """Return the optimum over all candidates, or the weights at which it was ended early.

        Callbacks see the strength as a number of the trace, and the weights of standardised columns if `standardize`.
        """
        if self.method_for(start.loss) in ("agpm", "full"):
            start = _all_on(start)
        callbacks: Any = (lambda _: {"strength": strength}, *self.callbacks) if self.callbacks else ()
        solver = self._solver(start.loss, strength, rough)
        if not self.standardize:
            result = solver.minimize(start.loss, self.penalty(start.loss, strength), start.w, callbacks)
            return Solution(result.loss or start.loss, result.w, result)
        loss = StandardisedEdges(start.loss, column_scales(start.loss.table))
        result = solver.minimize(loss, self.penalty(loss, strength), start.w * loss.factors, callbacks)
        found: Any = result.loss or loss
        w = result.w / found.factors
        return Solution(found.loss, w, replace(result, w=w, loss=None if result.loss is None else found.loss))

    def _solver(self, loss: EdgeLoss, strength: float, rough: bool) -> Any:
        method, given = self.method_for(loss), self.options.tolerance
        number = isinstance(given, (int, float))
        if method == "newton":
            tolerance = max(ROUGH, given) if rough and isinstance(given, (int, float)) else given
            most = {} if self.options.max_iterations is None else {"max_iterations": self.options.max_iterations}
            return ProximalNewton(tolerance if number else 1e-5, **most)  # type: ignore[arg-type]
        if method.startswith("grafting"):
            # FISTA on tables of weights is slow at the end: its last steps decrease little and still move weights.
            fine = number and not rough and not loss.table.single
            options = replace(self.options, tolerance=TABLES * given) if fine else self.options  # type: ignore[operator]
            return replace(options, solver=method).make_solver(select_unit=self.select_unit)
        if method == "full":
            return replace(self.options, solver="fista").make_solver()
        options = replace(self.options, solver="agpm")
        if not number:
            return options.make_solver()
        # AGPM is not monotone: ten steps without a decrease say nothing. It ends by its projected gradient.
        eps = 1000.0 * given * max(strength, 1.0)  # type: ignore[operator]
        return options.make_solver(stopping=GradientNorm(given), eps=eps)  # type: ignore[arg-type]

    def empty(self, loss: EdgeLoss) -> Solution:
        """Return the optimum without edges."""
        none = loss.with_active(())
        return self.refits.smooth(Solution(none, np.zeros(none.size)))

    def refit(self, solution: Solution, prune: bool = True, near: Solution | None = None) -> Solution:
        """Return the edges of a solution without the edge penalty; see :class:`Refits`."""
        return self.refits.refit(solution, prune, near)

    def critical_strength(self, empty: Solution) -> float:
        """Return the smallest strength at which no edge is selected."""
        loss = empty.loss
        scales = column_scales(loss.table) if self.standardize else None
        scores = loss.candidates(loss.at(empty.w), NORMS[self.group_norm], 0.0, scales)[1]
        return float(scores[0]) if len(scores) else 0.0


def _all_on(start: Solution) -> Solution:
    """Return the solution with all candidates switched on, at weight zero."""
    missing = start.loss.candidate_ids
    if not len(missing):
        return start
    larger, place = start.loss.activate(missing)
    w = np.zeros(larger.size)
    w[place] = start.w
    return Solution(larger, w)
