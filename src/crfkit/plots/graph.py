"""Draw a learnt graph: the width of an edge shows the size of its weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crfkit._types import Axes, Floats, Ints, Label, Record
from crfkit.errors import ParameterError
from crfkit.extras import load
from crfkit.names import unknown_name

LAYOUTS = ("spring", "circular")
COLOURS = {"positive": "C0", "negative": "C3", "without a sign": "0.45"}


def plot_graph(
    edges: Sequence[tuple[Label, Label, float] | Record],
    nodes: Sequence[Label] | None = None,
    layout: str | Mapping[Label, tuple[float, float]] = "spring",
    labels: bool | None = None,
    ax: Axes = None,
) -> Axes:
    """Draw edges. The width shows the size of the weight; positive is blue, negative is red, without a sign grey.

    Parameters
    ----------
    edges : (node, node, weight), as ``StructureLearner.edges_``; or ``StructureLearner.edge_records_``, which also mark
        weights without a sign (columns with more than two labels)
    nodes : all nodes, in order; None for the nodes of edges. Nodes without edges are drawn small and grey.
    layout : "spring" (neighbours near each other), "circular", or positions {node: (x, y)}, such as pixels of a grid
    labels : whether to write names; None for names if there are at most 100 nodes
    ax : axes to draw on; None for a new figure. The axes are returned.
    """
    plt = load("matplotlib.pyplot", "plots need")
    line_collection = load("matplotlib.collections", "plots need").LineCollection
    line = load("matplotlib.lines", "plots need").Line2D
    stroke = load("matplotlib.patheffects", "plots need").withStroke
    drawn = [_triple(edge) for edge in edges]
    names = list(nodes) if nodes is not None else list(dict.fromkeys(end for edge in drawn for end in edge[:2]))
    index = {name: k for k, name in enumerate(names)}
    if missing := [end for edge in drawn for end in edge[:2] if end not in index]:
        raise ParameterError(f"an edge ends at {missing[0]!r}, which is not one of the nodes")
    ends = np.array([(index[a], index[b]) for a, b, _ in drawn], dtype=np.int64).reshape(-1, 2)
    weights = np.array([weight for _, _, weight in drawn], dtype=np.float64)
    signs = [_sign(edge, weight) for edge, weight in zip(edges, weights, strict=True)]
    places = _places(names, ends, np.abs(weights), layout)
    if ax is None:
        size = float(np.clip(2.2 * np.sqrt(max(len(names), 1)) ** 0.8, 4, 14))
        _, ax = plt.subplots(figsize=(size, size), layout="constrained")
    top = np.abs(weights).max(initial=0.0) or 1.0
    order = np.argsort(np.abs(weights))  # the strongest on top
    share = np.abs(weights[order]) / top
    colours = [COLOURS[signs[k]] for k in order]
    lines = line_collection(
        [places[pair] for pair in ends[order]],
        linewidths=(0.4 + 4.6 * share).tolist(),
        colors=colours,
        alpha=(0.35 + 0.55 * share).tolist() if len(share) else None,
        zorder=1,
    )
    ax.add_collection(lines)
    joined = np.isin(np.arange(len(names)), ends)
    many = len(names) > 100
    for on, colour, area in ((joined, "black", 8 if many else 30), (~joined, "0.75", 4 if many else 15)):
        ax.scatter(*places[on].T, s=area, color=colour, zorder=2)
    if labels if labels is not None else not many:
        for name, (x, y) in zip(names, places, strict=True):
            text = ax.annotate(str(name), (x, y), xytext=(4, 4), textcoords="offset points", fontsize=9, zorder=3)
            text.set_path_effects([stroke(linewidth=2.5, foreground="white", alpha=0.8)])  # readable on edges
    kinds = [sign for sign in COLOURS if sign in signs]
    if len(kinds) > 1:
        handles = [line([], [], color=COLOURS[sign], linewidth=3, label=sign) for sign in kinds]
        ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=len(kinds), frameon=False)
    ax.set_title(f"{len(names)} variables, {len(edges)} edges")
    ax.margins(0.08)
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax


def _triple(edge: tuple[Label, Label, float] | Record) -> tuple[Label, Label, float]:
    return (edge["first"], edge["second"], edge["weight"]) if isinstance(edge, Mapping) else edge


def _sign(edge: object, weight: float) -> str:
    """Return the name of the colour of an edge."""
    if isinstance(edge, Mapping) and edge["kind"] != "coupling":
        return "without a sign"
    return "positive" if weight > 0 else "negative"


def _places(
    names: Sequence[Label], ends: Ints, sizes: Floats, layout: str | Mapping[Label, tuple[float, float]]
) -> Floats:
    """Return the positions [nodes, 2] of the nodes."""
    if isinstance(layout, Mapping):
        if missing := [name for name in names if name not in layout]:
            raise ParameterError(f"the layout has no position for the node {missing[0]!r}")
        return np.array([layout[name] for name in names], dtype=np.float64).reshape(-1, 2)
    if layout not in LAYOUTS:
        raise ParameterError(f"{unknown_name('layout', layout, LAYOUTS)}, or positions {{node: (x, y)}}")
    angle = 2 * np.pi * np.arange(len(names)) / max(1, len(names))
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return circle if layout == "circular" or not len(ends) else _spring(circle, ends, sizes)


def _spring(start: Floats, ends: Ints, sizes: Floats, iterations: int = 200) -> Floats:
    """Return the layout of Fruchterman & Reingold (1991): nodes repel by k²/d, edges attract by d²/k, steps shrink.

    A pull to the middle keeps parts together that no edge joins.
    """
    places, n = start.copy(), len(start)
    k = 1.0 / np.sqrt(n)
    pull = 0.3 + 0.7 * sizes / (sizes.max(initial=0.0) or 1.0)
    for step in range(iterations):
        apart = places[:, None] - places[None]  # [n, n, 2]
        square = np.maximum(np.square(apart).sum(axis=2), 1e-8)
        force = (apart * (k * k / square)[:, :, None]).sum(axis=1)
        along = places[ends[:, 0]] - places[ends[:, 1]]
        strength = (pull * np.linalg.norm(along, axis=1) / k)[:, None] * along
        np.add.at(force, ends[:, 0], -strength)
        np.add.at(force, ends[:, 1], strength)
        force -= 2.0 * k * places
        length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-12)
        places += force / length * np.minimum(length, 0.15 * (1 - step / iterations) + 0.002)
    return places
