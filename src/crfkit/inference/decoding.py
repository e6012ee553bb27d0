"""Decoding: a labelling of high score, by name of the method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit.data.sequences import Floats, Ids
from crfkit.errors import ParameterError
from crfkit.fields.potentials import Potentials
from crfkit.inference.cuts import alpha_expansion, cuts_installed, graph_cut, is_attractive
from crfkit.inference.engines import make_engine
from crfkit.inference.icm import better, icm
from crfkit.inference.marginals import Engine, Marginals

EXACT = "the best labelling"
NO_CUTS = "; a graph cut suits this field, but PyMaxflow is not installed: pip install 'crfkit[cuts]'"


@dataclass(frozen=True, eq=False)
class Decoding:
    """A labelling and how good it is."""

    labels: Ids  # [n]
    score: Floats  # [G]
    method: str  # the one that was used
    optimal: bool  # whether it is proved to be the best
    status: str  # in a sentence
    marginals: Marginals | None = None  # that it was read off, where it was


Found = tuple[Ids, bool, str]  # labels, whether proved optimal, status


def decode(potentials: Potentials, method: str = "auto", n_threads: int | None = None, **options: Any) -> Decoding:
    """A labelling of high score.

    Exact: "enumerate" (small graphs), "tree" (forests), "junction" (graphs of small treewidth), "graph-cut" (two
    states, attractive). Approximate: "alpha-expansion" (attractive, more states; `start`), "max-product" (any field),
    "icm" (any; `start`, `n_restarts`, `seed`), "marginal" (each node's most probable state, from `marginals` or by
    `engine`). "auto" takes the strongest that suits all graphs of a set at once: tree, graph-cut, junction,
    alpha-expansion, else the better of max-product, which ICM then climbs from, and ICM by itself. The other methods
    take the options of the engine of their name.

    >>> from crfkit.data.graph import Graph
    >>> field = Potentials.from_tables(Graph.grid((2, 2)), [[1.5, 0], [0, 1], [0, 1], [0, 1]], np.eye(2))
    >>> found = decode(field, "graph-cut")
    >>> found.labels.tolist(), found.score.tolist(), found.optimal
    ([1, 1, 1, 1], [7.0], True)
    """
    if method == "auto":
        method, note = _choose(potentials)
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
        status += note
    elif method in METHODS:
        _check_options(method, options)
        labels, optimal, status = METHODS[method](potentials, n_threads, **options)
        if method == "marginal":
            found = options.get("marginals")
            return Decoding(labels, potentials.score(labels), method, optimal, status, found)
    else:
        raise ParameterError(f"unknown decoding {method!r}; one of auto, {', '.join(METHODS)}")
    return Decoding(labels, potentials.score(labels), method, optimal, status)


def _choose(potentials: Potentials) -> tuple[str, str]:
    """(the strongest method for all graphs, a remark for its status)."""
    graph, K = potentials.graph, potentials.n_states
    if graph.is_forest:
        return "tree", ""
    attractive, cuts = is_attractive(potentials), cuts_installed()
    note = NO_CUTS if attractive and not cuts else ""
    if attractive and cuts and K == 2:
        return "graph-cut", ""
    from crfkit.inference.junction import Junction

    if Junction().fits(graph, K):
        return "junction", note if K == 2 else ""
    return ("alpha-expansion", "") if attractive and cuts else ("max-product", note)


# --- the methods


def _exactly(engine: str) -> Callable[..., Found]:
    def find(potentials: Potentials, n_threads: int | None, **options: Any) -> Found:
        made: Any = make_engine(engine, n_threads=n_threads, **options)
        return made.decode(potentials), True, EXACT

    return find


def _max_product(potentials: Potentials, n_threads: int | None, **options: Any) -> Found:
    from crfkit.inference.max_product import MaxProduct

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
    return graph_cut(potentials), True, EXACT


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
    "graph-cut": _graph_cut,
    "alpha-expansion": _alpha_expansion,
    "max-product": _max_product,
    "icm": _icm,
    "marginal": _marginal,
}


def _check_options(method: str, options: dict[str, Any]) -> None:
    """Raises for an option the method does not have; engines check their own."""
    known = signature(METHODS[method]).parameters
    if "options" in known:
        return
    for name in options:
        if name not in list(known)[2:]:
            has = ", ".join(list(known)[2:]) or "none"
            raise ParameterError(f"decoding {method!r} has no option {name!r}; its options: {has}")
