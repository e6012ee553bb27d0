"""The registry lines of the toy members: what a newcomer adds to a registry, done here for one run of the tests."""

from __future__ import annotations

import sys

from recipes import toy_engine, toy_loss, toy_penalty, toy_solver


def register() -> None:
    from crfkit.graph.inference.engines import ENGINES
    from crfkit.losses import LOSSES, Entry
    from crfkit.penalties import PENALTIES
    from crfkit.solvers import SOLVERS

    PENALTIES["toy"] = toy_penalty.ToyPenalty
    SOLVERS["toy"] = toy_solver.ToySolver
    ENGINES["toy"] = f"{toy_engine.__name__}:ToyEngine"
    # A loss is named by its module in crfkit, where the toy would lie.
    sys.modules["crfkit.graph.losses.toy"] = toy_loss
    LOSSES.add("toy", Entry("graph.losses.toy:ToyLoss"))
