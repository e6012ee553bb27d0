"""Parts of the solvers that update sequence by sequence. An iteration is an epoch, one pass over all sequences."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from crfkit._checks import check_online
from crfkit.arrays import norm
from crfkit.protocols import Capability, Kind, Vector
from crfkit.result import Status
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective
from crfkit.solvers.parts.saved import saved_count, saved_number, saved_vector
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule


class Online(Protocol):
    """`loss.online()`; crfkit.chain.losses.online.OnlineChain is one."""

    n_sequences: int

    def start(self, w: Vector, variances: Vector = None) -> None: ...
    def weights(self) -> Vector: ...
    def average(self) -> Vector: ...
    def save(self) -> Mapping[str, Any]: ...
    def restore(self, saved: Mapping[str, Any]) -> None: ...


def opened(objective: Objective, w0: Vector, saved: Mapping[str, Any]) -> Any:
    """Return the loss's online form at w0, or where `saved` was left."""
    online = objective.loss.online()
    if "theta" in saved:
        for name in ("w", "variances_by_weight"):  # for those who continue with other attributes
            if name in saved:
                saved_vector(saved, name, w0)
        online.restore(saved)
    else:
        online.start(w0, saved_vector(saved, "variances", w0, low=0.0) if saved.get("variances") is not None else None)
    return online


def shuffled(seed: int, epoch: int, n: int) -> Any:
    """Return the order of an epoch; it depends on nothing but its arguments."""
    return np.random.default_rng([seed, epoch]).permutation(n)


@dataclass(frozen=True)
class Mistakes:
    """The point of a mistake-driven learner: the weights it would return, and how often it was wrong on the way."""

    w: Vector
    value: float  # positions that the last epoch labelled wrongly, each before its update
    optimality: float  # sequences, likewise, as a share of all

    @property
    def finite(self) -> bool:
        return math.isfinite(norm(self.w))

    def saved(self) -> Mapping[str, Any]:
        return {"mistakes": self.value, "wrong_sequences": self.optimality}


@dataclass(frozen=True)
class OnlineState:
    point: Any
    online: Any
    epoch: int
    kept: Mapping[str, Any]  # of the online form at the end of the epoch: an epoch that is broken off changes it
    more: Mapping[str, Any] = field(default_factory=dict)

    def saved(self) -> Mapping[str, Any]:
        return {"epoch": self.epoch, **self.more, **self.kept}


@dataclass(frozen=True)
class MistakeDriven(IterativeSolver, ABC):
    """Base of the learners that look at the best labelling only and change the weights where it is wrong.

    They minimise no objective: the trace's value is the number of positions labelled wrongly during the epoch.
    """

    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 100
    seed: int = 0
    averaged: bool = True

    name: ClassVar[str]
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.ONLINE, Capability.MISTAKES})
    handles_smooth: ClassVar[frozenset[Kind]] = frozenset()
    own_objective: ClassVar[bool] = True
    numpy_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_online(self.max_iterations, self.seed)

    def objective_name(self, objective: Objective) -> str:
        return f"mistakes of {self.name}"

    def init(self, objective: Objective, w0: Vector, saved: Mapping[str, Any]) -> OnlineState:
        online = opened(objective, w0, saved)
        if "mistakes" in saved and "theta" in saved:  # of the last epoch, not of its last weights
            mistakes = saved_number(saved, "mistakes", low=0.0)
            point = Mistakes(w0, mistakes, saved_number(saved, "wrong_sequences", low=0.0, high=1.0))
        else:
            sequences, positions = online.measure()
            point = Mistakes(w0, float(positions), sequences / max(online.n_sequences, 1))
        return OnlineState(point, online, saved_count(saved, "epoch", 0), online.save(), point.saved())

    def step(self, objective: Objective, state: OnlineState) -> OnlineState | Status:
        if state.point.value == 0.0:
            return Status.CONVERGED  # an epoch without a mistake changes nothing
        online = state.online
        self.update(online, shuffled(self.seed, state.epoch, online.n_sequences))
        sequences, positions = online.mistakes
        w = online.average() if self.averaged else online.weights()
        point = Mistakes(w, float(positions), sequences / max(online.n_sequences, 1))
        return OnlineState(point, online, state.epoch + 1, online.save(), point.saved())

    @abstractmethod
    def update(self, online: Any, order: Any) -> None:
        """Run one epoch."""
