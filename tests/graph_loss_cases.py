"""Labelled graphs of every kind with fields of every form, for the laws of their losses."""

from dataclasses import replace
from itertools import product

import numpy as np
from scipy.sparse import csr_array

from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import EDGE_FORMS, NODE_FORMS, GraphField, tied_field, untied_field
from crfkit.graph.graph import Graph

FORMS = list(product(NODE_FORMS, EDGE_FORMS))
KINDS = ["dense", "sparse", "intercept", "types", "table", "table without inputs", "ragged"]
STRUCTURE = Graph(4, [(1, 0), (1, 2), (2, 0)])  # a cycle, edges in both directions, and a node of its own


def make(kind, node_form="full", edge_form="full", seed=0):
    """(labelled data, field): several graphs, one without nodes, one without edges, with weights."""
    rng = np.random.default_rng(seed)
    ising = "ising" in (node_form, edge_form)
    K = 2 if ising else 3
    if kind.startswith("table") or kind == "ragged":
        states = [2, 3, 2, 4] if kind == "ragged" else [K] * 4
        X = None if kind == "table without inputs" else rng.standard_normal((3, 1))
        Y = np.stack([rng.integers(0, k, 3) for k in states], axis=1)
        data = GraphData.table(3, STRUCTURE, X, Y, weights=[1.0, 0.5, 2.0])
        return data, untied_field(data, states, node_form, edge_form)
    graph = Graph.join([Graph.grid((2, 2)), Graph(0, []), STRUCTURE, Graph(2, [])])
    weights, labels = [1.5, 1.0, 0.5, 2.0], rng.integers(0, K, graph.n_nodes)
    if kind == "intercept":
        data = GraphData.make(graph, labels=labels, weights=weights)
        return data, tied_field(data, K, node_form, edge_form)
    h, g = rng.standard_normal((graph.n_nodes, 2)), rng.standard_normal((graph.n_edges, 1))
    if kind == "sparse":
        h, g = csr_array(h * (h > 0)), csr_array(g)
    data = GraphData.make(graph, h, g, labels=labels, weights=weights)
    if kind != "types":
        return data, tied_field(data, K, node_form, edge_form)
    data = replace(data, node_types=rng.integers(0, 2, graph.n_nodes), edge_types=rng.integers(0, 3, graph.n_edges))
    return data, GraphField(np.array([K, K]), 3, 2, 3, node_form, edge_form)


def possible(kind, node_form, edge_form):
    return kind != "ragged" or (node_form != "ising" and edge_form in ("full", "reference", "minimal"))


CASES = [(kind, *forms) for kind in KINDS for forms in FORMS if possible(kind, *forms)]


def weights_for(field, seed=1, scale=1.0):
    return scale * np.random.default_rng(seed).standard_normal(field.size)
