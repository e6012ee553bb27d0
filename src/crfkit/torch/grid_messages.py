"""Loopy belief propagation on grids of pixels: all directed messages of a sweep at once, by shifted slices.

    m_{j→i}(k) = log Σ_l exp(P_ij(k, l) + b_j(l) − m_{i→j}(l)),    b_i = u_i + Σ_j m_{j→i}
    log Z ≈ Σ_i (1 − degree_i) · log Σ_k exp b_i(k) + Σ_ij log Σ_kl exp(P_ij + b_i − m_{j→i} + b_j − m_{i→j})

Two labels have one number per message, the log-odds λ = m(1) − m(0) of one against the other:

    λ = softplus(x + P(1,1) − P(1,0)) − softplus(x + P(0,1) − P(0,0)) + P(1,0) − P(0,0),    x: log-odds of the sender
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from crfkit.torch.fixed_points import Settled, check_options, repeat
from crfkit.torch.grid_field import GridScores, at, directions, times
from crfkit.torch.recursions import accumulator

SATURATED = 100.0  # log-odds beyond which a probability is 0 or 1
MOST_RANGE = 60.0  # between entries of a table whose exponentials single floats hold


class GridBeliefs(NamedTuple):
    marginals: Tensor  # [B, L, H, W], 0 outside the mask
    log_z: Tensor  # [B] the Bethe approximation
    settled: Settled


def belief_propagation(
    scores: GridScores, damping: float | None = None, max_iterations: int = 1000, tolerance: float = 1e-6
) -> GridBeliefs:
    """Return marginals and log Z at a fixed point of sum-product; exact on rows and columns of pixels.

    tolerance: on the largest change of a log message in a sweep. Not differentiable.
    """
    check_options(damping, max_iterations, tolerance)
    with torch.no_grad():
        messages = GridMessages(scores)
        settled = repeat(messages.sweep, damping, max_iterations, tolerance)
        return GridBeliefs(messages.marginals(), messages.log_z(), settled)


def odds_message(b: Tensor, back: Tensor, one: Tensor, zero: Tensor, shift: Tensor) -> Tensor:
    """Return λ for senders with beliefs b without the message back: one, zero = P(k, 1) − P(k, 0) of k = 1, 0."""
    x = b - back
    # beyond the threshold softplus is x itself, to the rounding error of doubles
    found = functional.softplus(x + one, threshold=40.0)
    return found.sub_(functional.softplus(x.add_(zero), threshold=40.0)).add_(shift)


class GridMessages:
    """Messages of all edges: `to_first[d]` go to the first pixels of the edges of direction d, `to_second[d]` back."""

    def __init__(self, scores: GridScores) -> None:
        self._scores = scores
        self._places = [(first, second) for _, first, second in directions(scores)]
        self._binary = scores.u.shape[1] == 2
        self._u = self._log_odds() if self._binary else scores.u
        self._exponentials = None if self._binary else self._exponential_tables()
        self._active: list[Tensor | None] = [None] * len(self._places)
        if scores.inside is not None:
            self._active = [at(scores.inside, first) & at(scores.inside, second) for first, second in self._places]
        self.to_first = [torch.zeros_like(at(self._u, first)) for first, _ in self._places]
        self.to_second = [torch.zeros_like(message) for message in self.to_first]

    def _log_odds(self) -> Tensor:
        """Return log-odds [B, 1, H, W] within what neighbours could change; −inf would leave differences undefined."""
        scores = self._scores
        reach = scores.T.abs().sum() if scores.C is None else scores.T.abs().sum() + scores.C.abs().sum()
        most = SATURATED + 4 * reach
        u = scores.u
        return torch.clamp(u[:, 1:] - u[:, :1], min=-most, max=most)

    def _exponential_tables(self) -> Tensor | None:
        """Return exp(T) [D, L, L] up to a factor, if sums of them are as good as those of logarithms."""
        T = self._scores.T
        low, high = torch.stack([T.min(), T.max()]).tolist()
        if self._scores.C is not None or not high - low < MOST_RANGE:
            return None
        return torch.exp(T - high)

    def beliefs(self) -> Tensor:
        total = self._u.clone()
        for (first, second), to_first, to_second in zip(self._places, self.to_first, self.to_second, strict=True):
            at(total, first).add_(to_first)
            at(total, second).add_(to_second)
        return total

    def sweep(self, damping: float, look: bool = True) -> Tensor | None:
        """Send all messages, from those of the last sweep; return the largest change, as it would be undamped.

        Without `look` return None, which saves time.
        """
        b = self.beliefs()
        changes = [b.new_zeros(())]
        for d, (first, second) in enumerate(self._places):
            to_first = self._message(d, at(b, second), self.to_second[d], False)
            to_second = self._message(d, at(b, first), self.to_first[d], True)
            for old, new in ((self.to_first, to_first), (self.to_second, to_second)):
                if look and new.numel():
                    changes.append((new - old[d]).abs().amax())
                old[d] = torch.lerp(new, old[d], damping) if damping else new
        return torch.stack(changes).amax() if look else None

    def _message(self, d: int, b: Tensor, back: Tensor, turned: bool) -> Tensor:
        """Return messages that follow from the senders' beliefs b and the messages back to them.

        `turned`: by the transposed table.
        """
        if self._binary:
            to = [[self._entry(d, k, m, turned) for m in (0, 1)] for k in (0, 1)]
            new = odds_message(b, back, to[1][1] - to[1][0], to[0][1] - to[0][0], to[1][0] - to[0][0])
        else:
            new = self._vector_message(d, b - back, turned)
        active = self._active[d]
        return new if active is None else torch.where(active, new, 0.0)

    def _vector_message(self, d: int, x: Tensor, turned: bool) -> Tensor:
        if self._exponentials is not None:
            table = self._exponentials[d]
            sums = times(table, torch.exp(x - x.amax(1, keepdim=True)), turned)
            return torch.log_softmax(torch.log(sums), dim=1)
        labels = range(x.shape[1])
        rows = [torch.logsumexp(self._row(d, k, turned) + x, dim=1, keepdim=True) for k in labels]
        return torch.log_softmax(torch.cat(rows, dim=1), dim=1)

    def _row(self, d: int, k: int, turned: bool) -> Tensor:
        """Return P(k, ·) of the edges of a direction, [·, L, ·, ·]."""
        scores = self._scores
        found = _row(scores.T[d], k, turned)
        return found if scores.C is None else found + scores.alike[d] * _row(scores.C[d], k, turned)

    def _entry(self, d: int, k: int, m: int, turned: bool) -> Tensor:
        if turned:
            k, m = m, k
        scores = self._scores
        found = scores.T[d, k, m]
        return found if scores.C is None else found + scores.alike[d] * scores.C[d, k, m]

    # --- answers

    def marginals(self) -> Tensor:
        b, scores = self.beliefs(), self._scores
        vectors = torch.cat([-b / 2, b / 2], dim=1) if self._binary else b
        found = torch.softmax(vectors, dim=1).masked_fill(torch.isneginf(scores.u), 0.0)
        return found if scores.inside is None else found * scores.inside

    def log_z(self) -> Tensor:
        """Return the Bethe approximation of log Z, [B]."""
        scores, u = self._scores, self._scores.u
        to_first, to_second = ([self._vectors(message) for message in side] for side in (self.to_first, self.to_second))
        b, degrees = u.clone(), torch.zeros_like(u[:, :1])
        for d, (first, second) in enumerate(self._places):
            active = self._active[d]
            count = degrees.new_ones(()) if active is None else active.to(u.dtype)
            for place, message in ((first, to_first[d]), (second, to_second[d])):
                at(b, place).add_(message)
                at(degrees, place).add_(count)
        nodes = (1 - degrees) * torch.logsumexp(b, dim=1, keepdim=True)
        if scores.inside is not None:
            nodes = torch.where(scores.inside, nodes, 0.0)
        exact = accumulator(u)
        total = nodes.sum((1, 2, 3), dtype=exact)
        for d, (first, second) in enumerate(self._places):
            edge = self._log_partition(d, at(b, first) - to_first[d], at(b, second) - to_second[d])
            active = self._active[d]
            total = total + (edge if active is None else torch.where(active, edge, 0.0)).sum((1, 2, 3), dtype=exact)
        return total

    def _vectors(self, message: Tensor) -> Tensor:
        return torch.cat([torch.zeros_like(message), message], dim=1) if self._binary else message

    def _log_partition(self, d: int, first: Tensor, second: Tensor) -> Tensor:
        """Return log Σ_kl exp(first(k) + P(k, l) + second(l)) of the edges of a direction, [B, 1, H', W']."""
        rows = [
            first[:, k : k + 1] + torch.logsumexp(self._row(d, k, False) + second, dim=1, keepdim=True)
            for k in range(first.shape[1])
        ]
        return torch.logsumexp(torch.cat(rows, dim=1), dim=1, keepdim=True)

    def pair_marginals(self, d: int) -> Tensor:
        """Return p(y_i = k, y_j = l) of the edges of a direction, [B, L, L, H', W']; uniform outside the mask."""
        b = self._scores.u.clone()
        for (first, second), to_first, to_second in zip(self._places, self.to_first, self.to_second, strict=True):
            at(b, first).add_(self._vectors(to_first))
            at(b, second).add_(self._vectors(to_second))
        first, second = self._places[d]
        x = at(b, first) - self._vectors(self.to_first[d])
        y = at(b, second) - self._vectors(self.to_second[d])
        rows = [self._row(d, k, False) + y + x[:, k : k + 1] for k in range(x.shape[1])]
        table = torch.stack(rows, dim=1)
        return torch.softmax(table.flatten(1, 2), dim=1).view_as(table)


def _row(table: Tensor, k: int, turned: bool) -> Tensor:
    return (table[:, k] if turned else table[k])[:, None, None]
