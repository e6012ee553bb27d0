"""The contracts of the three axes: loss, penalty, solver. A file each, with every hook and its default.

``J(w) = loss(w) + penalty(w)``. Losses are sums over sequences, not means. ``L2(s) = s/2·‖w‖²``.
Vectors are one-dimensional arrays of one library (NumPy, or any that follows the array API); solvers use
only their operators and the functions of :mod:`crfkit.arrays`.

Members subclass these bases. What a member must define is under ``if TYPE_CHECKING``, as a read-only property: when
running there is nothing in its way, so it may be a field of a dataclass, a class attribute, an attribute that
``__init__`` sets, or a property. Methods that raise NotImplementedError must be defined as well; all others are
optional, and what they do here is what a member without them means.
"""

from crfkit.capabilities import BlockNorm, Capability, Kind, Selection
from crfkit.protocols.loss import Epochs, Evaluation, GrowingLoss, Loss, LossOptions, Online, Vector
from crfkit.protocols.penalty import EpigraphPenalty, NonsmoothPenalty, Penalty, Place, SmoothPenalty
from crfkit.protocols.solver import Iterate, Saved, Solver, State

__all__ = [
    "BlockNorm",
    "Capability",
    "EpigraphPenalty",
    "Epochs",
    "Evaluation",
    "GrowingLoss",
    "Iterate",
    "Kind",
    "Loss",
    "LossOptions",
    "NonsmoothPenalty",
    "Online",
    "Penalty",
    "Place",
    "Saved",
    "Selection",
    "SmoothPenalty",
    "Solver",
    "State",
    "Vector",
]
