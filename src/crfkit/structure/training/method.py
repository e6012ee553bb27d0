"""Which method of structure learning "auto" stands for."""

from __future__ import annotations

from typing import Any

from crfkit.structure.losses.pseudo import StructurePseudoLikelihood


def default_method(loss: Any) -> str:
    """Return the method of structure learning that "auto" stands for: Newton's where the Hessian is sparse."""
    return "newton" if newton_suits(loss) else "grafting-light"


def newton_suits(loss: Any) -> bool:
    """Return whether a loss is the pseudo-likelihood of binary columns without inputs, whose Hessian is sparse."""
    table = loss.table
    return bool(loss.name == StructurePseudoLikelihood.name and table.ising and not table.has_inputs)
