"""Regularised dual averaging (Xiao 2010): the mean of all gradients so far, of mini-batches, in one proximal step.

With ḡ the mean of k unbiased estimates g₁ … g_k of the loss's gradient:

    w = argmin_x  ḡ·x + penalty(x) + ½·Σ_i a_i·(x_i − centre_i)²

    a_i = γ·√(Σ g_i²)/k   adaptive, each weight by its own gradients (Duchi, Hazan & Singer 2011)
    a   = γ/√k            for penalties whose prox needs one step for all weights (groups)

An L2 part is in the minimum, too. The penalty is not divided among the mini-batches, so zeros are exact. The first
gradients are far from those at the optimum and their mean forgets them slowly: after 1, 2, 4, 8, … epochs it begins
anew, with the current point as the centre.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from crfkit._checks import check_count, check_online, check_positive
from crfkit.arrays import add_scaled, norm
from crfkit.errors import ParameterError
from crfkit.protocols import Capability, Kind, Loss, Saved, Vector
from crfkit.result import TraceRow
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.online import shuffled
from crfkit.solvers.parts.proximal import start
from crfkit.solvers.parts.saved import POSITIVE, saved_count, saved_number, saved_vector
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule, for_values_that_rise

MOST_IN_BATCH = 32
LEAST_BATCHES = 10
ADAPTIVE_GAMMA = 4.0  # where its trials begin; it has no unit
TRIAL_EPOCHS = 3  # of a trial of it
TINY = 1e-8  # added to √Σg², which may be zero
TRIALS = 12  # of γ, in each direction
LEAST_UPDATES = 30  # of a trial
MOST_UPDATES = 100


@dataclass(frozen=True)
class RDAState:
    point: Point
    batches: Sequence[Loss]
    total: Vector  # of gradients
    centre: Vector
    k: int  # gradients in the total
    epoch: int
    gamma: float
    squares: Vector = None  # of gradients, summed; where the steps adapt

    def saved(self) -> Saved:
        kept = {"total": self.total, "centre": self.centre, "k": self.k, "epoch": self.epoch, "gamma": self.gamma}
        return kept if self.squares is None else {**kept, "squares": self.squares}

    def restarted(self) -> RDAState:
        """Return the same with no gradient in the mean and the current point as the centre."""
        squares = None if self.squares is None else 0.0 * self.squares
        return replace(self, total=0.0 * self.total, centre=self.point.w, k=0, squares=squares)


@dataclass(frozen=True)
class RDA(IterativeSolver):
    """Minimise losses that can be split into mini-batches with any penalty that has a prox, near the optimum.

    With penalties of single weights (L1, elastic net, L2) a hundred epochs end within two percent of it, mostly within
    one (strengths >= 1); with weaker ones, and with groups of weights, which allow one step size only, more may remain.

    An iteration is an epoch. The last iterate is returned, which has the penalty's zeros; a mean would not.

    Parameters
    ----------
    batch : number of sequences or graphs in a mini-batch. None: 32, or fewer for at least ten mini-batches.
    gamma : γ; a larger one makes smaller steps. None: chosen by short trials of powers of 2.
    adaptive : give each weight a step size of its own, from its gradients, where the penalty allows it.
    restart : begin the mean of the gradients anew after 1, 2, 4, 8, … epochs.
    seed : random seed of the mini-batches and of the noise.
    random_start : scale of normal noise that is added to the start, which is also the centre.

    >>> RDA(batch=8, gamma=10.0).gamma
    10.0
    """

    stopping: StoppingRule = field(default_factory=lambda: PeriodDecrease(1e-4, 5))
    max_iterations: int = 100
    seed: int = 0
    batch: int | None = None
    gamma: float | None = None
    adaptive: bool = True
    restart: bool = True
    random_start: float = 0.0

    name: ClassVar[str] = "rda"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.SUBSET})
    handles_smooth: ClassVar[frozenset[Kind]] = frozenset({Kind.L2})
    handles_nonsmooth: ClassVar[frozenset[Kind]] = frozenset({Kind.PROX})

    def __post_init__(self) -> None:
        check_online(self.max_iterations, self.seed)
        check_count(batch=1 if self.batch is None else self.batch)
        if self.gamma is not None:
            check_positive(gamma=self.gamma)
        if not (math.isfinite(self.random_start) and self.random_start >= 0):
            raise ParameterError(f"random_start must be a finite number >= 0, not {self.random_start!r}")

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> RDAState:
        loss: Loss = objective.loss
        n = len(loss.data)
        order = shuffled(self.seed, 2**31, n)
        size = self.batch if self.batch is not None else max(min(MOST_IN_BATCH, n // LEAST_BATCHES), 1)
        batches = [loss.subset(order[k : k + size]) for k in range(0, n, size)]
        point = objective.at(start(w0, self.random_start, self.seed, saved))
        adapts = self.adaptive and (objective.nonsmooth is None or Kind.L1 in objective.nonsmooth.kinds)
        if saved:
            if ("squares" in saved) != adapts:
                raise ParameterError("the saved state is of an RDA with another setting of `adaptive`")
            total, centre = (saved_vector(saved, name, w0) for name in ("total", "centre"))
            k, epoch = saved_count(saved, "k"), saved_count(saved, "epoch")
            gamma = saved_number(saved, "gamma", low=POSITIVE)
            squares = saved_vector(saved, "squares", w0, low=0.0) if adapts else None
            return RDAState(point, batches, total, centre, k, epoch, gamma, squares)
        calibrate = self._calibrate_adaptive if adapts else self._calibrate
        scale = self.gamma if self.gamma is not None else calibrate(objective, batches, point)
        return RDAState(point, batches, 0.0 * w0, point.w, 0, 0, scale, 0.0 * w0 if adapts else None)

    def step(self, objective: Objective, state: RDAState) -> RDAState:
        epoch = state.epoch
        if self.restart and epoch > 0 and epoch & (epoch - 1) == 0:
            state = state.restarted()
        order = [state.batches[b] for b in shuffled(self.seed, epoch, len(state.batches))]
        w, later = _pass(objective, order, state)
        return replace(later, point=objective.at(w), epoch=epoch + 1)

    def finished(self, trace: Sequence[TraceRow], state: RDAState) -> bool:
        """Return whether the stopping rule holds, in its form for values that rise: they do after a restart."""
        return for_values_that_rise(self.stopping).satisfied(trace, state.point.w)

    def _calibrate_adaptive(self, objective: Objective, batches: Sequence[Loss], point: Point) -> float:
        """Return half the power of 2 with which a few epochs over some mini-batches, each restarted, end lowest.

        Half: later epochs have more gradients in their mean, which therefore has less noise.
        """
        some = [batches[b] for b in shuffled(self.seed, 2**30, len(batches))[:MOST_UPDATES]]
        part = sum(_share(objective, batch) for batch in some)

        def reached(gamma: float) -> float:
            zero = 0.0 * point.w
            state = RDAState(point, some, zero, point.w, 0, 0, gamma, zero)
            w = point.w
            for _ in range(TRIAL_EPOCHS):
                w, state = _pass(objective, some, replace(state.restarted(), centre=w), w)
            value = sum(batch.at(w).value for batch in some) + part * objective.penalty.value(w)
            return value if math.isfinite(value) else math.inf

        return 0.5 * _lowest(reached, ADAPTIVE_GAMMA) if some else ADAPTIVE_GAMMA

    def _calibrate(self, objective: Objective, batches: Sequence[Loss], point: Point) -> float:
        """Return the power of 2, times the gradient's norm, with which the losses of the mini-batches are least."""
        count = min(max(len(batches), LEAST_UPDATES), MOST_UPDATES)

        def losses(gamma: float) -> float:
            total, w, lost = 0.0 * point.w, point.w, 0.0
            for k, batch in enumerate(_cycle(batches, self.seed, count)):
                share = _share(objective, batch)
                evaluation = batch.at(w)
                lost += evaluation.value / share + objective.penalty.value(w)
                if not math.isfinite(lost):
                    return math.inf
                add_scaled(total, 1.0 / share, evaluation.grad)
                w = _dual_step(objective, total, point.w, k + 1, gamma / math.sqrt(k + 1))
            return lost

        first = point.grad_norm if 0 < point.grad_norm < math.inf else 1.0
        return _lowest(losses, first) if batches else first


