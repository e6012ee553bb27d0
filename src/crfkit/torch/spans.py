"""The probability that a tagging has a phrase at given positions, as :mod:`crfkit.chain.model.spans` defines it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from crfkit.chain.model.spans import Runs
from crfkit.errors import DataError
from crfkit.schemes import obstacle
from crfkit.torch.recursions import backward_messages, finite, forward_messages, with_boundaries
from crfkit.torch.scores import Scores


@torch.compiler.disable
def chances_of_spans(scores: Scores, labels: list[str], spans: Sequence[tuple[int, int, int, str]]) -> Tensor:
    """Return the probabilities of spans (sequence, start, end, type)."""
    if (why := obstacle(labels)) is not None:
        raise DataError(f"the labels do not mark phrases: {why}")
    runs = Runs(labels)
    lengths = scores.lengths.tolist()
    for n, start, end, kind in spans:
        if kind not in runs.kinds:
            raise DataError(f"there are no phrases of type {kind!r}; the types are {', '.join(map(repr, runs.kinds))}")
        if not 0 <= n < len(lengths) or not 0 <= start < end <= lengths[n]:
            raise DataError(f"the span {start} … {end} is not in sequence {n}, or is empty; ends are exclusive")
    u = finite(with_boundaries(scores.u, scores.start, scores.end, scores.lengths))
    P = finite(scores.P)
    alpha, _ = forward_messages(u, P, scores.lengths)
    beta = backward_messages(u, P, scores.lengths)
    goes_on = torch.from_numpy(runs.goes_on).to(u.device)
    types = torch.from_numpy(runs.type_ids).to(u.device)
    chances = [
        _chance(alpha[n], beta[n], u[n], P, goes_on, types == runs.kinds.index(kind), start, end, lengths[n])
        for n, start, end, kind in spans
    ]
    return torch.stack(chances) if chances else u.new_zeros(0)


def _chance(
    alpha: Tensor,
    beta: Tensor,
    u: Tensor,
    P: Tensor,
    goes_on: Tensor,
    of_type: Tensor,
    start: int,
    end: int,
    length: int,
) -> Tensor:
    """Return the probability of one span: P_t(i, j) are the conditional probabilities of the posterior Markov chain."""

    def conditional(t: int) -> Tensor:
        return torch.softmax(P + (u[t] + beta[t])[None, :], dim=1)

    if start == 0:
        row = torch.softmax(u[0] + beta[0], dim=0)
    else:
        before = torch.softmax(alpha[start - 1] + beta[start - 1], dim=0)
        row = (before[:, None] * conditional(start) * ~goes_on).sum(0)
    row = row * of_type
    for t in range(start + 1, end):
        row = (row[:, None] * conditional(t) * goes_on).sum(0)
    if end < length:
        row = (row[:, None] * conditional(end) * ~goes_on).sum(0)
    return row.sum()
