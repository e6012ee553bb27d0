"""The engine and the decoder that "auto" stands for. Every part of the package that accepts "auto" asks here.

The solver and the penalty that stand for "auto" and None are in :mod:`crfkit.training.defaults`, which also exports
the names of this module.
"""

from __future__ import annotations

from crfkit.data.graph import Graph
from crfkit.errors import ParameterError
from crfkit.fields.potentials import Potentials
from crfkit.inference.cuts import attractive_graphs, cuts_installed
from crfkit.inference.junction import TABLES, Junction

EXACT_ENGINES = ("tree", "junction")
SAMPLES_ENTRIES = 1 << 22, 1 << 24  # of the tables of a graph, of all graphs: half a second per evaluation
STRUCTURE_ENTRIES = 1 << 20  # of the largest table: the graph changes often, and each one is inferred many times
SECONDS = 2e-9  # of exact inference, for each row, edge and entry of the largest table, on one core
PATIENCE = 1.0  # seconds for one evaluation of the loss of a table; training takes about fifty
INSTEAD_OF_EXACT = (
    "training uses 'trw', which is approximate. loss='pseudo-likelihood' is faster still and close to the likelihood "
    "where inputs say much; inference='junction' is exact whatever it takes; fewer edges (graph=…) make it cheap"
)
PURPOSES = ("any", "samples", "table", "sampling", "structure")


def default_engine(graph: Graph, n_states: int, purpose: str = "any", rows: int = 1) -> str:
    """Return the name of the engine that "auto" stands for on a graph.

    Inference is exact where that is cheap: "tree" on forests, "junction" where its tables are small. Else it is "trw":
    tree-reweighted inference has one fixed point and a bound on log Z, so that training has one objective, while
    belief propagation and mean field may jump between several.

    Parameters
    ----------
    purpose : how much exact inference may cost.
        "any": as much as memory allows; for predictions on a single graph.
        "samples": about half a second per evaluation; for training and prediction on graphs that bring their own edges.
        "table": about a second per evaluation on `rows` rows that share the graph.
        "sampling": as "any", but "gibbs" where exact inference is too expensive.
        "structure": "junction" or "trw", whatever the graph; for a graph whose edges are being chosen, which needs the
        same engine from its first edge to its last.
    rows : number of rows of a table.

    >>> [default_engine(g, 2) for g in (Graph.path(9), Graph.complete(9), Graph.grid((99, 99)))]
    ['tree', 'junction', 'trw']
    >>> default_engine(Graph.complete(14), 2, "table", rows=1000), default_engine(Graph.complete(40), 2, "sampling")
    ('trw', 'gibbs')
    """
    if purpose not in PURPOSES:
        raise ParameterError(f"unknown purpose {purpose!r}; one of {', '.join(PURPOSES)}")
    if purpose == "structure":
        return "junction" if Junction(max_table=STRUCTURE_ENTRIES).fits(graph, n_states) else "trw"
    if graph.is_forest:
        return "tree"
    if purpose == "samples":
        entries = min(SAMPLES_ENTRIES[0], SAMPLES_ENTRIES[1] // max(1, graph.n_graphs))
        return "junction" if Junction(max_table=max(1, entries // TABLES)).fits(graph, n_states) else "trw"
    if not Junction().fits(graph, n_states):
        return "gibbs" if purpose == "sampling" else "trw"
    slow = purpose == "table" and table_seconds(graph, n_states, rows) > PATIENCE
    return "trw" if slow else "junction"


def table_seconds(graph: Graph, n_states: int, rows: int) -> float:
    """Return the predicted seconds of an evaluation of the likelihood of a table by exact inference, on one core."""
    return SECONDS * rows * graph.n_edges * Junction().table_size(graph, n_states)


def explain_table_engine(graph: Graph, n_states: int, rows: int) -> str:
    """Return what to tell the user about the engine of a table: why it is approximate, or "" where it is exact."""
    if default_engine(graph, n_states, "table", rows) in EXACT_ENGINES:
        return ""
    if not Junction().fits(graph, n_states):
        return f"exact inference needs tables that are too large: {INSTEAD_OF_EXACT}"
    seconds = table_seconds(graph, n_states, rows)
    why = f"exact inference would take about {seconds:.1f} s for each evaluation of the loss ({rows} rows)"
    return f"{why}: {INSTEAD_OF_EXACT}"


def default_decoder(potentials: Potentials) -> str:
    """Return the name of the strongest decoder that suits all graphs of a field.

    In this order: "tree" on forests, "graph-cut" for two states and attractive edges, "junction" where its tables are
    small, "qpbo" for two states, "alpha-expansion" for attractive edges, else "max-product". Those that cut graphs need
    PyMaxflow.

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
    if Junction().fits(graph, potentials.n_states):
        return "junction"
    if two and cuts:
        return "qpbo"
    return "alpha-expansion" if attractive else "max-product"
