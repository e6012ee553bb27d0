"""Decoding: a labelling of high score, by name of the method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfkit._types import Flags, Floats, Ids
from crfkit.errors import ParameterError
from crfkit.extras import how_to_install
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.inference.cuts import alpha_expansion, attractive_graphs, cuts_installed, graph_cut
from crfkit.graph.inference.defaults import EXACT_ENGINES, default_decoder, default_engine
from crfkit.graph.inference.engines import engine_class, make_engine, new_engine
from crfkit.graph.inference.icm import better, icm
from crfkit.graph.inference.marginals import Engine, Marginals
from crfkit.graph.inference.qpbo import open_part, persistent_states
from crfkit.names import unknown_name

EXACT = "the best labelling"
EXACT_METHODS = ("tree", "graph-cut", "junction", "halves")
NO_CUTS = f"; a graph cut suits this field, but PyMaxflow is not installed: {how_to_install('maxflow')}"


@dataclass(frozen=True, eq=False)
class Decoding:
    """A labelling and how good it is, for a set of graphs."""

    labels: Ids  # [n]
    score: Floats  # [G]
    method: str  # the one that was used; "auto" may use several, joined by " + "
    optimal: bool  # whether it is proved to be the best in every graph
    status: str  # in a sentence
    optimal_graphs: NDArray[np.bool_]  # [G] in which graphs it is proved to be the best
    methods: tuple[str, ...]  # [G] the method used for each graph
    marginals: Marginals | None = None  # that it was read off, where it was

    def repeat(self, times: int) -> Decoding:
        """Return the decoding of several copies of the graphs."""
        return replace(
            self,
            labels=np.tile(self.labels, times),
            score=np.tile(self.score, times),
            optimal_graphs=np.tile(self.optimal_graphs, times),
            methods=self.methods * times,
        )


def joined_decodings(parts: list[Decoding]) -> Decoding:
    """Return the decodings of several sets of graphs as one."""
    if len(parts) == 1:
        return parts[0]
    return Decoding(
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.score for part in parts]),
        " + ".join(dict.fromkeys(part.method for part in parts)),
        all(part.optimal for part in parts),
        "; ".join(dict.fromkeys(part.status for part in parts)),
        np.concatenate([part.optimal_graphs for part in parts]),
        tuple(method for part in parts for method in part.methods),
    )


Found = tuple[Ids, bool | Flags, str]  # labels, whether proved optimal (in all graphs, or [G]), status


def decode(potentials: Potentials, method: str = "auto", n_threads: int | None = None, **options: Any) -> Decoding:
    """Return a labelling of high score.

    Exact: "enumerate" (small graphs), "tree" (forests), "junction" (graphs of small treewidth), "halves" (many copies
    of a small graph, as the rows of a table), "graph-cut" (two states, attractive). "qpbo" is for two states and any
    edges: a cut proves the states of some nodes, often of all, and the others are decoded given those. Approximate:
    "alpha-expansion" (attractive, more states; `start`),
    "max-product" (any field), "icm" (any; `start`, `n_restarts`, `seed`), "marginal" (each node's most probable state,
    from `marginals` or by `engine`). "auto" takes the strongest that suits a graph: tree, graph-cut, junction, qpbo,
    alpha-expansion, otherwise the better of max-product, which ICM then climbs from, and ICM by itself. Of a set of
    graphs, those that a graph cut can decode are cut, also where others need another method; "graph-cut" decodes the
    others by "qpbo". The other methods take the options of the engine of their name. `optimal_graphs` of the result
    shows which graphs have their best labelling for certain.

    >>> from crfkit.graph.graph import Graph
    >>> field = Potentials.from_tables(Graph.grid((2, 2)), [[1.5, 0], [0, 1], [0, 1], [0, 1]], np.eye(2))
    >>> found = decode(field, "graph-cut")
    >>> found.labels.tolist(), found.score.tolist(), found.optimal
    ([1, 1, 1, 1], [7.0], True)
    """
    if method == "auto":
        if not options and len(groups := _groups(potentials)) > 1:
            return _decode_groups(potentials, groups, n_threads)
        method = default_decoder(potentials)
        if options:
            raise ParameterError(
                f"auto has no options; name the method to give {', '.join(options)} (auto: {method!r})"
            )
        labels, optimal, status = METHODS[method](potentials, n_threads)
        if method == "max-product":
            labels = better(
                potentials, icm(potentials, labels, n_threads=n_threads), icm(potentials, n_threads=n_threads)
            )
            status += ", then no single change improves it"
        status += _missing_cuts(potentials, method)
    elif method in METHODS:
        _check_options(method, options)
        labels, optimal, status = METHODS[method](potentials, n_threads, **options)
    else:
        raise unknown_name("decoder", method, ("auto", *METHODS))
    G = potentials.graph.n_graphs
    proved = np.broadcast_to(np.asarray(optimal, dtype=bool), (G,)).copy()
    found = options.get("marginals") if method == "marginal" else None
    best = bool(np.all(optimal))
    return Decoding(labels, potentials.score(labels), method, best, status, proved, (method,) * G, found)


def _groups(potentials: Potentials) -> list[Ids]:
    """Return the numbers of graphs that cuts can decode, and of the others; one group if all are alike.

    Sets that are decoded exactly as a whole are not taken apart.
    """
    graph = potentials.graph
    everything = [np.arange(graph.n_graphs, dtype=np.int32)]
    if graph.n_graphs < 2 or not cuts_installed() or default_decoder(potentials) in EXACT_METHODS:
        return everything
    cuttable = attractive_graphs(potentials)
    return [np.flatnonzero(cuttable == kind).astype(np.int32) for kind in np.unique(cuttable)[::-1]]


def _decode_groups(potentials: Potentials, groups: list[Ids], n_threads: int | None) -> Decoding:
    """Decode each group by the method that suits it, and put the results together."""
    graph = potentials.graph
    labels = np.zeros(graph.n_nodes, dtype=np.int32)
    score, proved = np.zeros(graph.n_graphs), np.zeros(graph.n_graphs, dtype=bool)
    methods = np.full(graph.n_graphs, "", dtype=object)
    said = []
    for ids in groups:
        part, nodes, edges = graph.take(ids)
        found = decode(
            potentials.part(part, nodes, edges),
            "auto",
            n_threads,
        )
        labels[nodes], score[ids], proved[ids], methods[ids] = (
            found.labels,
            found.score,
            found.optimal_graphs,
            found.method,
        )
        said.append((found.method, f"{len(ids)} graphs by {found.method}: {found.status}"))
    method = " + ".join(name for name, _ in said)
    return Decoding(
        labels, score, method, bool(proved.all()), "; ".join(s for _, s in said), proved, tuple(methods.tolist())
    )


def _missing_cuts(potentials: Potentials, method: str) -> str:
    """Return a remark for the status where a cut would be better or faster, but PyMaxflow is not installed."""
    slower = method == "max-product" or (method == "junction" and potentials.n_states == 2)
    return NO_CUTS if slower and not cuts_installed() and attractive_graphs(potentials).all() else ""


# --- the methods


def _exactly(engine: str) -> Callable[..., Found]:
    def find(potentials: Potentials, n_threads: int | None, **options: Any) -> Found:
        kind = engine_class(engine)
        threads = {"n_threads": n_threads} if "n_threads" in {item.name for item in fields(kind)} else {}
        made: Any = new_engine(engine, {**threads, **options})
        return made.decode(potentials), True, EXACT

    return find


def _max_product(potentials: Potentials, n_threads: int | None, **options: Any) -> Found:
    from crfkit.graph.inference.max_product import MaxProduct

    try:
        engine = MaxProduct(n_threads=n_threads, **options)
    except TypeError as error:
        raise ParameterError(f"decoding 'max-product': {error}") from None
    labels, converged = engine.decode(potentials)
    return labels, False, f"max-product {'at a fixed point' if converged else 'without convergence'}"


def _icm(
    potentials: Potentials, n_threads: int | None, start: ArrayLike | None = None, n_restarts: int = 0, seed: int = 0
) -> Found:
    labels = icm(potentials, start, n_restarts, seed, n_threads)
    return labels, False, "a local optimum: no change of one node improves it"


def _graph_cut(potentials: Potentials, n_threads: int | None) -> Found:
    """Decode by a cut; graphs of a set that cannot be cut are decoded by QPBO."""
    if potentials.n_states == 2 and cuts_installed():
        cuttable = attractive_graphs(potentials)
        if cuttable.any() and not cuttable.all():
            labels, proved, status = _qpbo(potentials, n_threads)
            return (
                labels,
                proved,
                f"{np.count_nonzero(~cuttable)} of {len(cuttable)} graphs have repulsive edges; {status}",
            )
    return graph_cut(potentials), True, EXACT


def _qpbo(potentials: Potentials, n_threads: int | None) -> Found:
    """Prove the states of some nodes by a cut, and decode the others given those, exactly where possible."""
    labels = persistent_states(potentials)
    n_open = np.count_nonzero(labels < 0)
    if n_open == 0:
        return labels, True, EXACT
    rest, ids = open_part(potentials, labels)
    method = default_engine(rest.graph, 2)
    if method in EXACT_ENGINES:
        labels[ids] = METHODS[method](rest, n_threads)[0]
        return labels, True, EXACT
    labels[ids], _, status = _max_product(rest, n_threads)
    labels = better(potentials, icm(potentials, labels, n_threads=n_threads), icm(potentials, n_threads=n_threads))
    proved = np.diff(rest.graph.node_offsets) == 0
    share = n_open / len(labels)
    return labels, proved, f"the best states of {1 - share:.1%} of the nodes, the others by {status} and icm"


def _alpha_expansion(potentials: Potentials, n_threads: int | None, start: ArrayLike | None = None) -> Found:
    labels = alpha_expansion(potentials, start, n_threads)
    return labels, False, "a strong local optimum: no expansion of a state improves it"


def _marginal(
    potentials: Potentials,
    n_threads: int | None,
    marginals: Marginals | None = None,
    engine: str | Engine | None = None,
) -> Found:
    if marginals is not None and engine is not None:
        raise ParameterError("decoding 'marginal' takes marginals or an engine that computes them, not both")
    if marginals is None:
        threads = {"n_threads": n_threads} if engine is None or isinstance(engine, str) else {}
        made = make_engine("auto" if engine is None else engine, potentials.graph, potentials.n_states, **threads)
        marginals = made.run(potentials)
    if marginals.nodes.shape != potentials.unary.shape:
        raise ParameterError(f"the marginals have shape {marginals.nodes.shape}, the field {potentials.unary.shape}")
    labels = np.where(potentials.allowed, marginals.nodes, -1.0).argmax(axis=1).astype(np.int32)
    return labels, False, f"the most probable state of each node; marginals {marginals.status}"


METHODS: dict[str, Callable[..., Found]] = {
    "enumerate": _exactly("enumerate"),
    "tree": _exactly("tree"),
    "junction": _exactly("junction"),
    "halves": _exactly("halves"),
    "graph-cut": _graph_cut,
    "qpbo": _qpbo,
    "alpha-expansion": _alpha_expansion,
    "max-product": _max_product,
    "icm": _icm,
    "marginal": _marginal,
}


def _check_options(method: str, options: dict[str, object]) -> None:
    """Raise ParameterError for an option that the method does not have; engines check their own."""
    known = signature(METHODS[method]).parameters
    if "options" in known:
        return
    for name in options:
        if name not in list(known)[2:]:
            has = ", ".join(list(known)[2:]) or "none"
            raise ParameterError(f"decoding {method!r} has no option {name!r}; its options: {has}")
