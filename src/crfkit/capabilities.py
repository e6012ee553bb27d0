"""Names of what losses and penalties can do, by which solvers say what they need. Each is also the text of messages."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Name(str, Enum):
    """A name that is equal to its text and prints as it (:class:`enum.StrEnum` of later Pythons)."""

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, format_spec: str) -> str:
        return format(str(self.value), format_spec)


class Capability(Name):
    """Capabilities of losses; a solver's `needs` are some of these.

    >>> from crfkit.losses import ChainLikelihood
    >>> Capability.HESSP in ChainLikelihood.capabilities, "hessp" in ChainLikelihood.capabilities
    (True, True)
    """

    SMOOTH = "smooth"  # it has a value and a continuous gradient
    # In place of SMOOTH: an estimate of a gradient that differs from evaluation to evaluation, and no value (NaN), so
    # that nothing may compare values.
    GRADIENT = "gradient"
    HESSP = "hessp"  # evaluations have hessp(v)
    HESS_DIAG = "hess_diag"  # evaluations have hess_diag()
    HESS_SAMPLE = "hess_sample"  # evaluations have hess_sample(sequences, seed): sparse A with E[AᵀA] = the Hessian
    HESSIAN = "hessian"  # evaluations have hessian(): the whole matrix [n, n], in less time than n products
    SUBSET = "subset"  # subset(ids): the loss of some sequences or graphs only, for mini-batches
    # online(): updates sequence by sequence (crfkit.chain.losses.online), with epoch_cost() and n_terms
    ONLINE = "online"
    # Updates that look only at the best labelling suit it; they are wrong for a loss with a cost.
    MISTAKES = "mistakes"
    EXPECTATIONS = "expectations"  # expectations(): what improved iterative scaling needs
    LIPSCHITZ = "lipschitz"  # lipschitz(): a bound of the Hessian's eigenvalues at every w
    WARM = "warm"  # an evaluation is quicker when it starts from the last one
    # It has a `tolerance` that solvers lower as they get near the optimum, down to `finest`; the loss at w is exact to
    # within that tolerance only.
    PRECISION = "precision"
    CANDIDATES = "candidates"  # it can grow: crfkit.protocols.GrowingLoss


class Kind(Name):
    """Kinds of parts of penalties; a solver's `handles_smooth` and `handles_nonsmooth` are some of these."""

    # smooth parts
    L2 = "l2"  # strength/2·‖w‖² of all weights
    HUBER = "huber"
    PARTS = "blocks"  # smooth parts of some weights each
    # non-smooth parts
    L1 = "l1"  # strength·‖w‖₁ of all weights
    ORTHANTS = "orthants"  # an L1 norm of some weights, or with several strengths: it is smooth within each orthant
    GROUP = "group"  # a sum of norms of groups of weights
    PROX = "prox"  # prox(w, step) is cheap
    EPIGRAPH = "epigraph"  # crfkit.protocols.EpigraphPenalty
    BY_BLOCK = "by block"  # it has a `selection` and grows with the loss


class BlockNorm(Name):
    """The norm of a block's gradient that is compared with a strength: the dual of the penalty's norm of a block."""

    MAX = "max"  # of L1
    L1 = "l1"  # of L∞
    L2 = "l2"  # of L2


@dataclass(frozen=True)
class Selection:
    """The rule by which a penalty keeps a block of weights at zero: the norm of its gradient is at most `strength`."""

    norm: BlockNorm
    strength: float
