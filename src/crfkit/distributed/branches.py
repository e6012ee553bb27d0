"""Send vectors down a tree of shards and sum the answers, in the same order whichever worker answers first.

A node of the tree is a shard or, at the root, the client. It knows its own weights and those of each branch below it,
as places in the *union*: the weights that anything at or below the node has. Only these travel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crfkit._types import Floats, Ids, Ints

FAN_OUT = 8  # branches of a node; with up to 8 shards the client talks to all of them


def branches_of(node: int, n: int) -> list[int]:
    """Return the shards right below a shard of n, or below the client, which is node −1.

    >>> branches_of(-1, 20), branches_of(0, 20), branches_of(1, 20)
    ([0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15], [16, 17, 18, 19])
    """
    first = FAN_OUT * (node + 1)
    return list(range(first, min(first + FAN_OUT, n)))


@dataclass(frozen=True)
class Part:
    """The weights of a shard or a branch, as places in the union of its node; None for all of them, in order."""

    places: Ids | None
    size: int

    def of(self, vector: Floats | None) -> Floats | None:
        """Return this part of a vector of the union."""
        return vector if vector is None or self.places is None else vector[self.places]

    def put_in(self, total: Floats, vector: Floats, add: bool) -> None:
        """Add a vector of this part to one of the union, or without `add` replace what is there."""
        where = slice(None) if self.places is None else self.places
        if add:
            total[where] += vector  # no place comes twice
        else:
            total[where] = vector


def united(places: Sequence[Ints]) -> tuple[Ints, list[Part]]:
    """Return the union of several ascending lists of weights, and each list as a part of it."""
    union = places[0] if len(places) == 1 else np.unique(np.concatenate(places))
    return union, [part_of(union, own) for own in places]


def part_of(union: Ints, own: Ints) -> Part:
    if len(own) == len(union):
        return Part(None, len(own))
    return Part(np.searchsorted(union, own).astype(np.int32), len(own))


@dataclass(frozen=True)
class Answer:
    """The answer of a shard, or the sum of those at and below it, to a request."""

    value: float = 0.0
    vector: Floats | None = None  # of the union
    missing: bool = False  # a shard was made anew and must be sent the weights again
    seconds: float = 0.0  # of the slowest shard
    slowest: int = -1  # which shard that was
    computed: float = 0.0  # seconds of all shards
    sent: int = 0  # bytes that went down, and came back
    received: int = 0


def summed(size: int, parts: Sequence[Part], answers: Sequence[Answer]) -> Answer:
    """Return the sum of the answers of a node's parts, in their order."""
    if len(answers) == 1 and parts[0].places is None:
        return answers[0]
    total = None
    if all(answer.vector is not None for answer in answers):
        total = np.zeros(size)
        for k, (part, answer) in enumerate(zip(parts, answers, strict=True)):
            assert answer.vector is not None
            part.put_in(total, answer.vector, add=k > 0)
    last = max(answers, key=lambda answer: answer.seconds)
    return Answer(
        sum(answer.value for answer in answers),
        total,
        any(answer.missing for answer in answers),
        last.seconds,
        last.slowest,
        sum(answer.computed for answer in answers),
        sum(answer.sent for answer in answers),
        sum(answer.received for answer in answers),
    )
