"""Targets: checkpoints of every solver, resumed for a few iterations."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from crfkit import L1, L2, ChainCRF, NoPenalty, Template
from crfkit.chain.training.selection import select_start
from crfkit.errors import CapabilityError
from crfkit.files.checkpoint import Checkpoint
from crfkit.losses import LOSSES
from crfkit.solvers import SOLVERS, GradientNorm, make_solver
from crfkit.solvers.parts.compatibility import check_compatible
from fuzz.chains import LABELS, ROWS
from fuzz.containers import change_container, put_together
from fuzz.target import Target

PROBLEMS = (
    ("chain-likelihood", L2(1.0)),
    ("chain-likelihood", L1(0.5)),
    ("chain-likelihood", NoPenalty()),
    ("chain-candidates", L1(0.5)),
    ("contrastive-divergence", L2(1.0)),
)


@cache
def loss_of(name: str) -> Any:
    return LOSSES[name].example()


def run(name: str, loss: str, penalty: Any, k: int, checkpoint: Checkpoint | None = None) -> Any:
    solver = make_solver(name, stopping=GradientNorm(0.0), max_iterations=k)
    problem = loss_of(loss)
    if checkpoint is None:
        return solver.minimize(problem, penalty, np.zeros(problem.size))
    if loss == "chain-candidates":
        problem, _ = select_start(problem, np.zeros(problem.pool.field.size), checkpoint)
    return solver.minimize(problem, penalty, checkpoint.w, (), checkpoint.state)


def takes(name: str, loss: str, penalty: Any) -> bool:
    """Return whether a solver takes a loss and a penalty."""
    try:
        check_compatible(SOLVERS[name](), loss_of(loss), penalty.bind(loss_of(loss)))
    except CapabilityError:
        return False
    return True


def _contents(checkpoint: Checkpoint) -> bytes:
    arrays = {f"state.{k}": v for k, v in checkpoint.state.items() if isinstance(v, np.ndarray)}
    others = {k: v for k, v in checkpoint.state.items() if not isinstance(v, np.ndarray)}
    others = {k: v.item() if isinstance(v, np.generic) else v for k, v in others.items()}
    return put_together({"kind": "checkpoint", "state": others}, {"w": np.array(checkpoint.w), **arrays})


def _valid(name: str, loss: str, penalty: Any) -> bytes:
    return _contents(Checkpoint.of(run(name, loss, penalty, 4)))


def _use(name: str, loss: str, penalty: Any, path: Path, rng: random.Random) -> None:
    run(name, loss, penalty, 3, Checkpoint.load(path))


TEMPLATE = Template("U0:%x[0,0]\nU1:%x[0,1]\nB")


def _crf(solver: str, k: int) -> ChainCRF:
    return ChainCRF(template=TEMPLATE, solver=solver, n_threads=1, max_iterations=k, tolerance=GradientNorm(0.0))


def _fitted(solver: str) -> bytes:
    return _contents(_crf(solver, 3).fit(ROWS, LABELS).checkpoint())


def _refit(solver: str, path: Path, rng: random.Random) -> None:
    _crf(solver, 3).fit(ROWS, LABELS, resume=Checkpoint.load(path))


def _targets() -> Iterator[Target]:
    for name in SOLVERS:
        if name == "toy":  # of tests/recipes, which workers do not have
            continue
        chosen = [problem for problem in PROBLEMS if takes(name, *problem)]
        for k, problem in enumerate(chosen[:2]):
            yield Target(
                f"checkpoint-{name}-{k}",
                partial(_valid, name, *problem),
                change_container,
                partial(_use, name, *problem),
            )
    for solver in ("auto", "grafting-light", "sgd"):
        yield Target(f"resume-{solver}", partial(_fitted, solver), change_container, partial(_refit, solver))


TARGETS = list(_targets())
