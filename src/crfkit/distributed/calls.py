"""Calls of shards: straight from the client, or from another shard, to the worker that holds the shard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import Array, Floats
from crfkit.extras import load

# What a call raises if the worker has gone: connections, shards that are not where they were, no answer in time.
LOST = (OSError, KeyError, asyncio.TimeoutError, TimeoutError)


@dataclass(frozen=True)
class Place:
    """The place of a shard: the address of its worker, and its key there."""

    address: str
    key: str


@dataclass(frozen=True)
class Request:
    """A request to shards; vectors travel beside it."""

    what: str  # a method of Shard
    version: int = 0  # of the weights
    warm: int = 0  # the version of the weights to start inference from; 0 for none
    tolerance: float | None = None  # of losses with the capability "precision"
    single: bool = False  # whether vectors travel as 32-bit numbers
    ids: ArrayLike | None = None  # of sequences or graphs of the whole training set; None for all
    options: tuple[Any, ...] = ()


async def ask(rpc: Callable[[str], Any], place: Place, method: str, *args: Any) -> Any:
    """Return what a method of the shard at a place returns; raise one of LOST if the worker has gone."""
    to_serialize = load("distributed.protocol", "a cluster needs").to_serialize
    reply = await rpc(place.address).actor_execute(
        function=method, actor=place.key, args=[to_serialize(arg) for arg in args], kwargs={}
    )
    if reply["status"] == "OK":
        return reply["result"]
    raise reply["exception"]


def narrowed(vector: Floats | None, single: bool) -> Array | None:
    """Return a vector as it travels."""
    return vector if vector is None or not single else vector.astype(np.float32)


def widened(vector: object) -> Floats | None:
    """Return a vector that has arrived, in double precision."""
    return None if vector is None else np.asarray(vector, dtype=np.float64)
