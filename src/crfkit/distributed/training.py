"""Training of chains on a cluster: from lists, which are sent; from files and Dask collections, which workers read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from crfkit._values import Frame, Tabular
from crfkit.chain.encoding.frames import FrameColumns
from crfkit.chain.encoding.sequences import TaggedCorpus
from crfkit.chain.losses.likelihood import ChainLikelihood, SoftmaxMargin
from crfkit.chain.model.model import ChainModel
from crfkit.chain.training.early_stopping import Dev
from crfkit.chain.training.train import ChainTraining
from crfkit.distributed.candidates import ShardedCandidates
from crfkit.distributed.chains import shard_count
from crfkit.distributed.cluster import Cluster, connect
from crfkit.distributed.corpus import encode
from crfkit.distributed.loss import ShardedLoss
from crfkit.distributed.shards import Traffic
from crfkit.distributed.sources import PartitionSource, file_sources
from crfkit.errors import DataError, ParameterError
from crfkit.extras import load
from crfkit.files.checkpoint import Checkpoint
from crfkit.protocols import Capability, Loss, Solver
from crfkit.result import Result

if TYPE_CHECKING:
    from crfkit.solvers.parts.loop import Callback, Iteration

MOST_SHARDS = 1 << 20
ReadDev = Callable[[TaggedCorpus], Dev | None]


def selecting(loss: ShardedLoss, solver: Solver) -> Loss:
    """Return the loss with candidates if the solver selects attributes and the loss can, otherwise itself."""
    selects = Capability.CANDIDATES in solver.needs and Capability.HESSP in loss.capabilities
    return ShardedCandidates(loss) if selects and loss.name in (ChainLikelihood.name, SoftmaxMargin.name) else loss


def fit_urls(
    training: ChainTraining,
    cluster: object,
    paths: Sequence[str | Path],
    callbacks: Sequence[Callback] = (),
    encoding: str = "utf-8",
    format: str = "auto",
    label_column: str | int | None = None,
    dev: ReadDev | None = None,
    start: ChainModel | None = None,
    resume: Checkpoint | None = None,
) -> tuple[ChainModel, Result]:
    """Return a model of files that the workers read, and how training went.

    `paths` are paths, globs or URLs of any file system that fsspec knows; every worker must be able to read them. The
    attributes, their order and the weights are the same as on one machine, whatever the number of shards.
    """
    patterns = []
    for path in paths:
        if not isinstance(path, (str, Path)):
            raise ParameterError(f"workers read files by their names; {path!r} is not a path or a URL")
        patterns.append(str(path))
    columns = training.make_inputs().kind != "items"

    def sources(n: int) -> list[object]:
        return list(file_sources(patterns, n, columns, encoding, format, label_column))

    return _fit(training, cluster, sources, columns, callbacks, dev, start, resume)


def fit_bags(
    training: ChainTraining,
    cluster: object,
    X: Tabular,
    y: object,
    callbacks: Sequence[Callback] = (),
    start: ChainModel | None = None,
    resume: Checkpoint | None = None,
) -> tuple[ChainModel, Result]:
    """Return a model of two Dask bags, of sequences and of their labels, and how training went."""
    if not hasattr(X, "foldby"):
        raise DataError(f"X is a Dask {type(X).__name__}; fit takes two bags, and fit_frame takes a frame")
    if not hasattr(y, "npartitions"):
        raise DataError("X is a Dask bag, but y is not; give two bags with the same partitions")
    if X.npartitions != y.npartitions:
        raise DataError(f"X has {X.npartitions} partitions, but y has {y.npartitions}; they must be the same")
    parts = load("dask.bag", "a cluster needs").zip(X, y).to_delayed()
    sources = [PartitionSource(part, f"partition {k}") for k, part in enumerate(parts)]
    return _fit(training, cluster, lambda _: list(sources), False, callbacks, None, start, resume)


def fit_dask_frame(
    training: ChainTraining,
    cluster: object,
    frame: Frame,
    columns: FrameColumns,
    attributes: bool,
    callbacks: Sequence[Callback] = (),
    start: ChainModel | None = None,
    resume: Checkpoint | None = None,
) -> tuple[ChainModel, Result]:
    """Return a model of a Dask DataFrame with a row per token, and how training went.

    A sequence whose rows lie in two partitions would become two sequences.
    """
    parts = frame.to_delayed()
    sources = [PartitionSource(part, f"partition {k}", columns, attributes) for k, part in enumerate(parts)]
    return _fit(training, cluster, lambda _: list(sources), False, callbacks, None, start, resume)


def _fit(
    training: ChainTraining,
    cluster: object,
    sources: Callable[[int], list[object]],
    columns: bool,
    callbacks: Sequence[Callback],
    dev: ReadDev | None,
    start: ChainModel | None,
    resume: Checkpoint | None,
) -> tuple[ChainModel, Result]:
    options = Cluster.of(cluster)
    with connect(options) as client:
        found = sources(shard_count(client, options, MOST_SHARDS))
        if not found:
            raise DataError("there are no sequences to learn from")
        problem = encode(client, options, training, found, columns)
        problem = replace(problem, loss=selecting(problem.loss, problem.solver))
        try:
            held_out = dev(problem.corpus) if dev is not None else None
            return training.solve(problem, [TrafficColumns(), *callbacks], dev=held_out, start=start, resume=resume)
        finally:
            problem.loss.shards.close()


class TrafficColumns:
    """A callback that adds to the trace what the cluster did since the last iteration.

    `sent_mb` and `received_mb` are megabytes of weights and gradients; `slowest_shard` was the last to answer, and took
    `slowest_ratio` times as long as the shards did on average; `lost_shards` counts those that had to be made again.
    """

    def __init__(self) -> None:
        self._before = Traffic()

    def __call__(self, iteration: Iteration) -> Mapping[str, float]:
        shards, before = iteration.loss.shards, self._before
        now = self._before = replace(shards.traffic)
        mean = (now.computed - before.computed) / len(shards)
        return {
            "evaluations": float(iteration.row.evaluations),
            "sent_mb": (now.sent - before.sent) / 1e6,
            "received_mb": (now.received - before.received) / 1e6,
            "slowest_shard": float(now.slowest),
            "slowest_ratio": (now.computing - before.computing) / mean if mean > 0 else 1.0,
            "lost_shards": float(now.lost),
        }
