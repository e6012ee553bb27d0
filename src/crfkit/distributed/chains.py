"""Chains on a cluster: sequences in contiguous shards, each with the weights of its own attributes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from crfkit._types import Client, Ints
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.chain.fields.part import FieldPart
from crfkit.chain.training.problem import ChainOptions
from crfkit.distributed.cluster import Cluster
from crfkit.distributed.loss import ShardedLoss
from crfkit.distributed.shards import Recipe, Shards
from crfkit.errors import ParameterError
from crfkit.losses import LOSSES
from crfkit.protocols import Capability, Loss


@dataclass(frozen=True, eq=False)
class ChainParts:
    """The data that all shards of a training set share."""

    options: ChainOptions  # of the loss
    field: ChainField
    precision: str

    @classmethod
    def of(cls, options: ChainOptions, field: ChainField, precision: str) -> ChainParts:
        plain = ChainOptions(loss=options.loss, cost=options.cost, precision=options.precision)
        return cls(plain, field, precision)


def chain_part(data: SequenceData, parts: ChainParts, n_threads: int) -> tuple[Loss, Ints]:
    """Return the loss of a shard's sequences, with the weights of the attributes that occur in them, and their places.

    An attribute keeps all its weights, also for labels that it does not have here, since the model expects them.
    """
    field = parts.field
    keep, keep_pairs = np.zeros(field.n_attributes, dtype=bool), np.zeros(field.n_pair_attributes, dtype=bool)
    keep[data.attributes] = True
    if data.pair_attributes is not None:
        keep_pairs[data.pair_attributes] = True
    own = FieldPart.of_attributes(field, keep, keep_pairs)
    options = replace(parts.options, n_threads=n_threads)
    return options.make_loss(own.data(data), own.field, precision=parts.precision), own.places


def sharded_chain(
    client: Client, cluster: Cluster, options: ChainOptions, data: SequenceData, field: ChainField
) -> ShardedLoss:
    """Return the loss of encoded sequences, which are sent to the workers."""
    if isinstance(options.loss, str):
        check_shardable("chain", LOSSES.by_option("chain", options.loss))
    parts = ChainParts.of(options, field, shard_precision(options, data.n_positions))
    n = shard_count(client, cluster, len(data))
    ends = split_positions(data.starts, n)
    recipes = [
        Recipe(chain_part, data.take(np.arange(a, b)), a, b, f"shard {k}") for k, (a, b) in enumerate(pairwise(ends))
    ]
    return ShardedLoss(Shards(client, recipes, parts, field.size, cluster), field, cluster.transport)


def check_shardable(shape: str, loss: type[Loss] | Loss) -> None:
    """Raise ParameterError unless the loss is the sum of losses of parts of the data."""
    if not loss.shardable:
        able = [name for name in LOSSES.options(shape) if LOSSES.by_option(shape, name).shardable]
        raise ParameterError(f"the {loss.name} cannot be trained on a cluster; losses that can: {', '.join(able)}")


def shard_precision(options: ChainOptions, n_positions: int) -> str:
    """Return the precision of all shards; solvers that select attributes compare gradients, in double precision."""
    if Capability.CANDIDATES in options.make_solver().needs:
        return "double"
    return options.precision_of(n_positions)


def shard_count(client: Client, cluster: Cluster, n: int) -> int:
    """Return how many shards n sequences or graphs are split into: as many as requested, or one per worker."""
    wanted = cluster.shards or len(client.nthreads())
    return max(1, min(wanted, n))


def split_positions(starts: Ints, n: int) -> list[int]:
    """Return the ends of n runs of sequences with about as many positions each, none of them empty.

    >>> split_positions(np.array([0, 10, 11, 12, 20]), 2), split_positions(np.array([0, 9, 10]), 2)
    ([0, 1, 4], [0, 1, 2])
    """
    length = len(starts) - 1
    wanted = starts[-1] * np.arange(1, n) / n
    inner = np.searchsorted(starts[1:], wanted, side="left") + 1
    ends = [0]
    for k, end in enumerate(inner.tolist(), start=1):
        ends.append(min(max(end, ends[-1] + 1), length - (n - k)))
    return [*ends, length]
