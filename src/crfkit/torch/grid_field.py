"""Grids of pixels in plain PyTorch: sums over neighbours by shifted slices, on any device and in any precision.

    score(y) = Σ_i u_i(y_i) + Σ_d Σ_{(i, j) in direction d} P_ij(y_i, y_j),    P_ij = T_d + a_ij · C_d

j is the pixel one step of direction d after i. T_d, C_d are tables [L, L], a_ij the alikeness of two pixels.
Pixels outside the mask are not part of the grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from crfkit.torch.recursions import accumulator, finite

# rows and columns of a step, in the order of crfkit.Graph.grid: right, down, and the diagonals
STEPS = {4: ((0, 1), (1, 0)), 8: ((0, 1), (1, 0), (1, 1), (1, -1))}

Place = tuple[slice, slice]


class GridScores(NamedTuple):
    """Log-potentials of a batch of images. −inf forbids a label."""

    u: Tensor  # [B, L, H, W], 0 outside the mask
    T: Tensor  # [D, L, L] of label l one step after label k
    C: Tensor | None  # [D, L, L] the same, times the alikeness
    alike: tuple[Tensor, ...]  # D × [B, 1, H', W'] alikeness of the pixels of each edge; () without contrast
    inside: Tensor | None  # [B, 1, H, W] booleans; None: all pixels are


def ends(step: tuple[int, int], height: int, width: int) -> tuple[Place, Place]:
    """Return where the first and the second pixels of all edges of a direction are."""

    def along(s: int, size: int) -> tuple[slice, slice]:
        return slice(max(0, -s), max(0, size - max(0, s))), slice(max(0, s), max(0, size + min(0, s)))

    (rows, rows_after), (columns, columns_after) = along(step[0], height), along(step[1], width)
    return (rows, columns), (rows_after, columns_after)


def at(x: Tensor, place: Place) -> Tensor:
    return x[:, :, place[0], place[1]]


def directions(scores: GridScores) -> Iterator[tuple[int, Place, Place]]:
    """Yield (d, first pixels, second pixels) of each direction."""
    steps = STEPS[2 * len(scores.T)]
    for d, step in enumerate(steps):
        yield d, *ends(step, *scores.u.shape[2:])


def alikeness(image: Tensor, precision: Tensor, neighbours: int) -> tuple[Tensor, ...]:
    """Return a_ij = exp(−precision · mean over channels of (x_i − x_j)²) of the edges of each direction."""
    found = []
    for step in STEPS[neighbours]:
        first, second = ends(step, *image.shape[2:])
        squares = (at(image, first) - at(image, second)).square().mean(1, keepdim=True)
        found.append(torch.exp(-precision * squares))
    return tuple(found)


def neighbour_scores(scores: GridScores, q: Tensor) -> Tensor:
    """Return Σ_j Σ_l P_ij(k, l) q_j(l), [B, L, H, W]; q [B, L, H, W] is 0 outside the mask.

    With marginals for q it is the expected score of each label, with one-hot labels its score given the neighbours.
    """
    total = torch.zeros_like(q)
    for d, first, second in directions(scores):
        for place, other, turned in ((first, second, False), (second, first, True)):
            found = at(times(scores.T[d], q, turned), other)
            if scores.C is not None:
                found = found + scores.alike[d] * at(times(scores.C[d], q, turned), other)
            at(total, place).add_(found)
    return total


def times(table: Tensor, q: Tensor, turned: bool) -> Tensor:
    """Return Σ_l table(k, l) q(l) at every pixel; `turned`: of the transposed table."""
    return torch.matmul(table.T if turned else table, q.flatten(2)).view_as(q)


def one_hot(labels: Tensor, known: Tensor, n_labels: int, dtype: torch.dtype) -> Tensor:
    """Return labels [B, H, W] as [B, L, H, W], 0 where `known` is not."""
    places = torch.arange(n_labels, device=labels.device)[:, None, None]
    return ((labels[:, None] == places) & known[:, None]).to(dtype)


def conditionals(scores: GridScores, q: Tensor) -> Tensor:
    """Return log p(y_i = k | the labels of its neighbours), [B, L, H, W]; q has the labels as one-hot columns."""
    return torch.log_softmax(scores.u + neighbour_scores(scores, q), dim=1)


def mean_field(scores: GridScores, sweeps: int, damping: float) -> Tensor:
    """Return marginals [B, L, H, W] after so many sweeps, 0 outside the mask; autograd goes through all of them.

    All pixels are updated at once: q_i ← damping · q_i + (1 − damping) · softmax(u_i + Σ_j P_ij q_j).
    """
    q = _within(torch.softmax(scores.u, dim=1), scores)
    for _ in range(sweeps):
        new = _within(torch.softmax(scores.u + neighbour_scores(scores, q), dim=1), scores)
        q = new if damping == 0 else torch.lerp(new, q, damping)
    return q


def log_marginals(scores: GridScores, sweeps: int, damping: float) -> Tensor:
    """Return the logarithms of `mean_field`, which do not underflow; LOWEST where a label is forbidden."""
    scores = scores._replace(u=finite(scores.u))
    log_q = torch.log_softmax(scores.u, dim=1)
    for _ in range(sweeps):
        new = torch.log_softmax(scores.u + neighbour_scores(scores, _within(log_q.exp(), scores)), dim=1)
        log_q = new if damping == 0 else torch.logaddexp(new + math.log(1 - damping), log_q + math.log(damping))
    return log_q


def _within(q: Tensor, scores: GridScores) -> Tensor:
    return q if scores.inside is None else q * scores.inside


def lower_bound(scores: GridScores, q: Tensor) -> Tensor:
    """Return E[score] + entropy under independent pixels with marginals q, [B]: at most log Z."""
    log_q = torch.log(q.clamp(min=torch.finfo(q.dtype).tiny))
    u = torch.where(q > 0, scores.u, 0.0)  # −inf · 0 is 0 here
    terms = q * (u + neighbour_scores(scores, q) / 2 - log_q)
    return terms.sum((1, 2, 3), dtype=accumulator(q))
