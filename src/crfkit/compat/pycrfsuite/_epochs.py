"""CRFsuite's learners that go through the instances one by one, on crfkit's native updates.

An iteration is an epoch. Instances are shuffled as CRFsuite shuffles them on Linux in a new process, so weights
and losses are its own to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from crfkit._types import Floats, Ints
from crfkit.arrays import norm
from crfkit.errors import ParameterError
from crfkit.protocols import Capability, Kind, Saved, Vector
from crfkit.result import Status, TraceRow
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule
from crfkit.solvers.sgd import step_sizes

if TYPE_CHECKING:
    from crfkit.chain.losses.online import OnlineChain

Say = Callable[[str], None]


class Shuffle:
    """The permutations of n instances that ``rand()`` of the GNU C library gives without a seed."""

    def __init__(self, n: int) -> None:
        self.order: Ints = np.arange(n, dtype=np.int64)
        numbers = [1]
        for _ in range(30):
            numbers.append(16807 * numbers[-1] % 2147483647)
        self._last = numbers[3:] + numbers[:3]  # the last 31 numbers of x_i = x_{i−3} + x_{i−31} mod 2³²
        self._draw(310)  # these are thrown away

    def _draw(self, n: int) -> list[int]:
        numbers, made = self._last, []
        for _ in range(n):
            value = (numbers[-3] + numbers[0]) & 0xFFFFFFFF
            numbers.append(value)
            del numbers[0]
            made.append(value >> 1)
        return made

    def next(self) -> Ints:
        """Shuffle, continuing from the last order, and return the order."""
        order = self.order.tolist()
        n = len(order)
        for i, number in enumerate(self._draw(n)):
            j = number % n
            order[i], order[j] = order[j], order[i]
        self.order = np.array(order, dtype=np.int64)
        return self.order


@dataclass(frozen=True)
class Learned:
    """The weights after an epoch, and the loss that the learner saw during it."""

    w: Vector
    value: float
    optimality: float = 0.0

    @property
    def finite(self) -> bool:
        return math.isfinite(norm(self.w))


@dataclass(frozen=True)
class EpochState:
    point: Learned
    online: Any
    shuffle: Shuffle
    epoch: int = 0
    columns: Mapping[str, float] = field(default_factory=dict)
    best: Learned | None = None  # of an epoch before this one, if its weights are to be kept

    def saved(self) -> Saved:
        return {} if self.best is None else {"w": self.best.w, "value": self.best.value}


@dataclass(frozen=True)
class Epochs(IterativeSolver):
    """Base: epochs until the mean loss is small."""

    max_iterations: int = 100
    epsilon: float = 0.0
    stopping: StoppingRule = field(default_factory=PeriodDecrease)  # not used: `finished` decides

    name: ClassVar[str] = "crfsuite-epochs"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.ONLINE, Capability.MISTAKES})
    handles_smooth: ClassVar[frozenset[Kind]] = frozenset()
    own_objective: ClassVar[bool] = True
    numpy_only: ClassVar[bool] = True

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> EpochState:
        online = objective.loss.online()
        online.start(w0)
        return EpochState(Learned(w0, math.inf), online, Shuffle(online.n_sequences))

    def columns(self, state: EpochState) -> Mapping[str, float]:
        return state.columns

    def finished(self, trace: Sequence[TraceRow], state: Any) -> bool:
        return state.epoch > 0 and self.small(trace[-1].value / state.online.n_sequences)

    def small(self, mean_loss: float) -> bool:
        """Return whether training may stop."""
        return mean_loss < self.epsilon

    def step(self, objective: Objective, state: EpochState) -> EpochState | Status:
        online, epoch = state.online, state.epoch + 1
        loss = self.update(online, state.shuffle.next())
        raw = online.weights()
        w = self.average(online, epoch) if self.averaged else raw
        columns = {"norm": norm(w if self.norm_of_average else raw)}
        return EpochState(Learned(w, loss), online, state.shuffle, epoch, columns)

    averaged: ClassVar[Any] = False
    norm_of_average: ClassVar[bool] = True

    def update(self, online: OnlineChain, order: Ints) -> float:
        """Run one epoch; return its loss."""
        raise NotImplementedError

    @staticmethod
    def average(online: OnlineChain, epoch: int) -> Floats:
        """Return the mean of the weights after every instance and at the start, where they are 0."""
        n = float(epoch * online.n_sequences)
        mean: Floats = online.average()
        return mean * (n / (n + 1.0))


@dataclass(frozen=True)
class Perceptron(Epochs):
    """The loss is the share of wrong labels of each instance, summed."""

    averaged: ClassVar[Any] = True

    def update(self, online: OnlineChain, order: Ints) -> float:
        online.perceptron(order)
        return float(online.mistake_share)


@dataclass(frozen=True)
class PassiveAggressive(Epochs):
    kind: int = 1
    c: float = 1.0
    error_sensitive: bool = True
    averaging: bool = True

    norm_of_average: ClassVar[bool] = False

    @property
    def averaged(self) -> Any:
        return self.averaging

    def update(self, online: OnlineChain, order: Ints) -> float:
        return float(online.passive_aggressive(order, self.kind, self.c, self.error_sensitive))


@dataclass(frozen=True)
class Arow(Epochs):
    variance: float = 1.0
    gamma: float = 1.0

    def update(self, online: OnlineChain, order: Ints) -> float:
        return float(online.arow(order, self.variance, self.gamma))

    def small(self, mean_loss: float) -> bool:
        return mean_loss <= self.epsilon


@dataclass(frozen=True)
class Calibration:
    """Choose the learning rate: rates are tried on a sample, growing from `eta` and then shrinking."""

    eta: float = 0.1
    rate: float = 2.0
    samples: int = 1000
    candidates: int = 10
    max_trials: int = 20

    def best(self, online: OnlineChain, l2: float, shuffle: Shuffle, size: int, say: Say) -> float:
        """Return the rate whose epoch over the sample has the least loss."""
        zero = np.zeros(size)
        order = shuffle.next()[: self.samples]

        def after(eta: float) -> float:
            online.start(zero)
            return epoch_loss(online, order, eta, l2, 0)

        online.start(zero)
        initial = float(online.sgd(order, np.zeros(len(order)), 0.0, 0.0, False))
        say(f"Initial loss: {initial:f}\n")
        eta, best, least, shrinking, left, trial = self.eta, self.eta, math.inf, False, self.candidates, 1
        while left > 0 or not shrinking:
            say(f"Trial #{trial} (eta = {eta:f}): ")
            loss = after(eta)
            better = math.isfinite(loss) and loss < initial
            say(f"{loss:f}\n" if better else f"{loss:f} (worse)\n")
            left -= better
            if math.isfinite(loss) and loss < least:
                least, best = loss, eta
            if not shrinking and better and left > 0:
                eta *= self.rate
            elif not shrinking:
                shrinking, left, eta = True, self.candidates, self.eta / self.rate
            else:
                eta /= self.rate
            trial += 1
            if self.max_trials <= trial:
                break
        return best


def epoch_loss(online: OnlineChain, order: Ints, eta: float, l2: float, updates: int) -> float:
    """Run an epoch of stochastic gradients; return its losses plus its share of the penalty at its end."""
    n = online.n_sequences
    try:
        loss = float(online.sgd(order, step_sizes(eta, l2, n, updates, len(order)), l2, 0.0, False, True))
    except ParameterError:  # steps so long that L2 would turn the weights round
        return math.inf
    w = online.weights()
    return loss + 0.5 * l2 * float(w @ w) * (len(order) / float(n))


@dataclass(frozen=True)
class L2SGD(Epochs):
    """Stochastic gradient descent; stops when the loss has not improved by `delta` over `period` epochs."""

    period: int = 10
    delta: float = 1e-6
    calibration: Calibration = field(default_factory=Calibration)
    say: Say = print

    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.ONLINE})
    handles_smooth: ClassVar[frozenset[Kind]] = frozenset({Kind.L2})

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> EpochState:
        state = super().init(objective, w0, saved)
        eta = self.calibration.best(state.online, objective.l2, state.shuffle, len(w0), self.say)
        self.say(f"Best learning rate (eta): {eta:f}\n")
        state.online.start(w0)
        return EpochState(state.point, state.online, state.shuffle, columns={"first_eta": eta})

    def step(self, objective: Objective, state: EpochState) -> EpochState | Status:
        online, n, epoch = state.online, state.online.n_sequences, state.epoch + 1
        eta, updates = state.columns["first_eta"], n * state.epoch
        loss = epoch_loss(online, state.shuffle.next(), eta, objective.l2, updates)
        point = Learned(online.weights(), loss)
        last = float(step_sizes(eta, objective.l2, n, updates + n - 1, 1)[0])
        columns = {"first_eta": eta, "eta": last, "norm": norm(point.w), "updates": float(updates + n)}
        best = point if state.best is None or loss < state.best.value else state.best
        return EpochState(point, online, state.shuffle, epoch, columns, best)

    def finished(self, trace: Sequence[TraceRow], state: Any) -> bool:
        improvement = self.improvement(trace)
        return improvement is not None and improvement < self.delta

    def improvement(self, trace: Sequence[TraceRow]) -> float | None:
        """Return by how much the loss fell over the last period, relative to it; None before that."""
        if len(trace) <= self.period + 1:
            return None
        return (trace[-1 - self.period].value - trace[-1].value) / trace[-1].value
