"""The engine and the decoder that "auto" chooses. Every part of the package that accepts "auto" asks here.

The solver and the penalty for "auto" and None are in :mod:`crfkit.training.defaults`, which also exports
the names of this module.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from crfkit.errors import ParameterError
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.cuts import attractive_graphs, cuts_installed
from crfkit.graph.inference.halves import decoding_seconds, halves_seconds, suits_halves
from crfkit.graph.inference.junction import TABLES, Junction
from crfkit.wording import Naming, in_python

EXACT_ENGINES = ("tree", "junction", "halves")
SAMPLES_ENTRIES = 1 << 22, 1 << 24  # of the tables of a graph, of all graphs: half a second per evaluation
STRUCTURE_ENTRIES = 1 << 20  # of the largest table: the graph changes often, and each one is inferred many times
SECONDS = 2e-9  # of exact inference, for each row, edge and entry of the largest table, on one core
PATIENCE = 0.3  # seconds for one evaluation of the loss of a table; training takes about a hundred
ROWS_PATIENCE = 60.0  # seconds to predict the rows of a table
PURPOSES = ("any", "samples", "table", "rows", "sampling", "structure")
States = int | Sequence[int]


def default_engine(graph: Graph, n_states: States, purpose: str = "any", rows: int = 1) -> str:
    """Return the name of the engine that "auto" chooses on a graph.

    Inference is exact where that is cheap: "tree" on forests, "junction" where its tables are small. Else it is "trw":
    tree-reweighted inference has one fixed point and a bound on log Z, so training has one objective, while
    belief propagation and mean field may jump between several.

    Parameters
    ----------
    purpose : how much exact inference may cost.
        "any": as much as memory allows; for predictions on a single graph.
        "samples": about half a second per evaluation; for training and prediction on graphs that bring their own edges.
        "table": a third of a second per evaluation on `rows` rows that share the graph and the potentials of its edges.
        "rows": about a minute for the predictions of as many rows.
        "sampling": as "any", but "gibbs" where exact inference is too expensive.
        "structure": "junction" or "trw", whatever the graph; for a graph whose edges are being chosen, which needs the
        same engine from its first edge to its last.
    n_states : labels of every node, or a list with the number of each node of a table
    rows : number of rows of a table.

    >>> [default_engine(g, 2) for g in (Graph.path(9), Graph.complete(9), Graph.grid((99, 99)))]
    ['tree', 'junction', 'trw']
    >>> default_engine(Graph.complete(14), 2, "table", rows=1000), default_engine(Graph.complete(40), 2, "sampling")
    ('halves', 'gibbs')
    """
    if purpose not in PURPOSES:
        raise ParameterError(f"unknown purpose {purpose!r}; one of {', '.join(PURPOSES)}")
    if purpose in ("table", "rows"):
        seconds, name = table_engine(graph, n_states, rows)
        patience = PATIENCE if purpose == "table" else ROWS_PATIENCE
        return name if seconds <= patience or name == "tree" else "trw"
    n_states = _most(n_states)
    if purpose == "structure":
        return "junction" if Junction(max_table=STRUCTURE_ENTRIES).fits(graph, n_states) else "trw"
    if graph.is_forest:
        return "tree"
    if purpose == "samples":
        entries = min(SAMPLES_ENTRIES[0], SAMPLES_ENTRIES[1] // max(1, graph.n_graphs))
        return "junction" if Junction(max_table=max(1, entries // TABLES)).fits(graph, n_states) else "trw"
    if not Junction().fits(graph, n_states):
        return "gibbs" if purpose == "sampling" else "trw"
    return "junction"


def table_engine(graph: Graph, n_states: States, rows: int) -> tuple[float, str]:
    """Return (seconds, name) of the fastest exact engine for rows that share a graph and the potentials of its edges.

    The seconds are those predicted for the expectations of all rows on one core; infinite if memory does not allow any.
    """
    K = _most(n_states)
    sizes = [K] * graph.n_nodes if isinstance(n_states, int) else n_states
    found = [(halves_seconds(sizes, rows), "halves")]
    if graph.is_forest:
        found.append((SECONDS * rows * graph.n_edges * K * K, "tree"))
    elif Junction().fits(graph, K):
        found.append((SECONDS * rows * graph.n_edges * Junction().table_size(graph, K), "junction"))
    return min(found)


def explain_table_engine(graph: Graph, n_states: States, rows: int) -> str:
    """Return what to tell the user about the engine of a table: why it is approximate, or "" where it is exact."""
    seconds, name = table_engine(graph, n_states, rows)
    if seconds <= PATIENCE or name == "tree":  # which takes about as long as the pseudo-likelihood
        return ""
    if math.isinf(seconds):
        return "exact inference needs tables that are too large"
    return f"exact inference would take about {seconds:.1f} s for each evaluation of the loss ({rows} rows)"


def instead_of_exact(naming: Naming = in_python) -> str:
    """Return how inference becomes exact where it would be expensive."""
    exact = naming("inference", "junction")
    return f"Fewer edges ({naming('graph')}) make exact inference cheap; {exact} is exact at any cost"


def _most(n_states: States) -> int:
    return n_states if isinstance(n_states, int) else max(n_states)


def default_decoder(potentials: Potentials) -> str:
    """Return the name of the strongest decoder that suits all graphs of a field.

    In this order: "tree" on forests, "graph-cut" for two states and attractive edges, "halves" or "junction" where they
    are fast enough, "qpbo" for two states, "alpha-expansion" for attractive edges, otherwise "max-product". Those that
    cut graphs need PyMaxflow.

    >>> import numpy as np
    >>> default_decoder(Potentials.from_tables(Graph.path(3), np.zeros((3, 2)), np.eye(2)))
    'tree'
    """
    graph, two = potentials.graph, potentials.n_states == 2
    if graph.is_forest:
        return "tree"
    cuts = cuts_installed()
    attractive = cuts and bool(attractive_graphs(potentials).all())
    if attractive and two:
        return "graph-cut"
    exact = exact_decoder(potentials)
    if exact:
        return exact
    if two and cuts:
        return "qpbo"
    return "alpha-expansion" if attractive else "max-product"


def exact_decoder(potentials: Potentials) -> str:
    """Return the faster of "halves" and "junction", or "" where memory allows neither."""
    graph, K = potentials.graph, potentials.n_states
    fits = Junction().fits(graph, K)
    if graph.n_graphs < 2 or not suits_halves(potentials):
        return "junction" if fits else ""
    one = graph.take([0])[0]
    halves = decoding_seconds(potentials)
    junction = SECONDS * graph.n_graphs * one.n_edges * Junction().table_size(one, K) if fits else math.inf
    if min(halves, junction) > ROWS_PATIENCE:
        return ""
    return "halves" if halves < junction else "junction"
