"""Wapiti's lines of progress and its rules for the end of training."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from crfkit._types import Ids, Vector
from crfkit.chain.data import SequenceData
from crfkit.chain.inference import ChainInference
from crfkit.chain.training.early_stopping import all_weights
from crfkit.errors import StopTraining

if TYPE_CHECKING:
    from crfkit.chain.fields.field import ChainField
    from crfkit.solvers.parts.loop import Iteration


@dataclass
class Progress:
    """A callback: prints a line per iteration, and stops training by the rule of its windows.

    The error window holds the token errors (in percent) of the last `error_window` iterations on `data`. Training stops
    when they differ by less than eps. It also stops when the objective changed by less than eps, relative to its value,
    within the last `objective_window` iterations. A window of 0 is none.
    """

    data: SequenceData
    gold: Ids  # [positions], −1 for labels that the model does not know
    n_threads: int
    say: Callable[[str], None]
    error_window: int = 5
    objective_window: int = 5
    eps: float = 0.02
    errors: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    _start: float = field(default_factory=time.perf_counter)
    _last: float = field(default_factory=time.perf_counter)

    def __call__(self, iteration: Iteration) -> None:
        if iteration.row.iteration == 0:
            return
        w = all_weights(iteration)
        tokens, sequences = self._rates(iteration.loss.field, w)
        now = time.perf_counter()
        self.say(
            f"  [{iteration.row.iteration:4d}] obj={iteration.row.value:<10.2f} act={int(np.count_nonzero(w)):<8d} "
            f"err={tokens:5.2f}%/{sequences:5.2f}% time={now - self._last:.2f}s/{now - self._start:.2f}s\n"
        )
        self._last = now
        self.errors.append(tokens)
        self.values.append(iteration.row.value)
        if self._finished():
            raise StopTraining

    def _rates(self, chain: ChainField, w: Vector) -> tuple[float, float]:
        best, _ = ChainInference(chain, w, self.n_threads).decode(self.data)
        wrong = best != self.gold
        per_sequence = np.add.reduceat(wrong, self.data.starts[:-1])
        return 100.0 * float(wrong.mean()), 100.0 * float((per_sequence > 0).mean())

    def _finished(self) -> bool:
        last = self.errors[-self.error_window :]
        if 0 < self.error_window <= len(self.errors) and max(last) - min(last) < self.eps:
            return True
        if 0 < self.objective_window < len(self.values):
            old, new = self.values[-self.objective_window], self.values[-1]
            return abs(old - new) < self.eps * abs(old)
        return False
