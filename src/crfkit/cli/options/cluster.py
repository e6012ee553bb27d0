"""The options --cluster and --shards."""

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
def placed(training: GraphTraining, cluster: object) -> Iterator[GraphTraining]:
    """Yield the training here, or with its loss on a cluster."""
    from crfkit.training.placement import placement

    with placement(cluster) as there:
        yield replace(training, placement=there)


def check_urls(files: Sequence[str]) -> Sequence[str]:
    """Return the files; raise ParameterError if one of them is standard input."""
    if "-" in files:
        raise ParameterError("workers cannot read standard input (-); give files")
    return files
