"""The options --cluster and --shards, and --device of graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from crfkit.errors import ParameterError

if TYPE_CHECKING:
    from crfkit.graph.training.train import GraphTraining


def make_cluster(address: str | None, shards: int | None) -> object:
    """Return the cluster of the options; None to train in this process."""
    if address is None:
        if shards is not None:
            raise ParameterError("--shards needs a cluster; give --cluster ADDRESS")
        return None
    from crfkit.distributed import Cluster

    return Cluster(address, shards)


@contextmanager
def placed(training: GraphTraining, cluster: object, device: str | None = None) -> Iterator[GraphTraining]:
    """Yield the training here, or with its loss on a cluster or a device."""
    from crfkit.training.placement import placement

    if device is not None and cluster is not None:
        raise ParameterError("--device cannot be combined with --cluster; drop one of them")
    with placement(cluster, device) as there:
        yield replace(training, placement=there)


def check_urls(files: Sequence[str]) -> Sequence[str]:
    """Return the files; raise ParameterError if one of them is standard input."""
    if "-" in files:
        raise ParameterError("workers cannot read standard input (-); give files")
    return files
