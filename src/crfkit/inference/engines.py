"""The inference engines by name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from crfkit.data.graph import Graph
from crfkit.errors import ParameterError
from crfkit.inference.marginals import Engine
from crfkit.names import check_name

# Loaded when first asked for.
ENGINES = {
    "enumerate": "crfkit.inference.enumerate:Enumerate",
    "tree": "crfkit.inference.tree:Tree",
    "junction": "crfkit.inference.junction:Junction",
    "bp": "crfkit.inference.belief_propagation:BeliefPropagation",
    "trw": "crfkit.inference.tree_reweighted:TreeReweighted",
    "mean-field": "crfkit.inference.mean_field:MeanField",
    "gibbs": "crfkit.inference.gibbs:Gibbs",
}


def make_engine(engine: str | Engine, graph: Graph | None = None, n_states: int = 2, **options: Any) -> Engine:
    """Return an engine by name with its options, or the one given; "auto" is the most exact that `graph` allows.

    >>> make_engine("trw", damping=0.3).bound
    'upper'
    >>> [make_engine("auto", g).name for g in (Graph.path(9), Graph.complete(9), Graph.grid((99, 99)))]
    ['tree', 'junction', 'trw']
    """
    if not isinstance(engine, str):
        return engine
    if engine == "auto":
        from crfkit.inference.defaults import default_engine

        engine = default_engine(graph, n_states) if graph is not None else "trw"
    check_name("inference", engine, ("auto", *ENGINES))
    module, name = ENGINES[engine].split(":")
    try:
        made: Engine = getattr(import_module(module), name)(**options)
    except TypeError as error:
        raise ParameterError(f"inference {engine!r}: {error}") from None
    return made
