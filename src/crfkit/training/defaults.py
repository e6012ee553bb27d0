"""The solver and the penalty that "auto" and None mean, for every shape.

Every choice depends on the problem alone, so a run can be repeated, and is recorded in the model under
``training["auto"]``, where `crfkit inspect` shows it. :mod:`crfkit.graph.inference.defaults` chooses engines and
decoders, :meth:`crfkit.structure.solve.EdgeSolver.method_for` the method of structure learning.
"""

from __future__ import annotations

from collections.abc import Mapping

from crfkit.protocols import Capability, GrowingLoss, Loss, Penalty, Solver
from crfkit.result import Result


def default_solver(loss: Loss, penalty: Penalty) -> str:
    """Return the name of the solver that "auto" chooses.

    "adam" for losses that have a gradient and no value. Where the penalty is smooth, "lbfgs", or "owlqn" if a convex
    loss of few weights has neither an online form nor its Hessian's diagonal. Where it is not, "grafting-light" if the
    loss has candidates; otherwise "owlqn" for L1, also with several strengths if the loss has no online form, and
    "fista" for other penalties. The solver "auto" also begins with stochastic epochs where the loss has an online form
    and they save time (:class:`crfkit.solvers.Auto`).

    >>> from crfkit.penalties import L1, L2
    >>> class Smooth(Loss):
    ...     capabilities, layout, size = frozenset({Capability.SMOOTH, Capability.HESS_DIAG}), {}, 3
    >>> default_solver(Smooth(), L2(1.0)), default_solver(Smooth(), L1(1.0))
    ('lbfgs', 'owlqn')
    """
    from crfkit.solvers.auto import finishing_solver

    if Capability.SMOOTH not in loss.capabilities:
        return "adam"
    rest = penalty.bind(loss).split()[1]
    if rest is not None and isinstance(loss, GrowingLoss) and loss.n_candidates:
        return "grafting-light"
    return finishing_solver(loss, rest)


def default_penalty(solver: Solver) -> Penalty:
    """Return what `penalty=None` means for a solver: L2(1), but L1(1) for solvers that select attributes or edges
    (the Grafting family, which needs an L1 part), and no penalty for solvers that take none (those driven by mistakes).

    >>> from crfkit.solvers import make_solver
    >>> [default_penalty(make_solver(name)).name for name in ("auto", "grafting", "arow")]
    ['L2(1)', 'L1(1)', 'no penalty']
    """
    from crfkit.penalties import L1, L2, NoPenalty

    if Capability.CANDIDATES in solver.needs:
        return L1(1.0)
    takes = solver.handles_smooth
    return NoPenalty() if takes is not None and not takes else L2(1.0)


def chosen_solver(solver: Solver, loss: Loss, penalty: Penalty, result: Result) -> Mapping[str, str]:
    """Return the entry of a model's record for the solver that "auto" chose; nothing for other solvers."""
    if solver.name != "auto":
        return {}
    begun = "stochastic epochs, then " if result.state.get("warmed") else ""
    return {"solver": begun + default_solver(loss, penalty)}
