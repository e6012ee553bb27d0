"""Pairwise fields on a cluster: graphs in contiguous shards, which all have all weights."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from crfkit._values import Client
from crfkit.distributed.chains import check_shardable, shard_count, split_positions
from crfkit.distributed.cluster import Cluster
from crfkit.distributed.loss import ShardedLoss
from crfkit.distributed.shards import Recipe, Shards
from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import GraphField
from crfkit.graph.inference.marginals import Engine
from crfkit.protocols import Capability, Loss


@dataclass(frozen=True, eq=False)
class GraphParts:
    """The data that all shards share."""

    kind: type
    field: GraphField
    engine: Engine | None = None
    start_tolerance: float | None = None


def graph_part(data: GraphData, parts: GraphParts, n_threads: int) -> tuple[Loss, None]:
    """Return the loss of a shard's graphs."""
    if parts.engine is None:
        return parts.kind(data, parts.field, n_threads), None
    engine: Engine | None = parts.engine
    if is_dataclass(engine) and any(item.name == "n_threads" for item in fields(engine)):
        engine = replace(parts.engine, n_threads=n_threads)
    return parts.kind(data, parts.field, engine, start_tolerance=parts.start_tolerance), None


def sharded_graphs(client: Client, cluster: Cluster, loss: Any) -> ShardedLoss:
    """Return a loss of graphs whose parts are sent to the workers."""
    check_shardable("graph", loss)
    start = loss.tolerance if loss.engine is not None and Capability.PRECISION in loss.capabilities else None
    parts = GraphParts(type(loss), loss.field, loss.engine, start)
    data: GraphData = loss.data
    ends = split_positions(data.graph.node_offsets, shard_count(client, cluster, len(data)))
    recipes = [
        Recipe(graph_part, compact(data.take(np.arange(a, b))), a, b, f"shard {k}")
        for k, (a, b) in enumerate(pairwise(ends))
    ]
    return ShardedLoss(Shards(client, recipes, parts, loss.size, cluster), loss.field, cluster.transport)


def compact(data: GraphData) -> GraphData:
    """Return the same graphs without rows of features that they do not have."""
    changes: dict[str, Any] = {}
    for kind in ("node", "edge"):
        rows = getattr(data, f"{kind}_rows")
        if rows is not None:
            kept, numbers = np.unique(rows, return_inverse=True)
            changes |= {f"{kind}_features": getattr(data, f"{kind}_features")[kept], f"{kind}_rows": numbers.ravel()}
    return replace(data, **changes)
