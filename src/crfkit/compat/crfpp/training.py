"""Training as crf_learn reports it: a line for every evaluation of the objective (CRF) or every epoch (MIRA).

CRF++ has no iterations: it prints, counts and compares evaluations, those that a line search rejects as well, and its
model has the weights of the last one. So the loss is watched, not the solver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from crfkit._types import Floats, Ints
from crfkit.chain.inference import ChainInference
from crfkit.chain.losses.likelihood import ChainEvaluation, ChainLoss
from crfkit.errors import StopTraining
from crfkit.protocols import Capability, Evaluation, Penalty, Solver
from crfkit.protocols.field_loss import FieldLoss
from crfkit.result import Result, Status, TraceRow
from crfkit.solvers import LBFGS, MIRA, OWLQN, GradientNorm, MoreThuente
from crfkit.solvers.parts.objective import Objective
from crfkit.solvers.parts.online import Mistakes, OnlineState

SMALL_CHANGES = 3  # successive evaluations that change the objective by less than eta end training
ALL_RIGHT = 2  # successive epochs without a violated margin end MIRA

# CRF++ has Nocedal's L-BFGS with five pairs in doubles, and stops it at this gradient
_AT_OPTIMUM = GradientNorm(1e-7)
_NO_LIMIT = 10**9


def smooth_solver() -> LBFGS:
    return LBFGS(5, _AT_OPTIMUM, _NO_LIMIT, MoreThuente(), double=True)


def sparse_solver() -> OWLQN:
    return OWLQN(5, _AT_OPTIMUM, _NO_LIMIT)


class WatchedLoss(FieldLoss):
    """A loss that prints each of its evaluations, and ends training by CRF++'s rule."""

    capabilities = frozenset({Capability.SMOOTH})

    def __init__(self, loss: ChainLoss, penalty: Penalty, eta: float, limit: int) -> None:
        self.name, self.field = loss.name, loss.field
        self._loss, self._penalty, self._eta, self._limit = loss, penalty, eta, limit
        self.evaluations = 0
        self.w: Floats | None = None  # of the model, once training has ended
        self.value = np.nan  # of the last evaluation
        self._small = 0

    def at(self, w: Floats, warm: Evaluation | None = None) -> ChainEvaluation:
        if self.evaluations >= self._limit:  # CRF++ moves on once more before it looks at the limit
            self.w = w
            raise StopTraining
        evaluation = self._loss.at(w, warm)
        value = evaluation.value + self._penalty.value(w)
        change = abs(self.value - value) / self.value if self.evaluations else 1.0
        tokens, sequences = ChainInference(self.field, w, self._loss.n_threads).errors(self._loss.data)
        active = len(w) if self._penalty.split()[1] is None else np.count_nonzero(w)
        print(
            f"iter={self.evaluations} terr={tokens:.5f} serr={sequences:.5f} act={active} obj={value:.5f} "
            f"diff={change:.5f}",
            flush=True,
        )
        self.evaluations, self.value = self.evaluations + 1, value
        self._small = self._small + 1 if change < self._eta else 0
        if self._small == SMALL_CHANGES:
            self.w = w
            raise StopTraining
        return evaluation


def watched_training(
    loss: ChainLoss, penalty: Penalty, solver: Solver, eta: float, limit: int
) -> tuple[Floats, Status]:
    """Return the weights that CRF++ would keep, and why training ended."""
    watched = WatchedLoss(loss, penalty, eta, limit)
    try:
        result: Result = solver.minimize(watched, penalty, np.zeros(loss.size))
    except StopTraining:  # at the start
        return np.zeros(loss.size), Status.MAX_ITERATIONS
    if watched.w is None:
        return result.w, result.status
    return watched.w, Status.MAX_ITERATIONS if watched.evaluations >= limit else Status.CONVERGED


@dataclass
class _Epochs:
    """The state that MIRA keeps from epoch to epoch."""

    right: Ints | None = None  # how often each sequence was right in a row
    all_right: int = 0


@dataclass(frozen=True)
class SequentialMIRA(MIRA):
    """MIRA over the sequences in their order, without those that were right `shrinking` times in a row."""

    max_iterations: int = _NO_LIMIT
    averaged: bool = False
    shrinking: int = 20
    epochs: _Epochs = field(default_factory=_Epochs)

    def step(self, objective: Objective, state: OnlineState) -> OnlineState | Status:
        online, epochs = state.online, self.epochs
        n = online.n_sequences
        if epochs.right is None:
            epochs.right = np.zeros(n, dtype=np.int64)
        losses, wrong, sequences = np.zeros(n), 0, 0
        active = np.flatnonzero(epochs.right < self.shrinking)
        for k in active.tolist():
            losses[k] = online.mira([k], self.c, shortened=True)
            mistakes = online.mistakes[1]
            wrong, sequences = wrong + mistakes, sequences + (mistakes > 0)
            epochs.right[k] = 0 if mistakes else epochs.right[k] + 1
        kept = online.save()
        full = (np.asarray(kept["multipliers"]) >= self.c) & (epochs.right == 0)
        full[np.setdiff1d(np.arange(n), active)] = False
        violation = float(losses[~full].max(initial=0.0))
        w = online.weights()
        positions = max(int(objective.loss.data.n_positions), 1)
        print(
            f"iter={state.epoch} terr={wrong / positions:.5f} serr={sequences / max(n, 1):.5f} act={len(active)} "
            f"uact={int(full.sum())} obj={w @ w:.5f} kkt={violation:.5f}",
            flush=True,
        )
        epochs.all_right = epochs.all_right + 1 if violation <= 0 else 0
        if violation <= 0:
            epochs.right[:] = 0
        return OnlineState(Mistakes(w, float(wrong), sequences / max(n, 1)), online, state.epoch + 1, kept)

    def finished(self, trace: Sequence[TraceRow], state: object) -> bool:
        return self.epochs.all_right == ALL_RIGHT
