"""Inference on images: iterative engines that stop after a few sweeps, in training and in prediction."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.defaults import default_engine
from crfkit.graph.inference.engines import make_engine
from crfkit.graph.inference.marginals import Engine, Marginals
from crfkit.graph.model import ITERATIVE, GraphModel, cheap_engine, ready_engine

# This is enough for pictures: messages of iterative engines settle to about a grey level in so many sweeps.
PREDICTION_LIMITS = {"tolerance": 1e-3, "max_iterations": 50}
TRAINING_TOLERANCE = 1e-4  # of engines whose sweeps are limited in training


def quick_marginals(field: GraphModel, potentials: Potentials) -> Marginals:
    """Return the marginals by the engine of a model; iterative engines named without options stop early."""
    graph, n_states = potentials.graph, field.field.max_states
    inference = cheap_engine(field.inference, field.encoder, graph, n_states)
    engine = ready_engine(inference, graph, n_states, field.n_threads, field.seed)
    return (with_options(engine, **PREDICTION_LIMITS) if isinstance(inference, str) else engine).run(potentials)


def limited_engine(
    inference: str | Engine, graph: Callable[[], Graph], n_states: int, sweeps: int | None, n_threads: int | None
) -> Any:
    """Return the engine of training: with at most `sweeps` sweeps if it is iterative and was given by name.

    `graph` makes the graph that decides what "auto" is; it is called only then.
    """
    if sweeps is None or not isinstance(inference, str):
        return inference
    name = default_engine(graph(), n_states, "samples") if inference == "auto" else inference
    if name not in ITERATIVE:
        return inference
    return with_options(
        make_engine(name), max_iterations=int(sweeps), tolerance=TRAINING_TOLERANCE, n_threads=n_threads
    )


def with_options(engine: Any, **options: object) -> Engine:
    """Return the engine with the options that it has."""
    known = {item.name for item in dataclasses.fields(engine)}
    made: Engine = replace(engine, **{name: value for name, value in options.items() if name in known})
    return made
