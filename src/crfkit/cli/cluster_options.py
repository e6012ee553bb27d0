"""What --cluster and --shards mean."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crfkit.cli.options import STDIN
from crfkit.errors import ParameterError

if TYPE_CHECKING:
    from crfkit.training.graph import GraphTraining


def make_cluster(address: str | None, shards: int | None) -> Any:
    """Return the cluster of the options; None to train in this process."""
    if address is None:
        if shards is not None:
            raise ParameterError("--shards needs a cluster; give --cluster ADDRESS")
        return None
    from crfkit.distributed import Cluster

    return Cluster(address, shards)


def placed(training: GraphTraining, cluster: Any) -> AbstractContextManager[GraphTraining]:
    """Return the training here, or with its loss on a cluster."""
    if cluster is None:
        return nullcontext(training)
    from crfkit.distributed.graphs import graphs_on_cluster

    return graphs_on_cluster(training, cluster)


def as_url(path: Path) -> str:
    """Return a path as it was typed, where it was a URL: Path makes one slash of two.

    >>> as_url(Path("s3://corpus/part-*.txt")), as_url(Path("data/train.txt"))
    ('s3://corpus/part-*.txt', 'data/train.txt')
    """
    if path == STDIN:
        raise ParameterError("workers cannot read standard input (-); give files")
    return re.sub(r"^([a-z][a-z0-9+.-]+):/(?=[^/])", r"\1://", path.as_posix())
