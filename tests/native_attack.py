"""Every binding of the core that takes arrays, and calls of it with arrays that are wrong in one entry or one length.

Run as a script, makes all these calls: a kernel that reads or writes where it should not kills this process and not the
tests. Exits with 0 if every array that is an index was refused. Build with sanitizers to see more.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from crfkit import _core

REFUSALS = (ValueError, IndexError, TypeError, MemoryError, OverflowError, RuntimeError)  # RuntimeError: no threads


NUMBERS = [-1, 0, 3, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63), 2**64]


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def ids(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def flags(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint8)


@dataclass(frozen=True)
class Target:
    """A call; extremes in `index` and other lengths of `sized` must be refused, anything else must not be a fault."""

    call: Callable[..., Any]
    arguments: dict[str, Any]
    index: tuple[str, ...] = ()
    sized: tuple[str, ...] = ()


DATA: dict[str, Any] = {  # two sequences, three positions
    "starts": ints(0, 2, 3),
    "offsets": ints(0, 1, 2, 4),
    "attributes": ids(0, 1, 0, 1),
    "values": np.ones(4),
    "pair_offsets": ints(0, 0, 1, 2),
    "pair_attributes": ids(0, 0),
    "labels": ids(0, 1, 0),
    "weights": np.ones(2),
    "targets": None,
    "token_weights": None,
}
DENSE: dict[str, Any] = {  # two sequences of three positions, two labels
    "u": np.ones((2, 3, 2)),
    "time_first": False,
    "start": np.ones(2),
    "transitions": np.ones((2, 2)),
    "end": np.ones(2),
    "lengths": ints(3, 3),
    "n_threads": 1,
}
FIELD: dict[str, Any] = {
    "n_labels": 2,
    "n_attributes": 2,
    "n_pair_attributes": 1,
    "state_offsets": ints(0, 2, 3),
    "state_labels": ids(0, 1, 1),
    "transition_codes": ids(0, 1, 3),
    "n_transition": 3,
    "pair_offsets": ints(0, 3),
    "pair_codes": ids(0, 2, 3),
    "order": 2,
    "triple_codes": ids(0, 3, 5, 7),
    "n_triple": 4,
    "allowed": flags(1, 1, 1, 1),
    "allowed_start": flags(1, 1),
    "allowed_end": flags(1, 1),
    "label_classes": ids(0, 1),
    "n_classes": 2,
    "class_offsets": ints(0, 1, 3),
    "class_codes": ids(1, 0, 1),
}
INDEX_OF_DATA = ("starts", "offsets", "attributes", "pair_offsets", "pair_attributes", "labels")
INDEX_OF_FIELD = tuple(name for name, value in FIELD.items() if getattr(value, "dtype", None) in (np.int32, np.int64))
SIZED_OF_FIELD = tuple(name for name, value in FIELD.items() if isinstance(value, np.ndarray))


def _use(data: _core.Sequences, field: _core.Field) -> None:
    """All that chains can be asked."""
    w = np.linspace(-1.0, 1.0, field.size)
    if field.size > 10**6:
        return
    decoder = _core.Decoder(field, w)
    decoder.marginals(data, 2, True, True)
    decoder.viterbi(data, 2)
    decoder.nbest(data, 1, 3)
    decoder.entropies(data, 1)
    decoder.sample(data, 1, 2, 7)
    objective = _core.Objective(data, field, 2)
    objective.value_gradient(w, np.zeros(field.size), True)
    objective.hessian_product(w, np.zeros(field.size))
    objective.hessian_diagonal(w, np.zeros(field.size))
    online = _core.Online(data, field)
    online.start(w)
    online.sgd(ints(1, 0), np.ones(2), 0.1, 0.1, True)
    online.perceptron(ints(1, 0))


def _sequences(**arguments: Any) -> None:
    _use(_core.Sequences(**arguments), _core.Field(**FIELD))


def _weak(targets: Any, token_weights: Any) -> None:
    data = _core.Sequences(**{**DATA, "labels": None, "targets": targets, "token_weights": token_weights})
    chain = _core.Field(**FIELD)
    _core.Decoder(chain, np.zeros(chain.size)).viterbi(data, 1)
    _core.Objective(data, chain, 1).value_gradient(np.zeros(chain.size), np.zeros(chain.size))


def _field(**arguments: Any) -> None:
    _use(_core.Sequences(**DATA), _core.Field(**arguments))


def _first_order(**arguments: Any) -> None:
    given = {**FIELD, "order": 1, "triple_codes": None, "n_triple": 0, **arguments}
    _use(_core.Sequences(**DATA), _core.Field(**given))


def _decode(name: str) -> Callable[..., Any]:
    chain = _core.Field(**FIELD)
    decoder = _core.Decoder(chain, np.linspace(-1.0, 1.0, chain.size))
    return lambda **arguments: getattr(decoder, name)(_core.Sequences(**DATA), **arguments)


def _online(name: str) -> Callable[..., Any]:
    def call(**arguments: Any) -> None:
        chain = _core.Field(**FIELD)
        online = _core.Online(_core.Sequences(**DATA), chain)
        online.start(np.zeros(chain.size))
        getattr(online, name)(**arguments)

    return call


def _vectors(w: Any, gradient: Any, cost: Any) -> None:
    objective = _core.Objective(_core.Sequences(**DATA), _core.Field(**FIELD), 1, cost=cost)
    objective.value_gradient(w, gradient)
    objective.hessian_product(w, gradient)


def _before(v: Any, product: Any) -> None:
    _core.Objective(_core.Sequences(**DATA), _core.Field(**FIELD), 1).hessian_product(v, product)


def _inverted(offsets: Any, positions: Any, values: Any, n_positions: int) -> Any:
    index = _core.Inverted(offsets, positions, values, n_positions)
    index.gather(ints(1, 0))
    index.add_gradients(None, None, 0, 2, np.ones((2, 2)), 1, np.zeros(4), 2)
    return index


def _gradients(**arguments: Any) -> None:
    _core.Inverted(ints(0, 2, 4), ids(0, 2, 1, 2), None, 3).add_gradients(**arguments)


N, E, K = 4, 4, 2
EDGES = np.array([(0, 1), (1, 2), (2, 3), (3, 0)], dtype=np.int32)
GRAPH: dict[str, Any] = {
    "n_nodes": 7,
    "edges": np.concatenate([EDGES, EDGES[:2] + 4]).astype(np.int32),
    "node_offsets": ints(0, 4, 7),
    "edge_offsets": ints(0, 4, 6),
}
UNARY, COEFFICIENTS = np.linspace(0.0, 1.0, 14).reshape(7, 2), np.linspace(0.0, 1.0, 24).reshape(6, 4)
UNIT, TABLES = np.eye(4).reshape(4, 2, 2), np.linspace(-1.0, 1.0, 24).reshape(6, 2, 2)


def _graph(**arguments: Any) -> None:
    graph = _core.Graph(**arguments)
    graph.colours()
    n, e = graph.n_nodes, graph.n_edges
    unary, coefficients, tables = UNARY[:n].copy(), COEFFICIENTS[:e].copy(), TABLES[:e].copy()
    blocks = _core.Blocks(graph)
    for engine in (_core.SumProduct, _core.MeanField):
        engine(graph, blocks, unary, coefficients, UNIT, "generic", 2).log_z(2)
    messages = _core.Reweighted(graph, blocks, unary, coefficients, UNIT, None, "generic", 1)
    messages.run(3, 1e-9, 0.0, False, 2)
    messages.edges(1)
    _core.LogMessages(graph, unary, coefficients, UNIT, None, True).run(3, 1e-9, 0.0, "residual", 1)
    plan = _core.JunctionPlan(_core.Elimination(graph, 2, 20, 10**6), 2)
    plan.marginals(unary, tables, 2)
    plan.sample(unary, tables, 2, 1, 2)
    plan.pair_marginals(unary, tables, np.array([(0, 2), (4, 6)], dtype=np.int32), 1)
    trees = _core.TreePlan(graph)
    if trees.cyclic < 0:
        trees.marginals(unary, tables, 2)
    labels = np.zeros((n, 3), dtype=np.int32)
    gibbs = _core.GibbsPlan(graph)
    _core.gibbs_start(gibbs, unary, labels, 1, 2, 2)
    _core.gibbs_marginals(gibbs, unary, tables, labels, 0, 4, 2, True, 1, 2, 2)
    _core.gibbs_annealed(gibbs, unary, tables, 2, 3, True, 1, 2, 2)
    y, weights = np.zeros(n, dtype=np.int32), np.ones(n)
    _core.pseudo_value(graph, unary, coefficients, UNIT, y, weights, 2)
    _core.composite_value(graph, unary, coefficients, UNIT, y, weights, 2)
    _core.iterate_modes(graph, unary, tables, None, y, 2)


def _engines(unary: Any, coefficients: Any, basis: Any, rho: Any, n_threads: int, iterations: int) -> None:
    graph = _core.Graph(**GRAPH)
    blocks = _core.Blocks(graph)
    made: list[Any] = [_core.LogMessages(graph, unary, coefficients, basis, rho, False)]
    made.append(_core.Reweighted(graph, blocks, unary, coefficients, basis, rho, "generic", n_threads))
    made.append(_core.SumProduct(graph, blocks, unary, coefficients, basis, "generic", n_threads))
    made[0].run(iterations, 1e-9, 0.0, "flooding", n_threads)
    for engine in made[1:]:
        engine.run(iterations, 1e-9, 0.0, False, n_threads)
        engine.edges(n_threads)
    field = _core.MeanField(graph, blocks, unary, coefficients, basis, "generic", n_threads)
    field.run(iterations, 1e-9, 0.0, n_threads)


def _other_blocks() -> None:
    """Blocks of another graph, which would be read as if they were of this one."""
    graph, other = _core.Graph(**GRAPH), _core.Graph(2, EDGES[:1].copy(), ints(0, 2), ints(0, 1))
    for engine in (_core.SumProduct, _core.MeanField):
        _refused(engine, graph, _core.Blocks(other), UNARY, COEFFICIENTS, UNIT, "generic", 1)
    _refused(_core.Reweighted, graph, _core.Blocks(other), UNARY, COEFFICIENTS, UNIT, None, "generic", 1)


def _refused(call: Callable[..., Any], *arguments: Any) -> None:
    try:
        call(*arguments)
    except ValueError:
        return
    raise AssertionError(f"{call} accepted {arguments}")


def _on_graph(call: Callable[..., Any], make: Callable[..., Any] = lambda graph: graph) -> Callable[..., Any]:
    graph = _core.Graph(**GRAPH)
    plan = make(graph)
    return lambda **arguments: call(plan, **arguments)


def _junction(graph: _core.Graph) -> Any:
    return _core.JunctionPlan(_core.Elimination(graph, 2, 20, 10**6), 2)


def _linf(members: Any, offsets: Any, w: Any, alpha: Any) -> None:
    groups = _core.GroupMembers(members, offsets)
    _core.norms_linf(w, groups)
    _core.project_epigraph_linf(w, alpha, groups)
    _core.least_subgradient_linf(w, w, 1.0, groups)


SIZE = _core.Field(**FIELD).size
LABELLED = {"labels": ids(0, 1, 0, 1, 0, 1, 0), "weights": np.ones(7), "n_threads": 1}
COUNTED = {
    "offsets": ints(0, 1, 2, 4),
    "ids": ids(0, 1, 0, 1),
    "labels": ids(0, 1, 0),
    "n_ids": 2,
    "n_labels": 2,
}
SWEPT = {"labels": np.zeros((7, 2), np.int32), "block": True, "seed": 1, "stream": 1, "n_threads": 1}
PHRASES = {"goes_on": flags(0, 1, 0, 1), "types": ids(0, 0)}

SINGLE = np.ones((4, 3), np.float32)
TARGETS: dict[str, Target] = {
    "Sequences": Target(_sequences, DATA, INDEX_OF_DATA, tuple(name for name in DATA if DATA[name] is not None)),
    "targets": Target(
        _weak, {"targets": flags(1, 0, 1, 1, 0, 1), "token_weights": np.ones(3)}, (), ("targets", "token_weights")
    ),
    "Field": Target(_field, FIELD, INDEX_OF_FIELD, SIZED_OF_FIELD),
    "Field of order 1": Target(
        _first_order, {name: FIELD[name] for name in ("state_offsets", "transition_codes")}, INDEX_OF_FIELD[:2]
    ),
    "Objective": Target(
        _vectors,
        {"w": np.zeros(SIZE), "gradient": np.zeros(SIZE), "cost": np.ones(4)},
        (),
        ("w", "gradient", "cost"),
    ),
    "Decoder.viterbi": Target(_decode("viterbi"), {"n_threads": 1, "allowed": flags(*[1] * 6)}, (), ("allowed",)),
    "Decoder.nbest": Target(
        _decode("nbest"),
        {"n_threads": 1, "most": 2, "groups": ids(-1, 0), "goes_on": flags(0, 1, 0, 1), "limit": 9},
        ("groups",),
        ("groups", "goes_on"),
    ),
    "Decoder.best_spans": Target(_decode("best_spans"), {"n_threads": 1, **PHRASES}, (), ("goes_on", "types")),
    "Decoder.span_probabilities": Target(
        _decode("span_probabilities"),
        {
            "n_threads": 1,
            **PHRASES,
            "offsets": ints(0, 1, 2),
            "begins": ints(0, 0),
            "ends": ints(2, 1),
            "kinds": ids(0, 0),
        },
        ("offsets", "begins", "ends"),
        ("goes_on", "types", "offsets", "begins", "ends", "kinds"),
    ),
    "Decoder.sample": Target(_decode("sample"), {"n_threads": 1, "count": 2, "seed": 1}),
    "dense_beliefs": Target(
        _core.dense_beliefs,
        {
            **DENSE,
            "log_z": np.empty(2),
            "node": np.empty(12),
            "edge": np.empty(8),
            "labels": ints(0, 1, 0, 1, 0, 0).reshape(2, 3),
        },
        ("lengths", "labels"),
        ("start", "transitions", "end", "lengths", "log_z", "node", "edge", "labels"),
    ),
    "dense_viterbi": Target(
        _core.dense_viterbi,
        {**DENSE, "labels": np.empty(6, dtype=np.int32), "scores": np.empty(2)},
        ("lengths",),
        ("start", "transitions", "end", "lengths", "labels", "scores"),
    ),
    "dense_covariances": Target(
        _core.dense_covariances,
        {
            **DENSE,
            "d_u": np.ones((2, 3, 2)),
            "d_transitions": np.ones((2, 2, 2)),
            "node": np.empty(12),
            "edge": np.empty(8),
        },
        ("lengths",),
        ("start", "transitions", "end", "lengths", "d_u", "d_transitions", "node", "edge"),
    ),
    "Online.sgd": Target(
        _online("sgd"),
        {"order": ints(0, 1), "steps": np.ones(2), "l2": 0.1, "l1": 0.1, "averaged": True},
        ("order",),
        ("steps",),
    ),
    "Online.perceptron": Target(_online("perceptron"), {"order": ints(0, 1)}, ("order",)),
    "Online.mira": Target(_online("mira"), {"order": ints(0, 1), "c": 1.0}, ("order",)),
    "Online.arow": Target(_online("arow"), {"order": ints(0, 1), "variance": 1.0, "gamma": 1.0}, ("order",)),
    "Online.weights": Target(_online("weights"), {"w": np.zeros(SIZE)}, (), ("w",)),
    "count_attributes": Target(
        _core.count_attributes, COUNTED, ("offsets", "ids", "labels"), ("offsets", "ids", "labels")
    ),
    "observed_pairs": Target(
        _core.observed_pairs, {**COUNTED, "pairs": True}, ("offsets", "ids", "labels"), ("offsets", "ids", "labels")
    ),
    "renumber": Target(
        _core.renumber,
        {"offsets": ints(0, 1, 2, 4), "ids": ids(0, 1, 0, 1), "values": np.ones(4), "rank": ids(1, -1)},
        ("offsets", "ids"),
        ("ids", "values"),
    ),
    "transpose": Target(
        _core.transpose,
        {"offsets": ints(0, 1, 2, 4), "ids": ids(0, 1, 0, 1), "values": np.ones(4), "n_ids": 2},
        ("offsets", "ids"),
        ("ids", "values"),
    ),
    "Inverted": Target(
        _inverted,
        {"offsets": ints(0, 2, 4), "positions": ids(0, 2, 1, 2), "values": np.ones(4), "n_positions": 3},
        ("offsets", "positions"),
        ("positions", "values"),
    ),
    "Inverted.add_gradients": Target(
        _gradients,
        {
            "offsets": ints(0, 1, 3),
            "codes": ids(1, 0, 1),
            "first": 0,
            "last": 2,
            "residual": np.ones((2, 2)),
            "t0": 1,
            "out": np.zeros(3),
            "n_threads": 1,
        },
        ("offsets", "codes"),
        ("offsets", "out"),
    ),
    "decode_weights": Target(
        _core.decode_weights,
        {"codes": np.full(70, 130, np.uint8), "steps": np.ones(2)},
        (),
        ("steps",),
    ),
    "name_labels": Target(
        lambda ids, starts: _core.name_labels(["a", "b"], ids, starts),
        {"ids": ids(0, 1, 0), "starts": ints(0, 2, 3)},
        ("ids", "starts"),
    ),
    "Graph": Target(_graph, GRAPH, ("edges", "node_offsets", "edge_offsets"), ("node_offsets", "edge_offsets")),
    "engines": Target(
        _engines,
        {
            "unary": UNARY,
            "coefficients": COEFFICIENTS,
            "basis": UNIT,
            "rho": np.ones(6),
            "n_threads": 1,
            "iterations": 3,
        },
        (),
        ("unary", "coefficients", "rho"),  # no tables at all stand for unit tables
    ),
    "pair_marginals": Target(
        _on_graph(_core.JunctionPlan.pair_marginals, _junction),
        {"unary": UNARY, "tables": TABLES, "pairs": np.array([(0, 2), (4, 6)], np.int32), "n_threads": 1},
        ("pairs",),
        ("unary", "tables"),
    ),
    "JunctionPlan": Target(
        lambda n_states: _core.JunctionPlan(_core.Elimination(_core.Graph(**GRAPH), 2, 20, 10**6), n_states),
        {"n_states": 2},
    ),
    "gibbs_start": Target(
        _on_graph(_core.gibbs_start, _core.GibbsPlan),
        {"unary": UNARY, "labels": SWEPT["labels"], "seed": 1, "stream": 1, "n_threads": 1},
        (),
        ("unary", "labels"),
    ),
    "gibbs_sweeps": Target(
        _on_graph(_core.gibbs_sweeps, _core.GibbsPlan),
        {"unary": UNARY, "tables": TABLES, "first": 1, "n_sweeps": 2, **SWEPT},
        ("labels",),
        ("unary", "tables", "labels"),
    ),
    "gibbs_marginals": Target(
        _on_graph(_core.gibbs_marginals, _core.GibbsPlan),
        {"unary": UNARY, "tables": TABLES, "first": 1, "n_sweeps": 2, "thin": 1, **SWEPT},
        ("labels",),
        ("unary", "tables", "labels"),
    ),
    "pseudo_value": Target(
        _on_graph(_core.pseudo_value),
        {"unary": UNARY, "coefficients": COEFFICIENTS, "basis": UNIT, **LABELLED},
        ("labels",),
        ("unary", "coefficients", "labels", "weights"),
    ),
    "pseudo_tangent": Target(
        _on_graph(_core.pseudo_tangent),
        {"unary": UNARY, "coefficients": COEFFICIENTS, "basis": UNIT, "p": UNARY, **LABELLED},
        ("labels",),
        ("p", "labels"),
    ),
    "pseudo_variances": Target(
        _on_graph(_core.pseudo_variances), {"basis": UNIT, "p": UNARY, **LABELLED}, ("labels",), ("p", "labels")
    ),
    "composite_value": Target(
        _on_graph(_core.composite_value),
        {"unary": UNARY, "coefficients": COEFFICIENTS, "basis": UNIT, **LABELLED},
        ("labels",),
        ("unary", "coefficients", "labels", "weights"),
    ),
    "spanning_forest": Target(
        _on_graph(_core.Graph.spanning_forest),
        {"costs": np.linspace(0.0, 1.0, 6)},
        (),
        ("costs",),
    ),
    "iterate_modes": Target(
        _on_graph(_core.iterate_modes),
        {"unary": UNARY, "tables": TABLES, "scales": None, "start": LABELLED["labels"], "n_threads": 1},
        ("start",),
        ("unary", "tables", "start"),
    ),
    "PseudoTable": Target(
        lambda **given: _core.PseudoTable(**given).value(np.zeros(_core.PseudoTable(**given).size), 1),
        {
            "states": ids(2, 2),
            "labels": np.array([(0, 1), (1, 0), (1, 1)], np.int32),
            "weights": np.ones(3),
            "bank": np.ones((2, 3)),
            "node_columns": np.array([(0, 1), (0, 1)], np.int32),
            "node_basis": np.eye(2),
            "node_active": np.ones((2, 2), bool),
            "edges": np.array([(0, 1)], np.int32),
            "edge_columns": np.array([(0, 1)], np.int32),
            "edge_basis": UNIT,
            "edge_active": np.ones((1, 4), bool),
        },
        ("states", "labels", "node_columns", "edges", "edge_columns"),
        ("states", "labels", "weights", "node_columns", "node_active", "edges", "edge_columns", "edge_active"),
    ),
    "GroupMembers": Target(
        _linf,
        {"members": ints(0, 2, 1), "offsets": ints(0, 2, 3), "w": np.ones(3), "alpha": np.ones(2)},
        ("members", "offsets"),
        ("members", "alpha"),
    ),
    "rows_dot": Target(
        _core.rows_dot,
        {"rows": np.ones((2, 3)), "x": np.ones(3), "scale": np.ones(3), "n_threads": 1},
        (),
        ("x", "scale"),
    ),
    "rows_combine": Target(
        _core.rows_combine,
        {"c": np.ones(2), "rows": np.ones((2, 3)), "a": 1.0, "x": np.ones(3), "scale": np.ones(3), "out": np.ones(3)}
        | {"measure": True, "n_threads": 1},
        (),
        ("c", "x", "scale", "out"),
    ),
    "rows_direction": Target(
        _core.rows_direction,
        {"c": np.ones(2), "rows": SINGLE[:2], "a": 1.0, "x": np.ones(3), "scale": np.ones(3), "row": SINGLE[0].copy()}
        | {"n_threads": 1},
        (),
        ("c", "x", "scale", "row"),
    ),
    "advance": Target(
        _core.advance,
        {"x": np.ones(3), "a": 1.0, "row": SINGLE[0], "scale": np.ones(3), "n_threads": 1},
        (),
        ("x", "row", "scale"),
    ),
    "row_dot": Target(
        _core.row_dot,
        {"row": SINGLE[0], "scale": np.ones(3), "x": np.ones(3), "n_threads": 1},
        (),
        ("row", "scale", "x"),
    ),
    "add_step": Target(
        _core.add_step,
        {"rows": SINGLE.copy(), "s": 0, "y": 2, "a": 1.0, "row": SINGLE[0], "g": np.ones(3), "g_new": np.ones(3)}
        | {"scale": np.ones(3), "n_threads": 1},
        (),
        ("row", "g", "g_new", "scale"),
    ),
    "add_and_measure": Target(
        _core.add_and_measure, {"y": np.ones(3), "a": 1.0, "x": np.ones(3), "n_threads": 1}, (), ("x", "y")
    ),
    "curvature_pair": Target(
        _core.curvature_pair,
        {name: np.ones(3) for name in ("x", "g", "x_new", "g_new", "scale", "s", "y")} | {"n_threads": 1},
        (),
        ("x", "g", "x_new", "g_new", "scale", "s", "y"),
    ),
    "moving_weights": Target(
        _core.moving_weights, {"w": np.ones(3), "g": np.ones(3), "strength": 1.0, "n_threads": 1}, (), ("w", "g")
    ),
    "move_columns": Target(
        _core.move_columns,
        {"rows": np.ones((2, 3)), "from_": ints(0, 2, 4), "to": ints(0, 2), "out": np.ones((2, 2))},
        (),
        ("from_", "to"),
    ),
    "two_loop": Target(
        _core.two_loop,
        {
            "g": np.ones(3),
            "s": np.ones((2, 3)),
            "y": np.ones((2, 3)),
            "diagonal": np.ones(3),
            "places": np.array([0, 2]),
            "excess": np.ones((2, 2)),
        },
        ("places",),
        ("g", "diagonal"),
    ),
    "secant_products": Target(
        _core.secant_products, {name: np.ones(3) for name in ("x", "g", "x_new", "g_new")}, (), ("x", "g_new")
    ),
}


def extremes(array: np.ndarray) -> list[int]:
    """Numbers that are never an id, an offset or a code; with these beside each other, differences wrap around."""
    limits = np.iinfo(array.dtype)
    return [limits.max, limits.min, limits.max - 1, limits.min + 1, -2, 1 << 20]


def wrong_entries(array: np.ndarray) -> Iterator[np.ndarray]:
    """Arrays of the same shape, of which each has an entry that is never valid."""
    for value in extremes(array):
        for place in range(array.size):
            changed = array.copy()
            changed.flat[place] = value
            yield changed
    limits = np.iinfo(array.dtype)
    pattern = np.array([0, limits.max, limits.min, -1], dtype=array.dtype)  # each differs from the last by > 0, wrapped
    if array.size >= 3:
        changed = array.copy()
        changed.flat[:4] = pattern[: min(array.size, 4)]
        yield changed


def other_sizes(array: np.ndarray, axes: range) -> Iterator[np.ndarray]:
    """Arrays with fewer and with more rows, or columns."""
    for axis in axes:
        yield np.ascontiguousarray(np.delete(array, -1, axis=axis))
        yield np.ascontiguousarray(np.concatenate([array, np.take(array, [-1], axis=axis)], axis=axis))
    if 0 in axes:
        yield array[:0].copy()


def attack(name: str) -> list[str]:
    """Return what was accepted and should not have been."""
    target = TARGETS[name]
    accepted = []

    def attempt(argument: str, value: Any) -> bool:
        given = {key: item.copy() if isinstance(item, np.ndarray) else item for key, item in target.arguments.items()}
        try:
            target.call(**{**given, argument: value})
        except REFUSALS:
            return False
        return True

    try:
        target.call(**{key: np.copy(v) if isinstance(v, np.ndarray) else v for key, v in target.arguments.items()})
    except REFUSALS as error:
        return [f"{name}: the call itself fails: {error}"]
    for argument, value in target.arguments.items():
        if isinstance(value, np.ndarray):
            if value.dtype.kind == "i":
                passed = [changed for changed in wrong_entries(value) if attempt(argument, changed)]
                if argument in target.index:
                    accepted += [f"{name}: {argument} = {changed.tolist()}" for changed in passed]
            elif value.dtype.kind == "f":
                for number in (np.nan, np.inf, -np.inf):
                    attempt(argument, np.full_like(value, number))
            passed = [changed for changed in other_sizes(value, range(1)) if attempt(argument, changed)]
            for changed in other_sizes(value, range(1, value.ndim)):
                attempt(argument, changed)
            if argument in target.sized:
                accepted += [f"{name}: {argument} of shape {changed.shape}" for changed in passed]
            attempt(argument, misaligned(value))
        elif isinstance(value, int) and not isinstance(value, bool) and argument not in ("iterations",):
            for number in NUMBERS:
                if argument in ("n_sweeps", "most", "count", "seed", "stream") and number > 3:
                    continue  # valid, and it takes long
                attempt(argument, number)
    return accepted


def limit_memory() -> None:
    """Let sizes that are valid and too large for a test end in a MemoryError."""
    if "ASAN_OPTIONS" in os.environ:  # which takes terabytes of addresses
        NUMBERS.remove(2**31 - 1)
    elif sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


def misaligned(array: np.ndarray) -> np.ndarray:
    """The same numbers where no number of this type should begin."""
    memory = np.zeros(array.nbytes + 1, dtype=np.uint8)[1:]
    result = memory.view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


def main() -> int:
    limit_memory()
    accepted = [line for name in TARGETS for line in attack(name)]
    _refused(_before, np.zeros(SIZE), np.zeros(SIZE))
    _other_blocks()
    print("\n".join(accepted))
    return len(accepted)


if __name__ == "__main__":
    sys.exit(min(main(), 99))
