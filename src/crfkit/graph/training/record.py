"""The choices that "auto" made in a training run, for the model file and `crfkit inspect`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crfkit.graph.data import GraphData
from crfkit.graph.inference.defaults import default_decoder
from crfkit.graph.inference.marginals import Engine
from crfkit.graph.model import GraphModel
from crfkit.protocols import Loss, Penalty, Solver
from crfkit.result import Result
from crfkit.training.defaults import chosen_solver

MAX_RECORDED_NODES = 2500  # nodes of a graph up to which looking for its decoder takes a few hundredths of a second


def graph_choices(
    model: GraphModel, data: GraphData, solver: Solver, loss: Loss, penalty: Penalty, result: Result
) -> dict[str, str]:
    """Return what "auto" was for the options of a pairwise field that were "auto": solver, inference, decode.

    The engine is the one of training or, for losses without inference, the one that predicts the first graph; the
    decoder is the one for the first graph. It is omitted for graphs so large that looking for it would take a while.
    """
    chosen = dict(chosen_solver(solver, loss, penalty, result))
    if not np.isfinite(model.w).all():
        return chosen
    first = data if len(data) == 1 else data.take([0])
    if model.inference == "auto":
        chosen["inference"] = (loss.engine or model.engine(first.graph, len(data))).name
    if model.decode == "auto" and first.graph.n_nodes <= MAX_RECORDED_NODES:
        chosen["decode"] = default_decoder(model.potentials(first))
    return chosen


def with_chosen_engine(model: GraphModel, engine: Engine) -> GraphModel:
    """Return a model of images whose record names the engine that "auto" became for its training."""
    if model.inference != "auto" or isinstance(engine, str):
        return model
    auto = {**model.training.get("auto", {}), "inference": engine.name}
    return replace(model, training={**model.training, "auto": auto})
