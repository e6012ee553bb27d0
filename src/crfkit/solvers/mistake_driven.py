"""The averaged perceptron and related learners; the updates are in :mod:`crfkit.chain.losses.online`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from crfkit._checks import check_positive
from crfkit._types import Ints
from crfkit.errors import ParameterError
from crfkit.solvers.parts.online import MistakeDriven


@dataclass(frozen=True)
class AveragedPerceptron(MistakeDriven):
    """Add the features of the right labelling, subtract the best one's, and return the average (Collins 2002)."""

    name: ClassVar[str] = "averaged-perceptron"

    def update(self, online: Any, order: Ints) -> None:
        online.perceptron(order)


@dataclass(frozen=True)
class PassiveAggressive(MistakeDriven):
    """Crammer et al. (2006): the smallest change that corrects the mistake by a margin.

    Parameters
    ----------
    kind : 0 (PA: always), 1 (PA-I: changes are bounded by c) or 2 (PA-II: changes are damped by 1/(2c)).
    c : aggressiveness.
    """

    kind: int = 1
    c: float = 1.0

    name: ClassVar[str] = "passive-aggressive"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(c=self.c)
        if self.kind not in (0, 1, 2):
            raise ParameterError(f"kind must be 0 (PA), 1 (PA-I) or 2 (PA-II), not {self.kind!r}")

    def update(self, online: Any, order: Ints) -> None:
        online.passive_aggressive(order, self.kind, self.c)


@dataclass(frozen=True)
class AROW(MistakeDriven):
    """Crammer, Kulesza & Dredze (2009): weights with a variance each, which falls as they are used.

    Parameters
    ----------
    variance : variance of every weight at the start.
    gamma : a larger one makes smaller updates.
    """

    averaged: bool = False
    variance: float = 1.0
    gamma: float = 1.0

    name: ClassVar[str] = "arow"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(variance=self.variance, gamma=self.gamma)

    def update(self, online: Any, order: Ints) -> None:
        online.arow(order, self.variance, self.gamma)


@dataclass(frozen=True)
class MIRA(MistakeDriven):
    """Margin-infused relaxation (Crammer & Singer 2003), one best labelling: as passive-aggressive with the number of
    wrong positions as the margin, and a bound on what a sequence contributes over all epochs.

    Parameters
    ----------
    c : bound of each change.
    """

    c: float = 1.0

    name: ClassVar[str] = "mira"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(c=self.c)

    def update(self, online: Any, order: Ints) -> None:
        online.mira(order, self.c)
