"""The inference engines by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

from crfkit.errors import ParameterError
from crfkit.files import limits
from crfkit.graph.graph import Graph
from crfkit.graph.inference.marginals import Engine
from crfkit.names import check_name

TREE = 100  # sweeps that take as long as a spanning tree
ENTRY = 64  # bytes for each entry of the largest table of a graph

# Loaded when first needed.
ENGINES = {
    "enumerate": "crfkit.graph.inference.enumerate:Enumerate",
    "tree": "crfkit.graph.inference.tree:Tree",
    "junction": "crfkit.graph.inference.junction:Junction",
    "halves": "crfkit.graph.inference.halves:Halves",
    "bp": "crfkit.graph.inference.belief_propagation:BeliefPropagation",
    "trw": "crfkit.graph.inference.tree_reweighted:TreeReweighted",
    "mean-field": "crfkit.graph.inference.mean_field:MeanField",
    "gibbs": "crfkit.graph.inference.gibbs:Gibbs",
}


def make_engine(engine: str | Engine, graph: Graph | None = None, n_states: int = 2, **options: object) -> Engine:
    """Return an engine by name with its options, or the one given; "auto" is the most exact that `graph` allows.

    >>> make_engine("trw", damping=0.3).bound
    'upper'
    >>> [make_engine("auto", g).name for g in (Graph.path(9), Graph.complete(9), Graph.grid((99, 99)))]
    ['tree', 'junction', 'trw']
    """
    if not isinstance(engine, str):
        return engine
    if engine == "auto":
        from crfkit.graph.inference.defaults import default_engine

        engine = default_engine(graph, n_states) if graph is not None else "trw"
    return new_engine(engine, options)


def new_engine(name: str, options: Mapping[str, object]) -> Engine:
    """Return an engine with these options, whatever their names are; raise ParameterError if it does not have them."""
    kind = engine_class(name)
    try:
        made: Engine = kind(**options)
    except TypeError as error:
        raise ParameterError(f"inference {name!r}: {error}") from None
    return made


def engine_class(name: str) -> Any:
    """Return the class of an engine; raise ParameterError if there is none of this name."""
    check_name("inference", name, ("auto", *ENGINES))
    module, kind = ENGINES[name].split(":")
    return getattr(import_module(module), kind)


def restored_engine(name: str, options: Mapping[str, object]) -> Engine:
    """Return an engine with the options that a file has; raise an error if they are unknown, or ask for too much."""
    if name == "auto":
        raise ParameterError("inference 'auto' has no options")
    kind = engine_class(name)
    known = {item.name for item in fields(kind)} - {"n_threads"}
    for option, value in options.items():
        if option not in known:
            raise ParameterError(f"inference {name!r} has no option {option!r:.60}; it has {', '.join(sorted(known))}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ParameterError(f"inference {name!r}: {option} is {value}")
        if isinstance(value, int) and abs(value) >= 2**63:
            raise ParameterError(f"inference {name!r}: {option} is no 64-bit number")
    made: Any = new_engine(name, options)
    limits.check("steps", work(made), f"inference {name!r} of this file may take {work(made):,} steps")
    for option in ("max_table", "max_labellings"):
        entries = getattr(made, option, 0)
        if isinstance(entries, bool) or not isinstance(entries, int):
            raise ParameterError(f"inference {name!r}: {option} must be a whole number, not {entries!r:.40}")
        if entries > getattr(kind, option, 0):
            limits.check_memory(ENTRY * entries, f"inference {name!r} with {option} = {entries:,}")
    return made  # type: ignore[no-any-return]


def work(engine: Any) -> int:
    """Return how many sweeps over a graph an engine may make; a spanning tree takes as long as many of them."""
    if engine.name == "gibbs":
        return int((engine.n_sweeps + engine.burn_in) * engine.n_chains + engine.ais_steps * engine.ais_runs)
    return int(getattr(engine, "max_iterations", 0) + TREE * getattr(engine, "n_trees", 0))