def _lowest(value: Callable[[float], float], first: float) -> float:
    """Return the number among first·2ⁿ at which the value is least, as far as it falls in a row."""
    best, least = first, value(first)
    for factor in (0.5, 2.0):
        for _ in range(TRIALS):
            trial = value(best * factor)
            if not trial < least:
                break
            best, least = best * factor, trial
    return best


def _pass(
    objective: Objective, batches: Sequence[Loss], state: RDAState, w: Vector | None = None
) -> tuple[Vector, RDAState]:
    """Return (the weights, the state but for its point) after a step per mini-batch, from w or the state's point."""
    total, k, w = 1.0 * state.total, state.k, state.point.w if w is None else w
    squares = None if state.squares is None else 1.0 * state.squares
    for batch in batches:
        gradient = (1.0 / _share(objective, batch)) * batch.at(w).grad
        total += gradient
        k += 1
        pull: float = state.gamma / math.sqrt(k)
        if squares is not None:
            squares += gradient * gradient
            pull = (state.gamma / k) * (squares**0.5 + TINY)
        w = _dual_step(objective, total, state.centre, k, pull)
    return w, replace(state, total=total, k=k, squares=squares)


def _share(objective: Objective, batch: Vector) -> float:
    loss: Loss = objective.loss
    return len(batch.data) / len(loss.data)


def _cycle(batches: Sequence[Loss], seed: int, count: int) -> Iterator[Loss]:
    for k in range(count):
        epoch, place = divmod(k, len(batches))
        yield batches[shuffled(seed, epoch, len(batches))[place]]


def _dual_step(objective: Objective, total: Vector, centre: Vector, k: int, pull: float) -> Vector:
    """Return argmin_x total/k·x + l2/2·‖x‖² + rest(x) + ½·Σ pull·(x − centre)²; `pull` is a number or a vector."""
    a = objective.l2 + pull
    w = (pull / a) * centre - total / (k * a)
    if not norm(w) < 1e100:
        return math.nan * w  # it diverges
    return w if objective.nonsmooth is None else objective.nonsmooth.prox(w, 1.0 / a)
