"""Losses and tasks on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from crfkit._values import Client
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.chain.training.problem import ChainOptions
from crfkit.distributed.chains import sharded_chain
from crfkit.distributed.cluster import Cluster, connect
from crfkit.distributed.graphs import sharded_graphs
from crfkit.distributed.loss import ShardedLoss
from crfkit.distributed.tasks import ClusterTasks
from crfkit.distributed.training import TrafficColumns, selecting
from crfkit.protocols import Loss
from crfkit.solvers.parts.loop import Callback
from crfkit.training.placement import Placement


class ClusterPlacement(Placement):
    """Places losses and tasks on a cluster; data that this process has are sent to the workers."""

    here: ClassVar[bool] = False

    def __init__(self, client: Client, options: Cluster) -> None:
        self._client = client
        self._options = options
        self._made: list[ShardedLoss] = []

    @property
    def tasks(self) -> ClusterTasks:
        return ClusterTasks(self._client, self._options)

    @property
    def callbacks(self) -> Sequence[Callback]:
        return (TrafficColumns(),)

    def chain_loss(
        self, options: ChainOptions, data: SequenceData, field: ChainField, *, candidates: bool, screen: Any
    ) -> Loss:
        loss = sharded_chain(self._client, self._options, options, data, field)
        self._made.append(loss)
        return selecting(loss, options.make_solver())

    def graph_loss(self, loss: Loss) -> Loss:
        self._made.append(sharded_graphs(self._client, self._options, loss))
        return self._made[-1]

    def close(self) -> None:
        """Release what the workers hold."""
        for loss in self._made:
            loss.shards.close()


@contextmanager
def cluster_placement(cluster: object) -> Iterator[ClusterPlacement]:
    """Yield the placement on a cluster, which is whatever :func:`crfkit.distributed.connect` takes."""
    options = Cluster.of(cluster)
    with connect(options) as client:
        there = ClusterPlacement(client, options)
        try:
            yield there
        finally:
            there.close()
