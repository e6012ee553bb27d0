"""The recursions over time in plain PyTorch: the readable reference, on any device and in any precision.

Scores: u_t(j) of labels, [B, T, L]; P(i, j) of transitions, [L, L]. −inf forbids. `lengths` [B] counts the positions of
each sequence; those behind are padding. Messages are normalised at each position, so nothing grows with the length:

    α_0 = u_0,      α_t(j) = u_t(j) + log Σ_i exp(α_{t−1}(i) + P(i, j)),      log Z = Σ_t of what normalises α_t
    β_{T−1} = 0,    β_{t−1}(i) = log Σ_j exp(P(i, j) + u_t(j) + β_t(j))
    node marginals: softmax over j of α_t(j) + β_t(j)
    edge marginals: softmax over (i, j) of α_{t−1}(i) + P(i, j) + u_t(j) + β_t(j)
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

LOWEST = -1e30  # stands for −inf, whose differences are not defined


class Beliefs(NamedTuple):
    log_z: Tensor  # [B], in the precision of `accumulator`
    node: Tensor  # [B, T, L] marginals of labels, 0 in the padding
    edge: Tensor  # [B, L, L] edge marginals, added up over time: the expected transitions


def accumulator(like: Tensor) -> torch.dtype:
    """Return the precision of sums over time: double, but where a device has none."""
    return torch.float32 if like.device.type == "mps" else torch.float64


def finite(x: Tensor) -> Tensor:
    """Return x with LOWEST for −inf; NaN stays."""
    return x.clamp(min=LOWEST)


def active(lengths: Tensor, time: int) -> Tensor:
    """Return [B, T]: whether a position is one of its sequence."""
    return torch.arange(time, device=lengths.device) < lengths[:, None]


def with_boundaries(u: Tensor, start: Tensor, end: Tensor, lengths: Tensor) -> Tensor:
    """Return u with the scores of starting added at the first position and those of ending at the last."""
    t = torch.arange(u.shape[1], device=u.device)
    first, last = (t == 0)[None, :, None], (t == lengths[:, None] - 1)[:, :, None]
    zero = u.new_zeros(())
    return u + torch.where(first, start, zero) + torch.where(last, end, zero)


def forward_messages(u: Tensor, P: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return (α [B, T, L], log Z [B]); α repeats its last row in the padding."""
    inside = active(lengths, u.shape[1])
    total = torch.logsumexp(u[:, 0], dim=1)
    rows = [u[:, 0] - total[:, None]]
    log_z = torch.where(inside[:, 0], total, 0.0).to(accumulator(u))
    for t in range(1, u.shape[1]):
        row = u[:, t] + torch.logsumexp(rows[-1][:, :, None] + P, dim=1)
        total = torch.logsumexp(row, dim=1)
        rows.append(torch.where(inside[:, t, None], row - total[:, None], rows[-1]))
        log_z = log_z + torch.where(inside[:, t], total, 0.0)
    return torch.stack(rows, dim=1), log_z


def backward_messages(u: Tensor, P: Tensor, lengths: Tensor) -> Tensor:
    """Return β [B, T, L], 0 at the last position and in the padding."""
    inside = active(lengths, u.shape[1])
    rows = [torch.zeros_like(u[:, 0])]
    for t in range(u.shape[1] - 1, 0, -1):
        row = torch.logsumexp(P + (u[:, t] + rows[-1])[:, None, :], dim=2)
        row = row - torch.logsumexp(row, dim=1, keepdim=True)
        rows.append(torch.where(inside[:, t, None], row, rows[-1]))
    return torch.stack(rows[::-1], dim=1)


def edge_scores(alpha: Tensor, beta: Tensor, u: Tensor, P: Tensor, t: int) -> Tensor:
    """Return α_{t−1}(i) + P(i, j) + u_t(j) + β_t(j), [B, L, L]."""
    return alpha[:, t - 1, :, None] + P + (u[:, t] + beta[:, t])[:, None, :]


def softmax_pairs(scores: Tensor) -> Tensor:
    return torch.softmax(scores.flatten(1), dim=1).view_as(scores)


def beliefs(u: Tensor, P: Tensor, lengths: Tensor) -> Beliefs:
    """Return log Z, node marginals and expected transitions."""
    u, P = finite(u), finite(P)
    alpha, log_z = forward_messages(u, P, lengths)
    beta = backward_messages(u, P, lengths)
    inside = active(lengths, u.shape[1])
    node = torch.softmax(alpha + beta, dim=2) * inside[:, :, None]
    edge = u.new_zeros(u.shape[0], *P.shape)
    for t in range(1, u.shape[1]):
        edge = edge + softmax_pairs(edge_scores(alpha, beta, u, P, t)) * inside[:, t, None, None]
    return Beliefs(torch.where(log_z < LOWEST / 2, -torch.inf, log_z), node, edge)


def counts(u: Tensor, P: Tensor, lengths: Tensor, tags: Tensor) -> Beliefs:
    """Return the scores of tags [B, T] in place of log Z, and their counts in place of marginals."""
    inside = active(lengths, u.shape[1])
    n_tags = len(P)
    node = torch.nn.functional.one_hot(tags, n_tags).to(u.dtype) * inside[:, :, None]
    pairs = (tags[:, :-1] * n_tags + tags[:, 1:]) * inside[:, 1:]
    edge = u.new_zeros(len(u), n_tags * n_tags).scatter_add_(1, pairs, inside[:, 1:].to(u.dtype))
    unary = torch.where(inside, u.gather(2, tags[:, :, None])[:, :, 0], 0.0)
    binary = torch.where(inside[:, 1:], P.flatten()[pairs], 0.0)
    exact = accumulator(u)
    score = unary.sum(1, dtype=exact) + binary.sum(1, dtype=exact)
    return Beliefs(score, node, edge.view(-1, *P.shape))


def without(found: Beliefs, taken: Beliefs) -> Beliefs:
    return Beliefs(*(x - y for x, y in zip(found, taken, strict=True)))


def tangents(u: Tensor, P: Tensor, lengths: Tensor, du: Tensor, dP: Tensor) -> tuple[Tensor, Tensor]:
    """Return the derivatives of (node, edge) along du [B, T, L], dP [B, L, L].

    The recursions run over dual numbers. As the covariance is symmetric, this is also the gradient of
    Σ du · node + Σ dP · edge.
    """
    u, P = finite(u), finite(P)
    alpha, _ = forward_messages(u, P, lengths)
    beta = backward_messages(u, P, lengths)
    time, inside = u.shape[1], active(lengths, u.shape[1])
    du = du * inside[:, :, None]

    row = du[:, 0] - (alpha[:, 0].exp() * du[:, 0]).sum(1, keepdim=True)
    d_alpha = [row]
    for t in range(1, time):
        weights = torch.softmax(alpha[:, t - 1, :, None] + P, dim=1)
        row = du[:, t] + (weights * (d_alpha[-1][:, :, None] + dP)).sum(1)
        d_alpha.append(row - (alpha[:, t].exp() * row).sum(1, keepdim=True))
    d_beta = [torch.zeros_like(row)]
    for t in range(time - 1, 0, -1):
        weights = torch.softmax(P + (u[:, t] + beta[:, t])[:, None, :], dim=2)
        row = (weights * (dP + (du[:, t] + d_beta[-1])[:, None, :])).sum(2)
        row = row - (torch.softmax(alpha[:, t - 1] + beta[:, t - 1], dim=1) * row).sum(1, keepdim=True)
        d_beta.append(torch.where(inside[:, t, None], row, 0.0))
    d_beta.reverse()

    node = torch.softmax(alpha + beta, dim=2) * inside[:, :, None]
    change = torch.stack(d_alpha, dim=1) + torch.stack(d_beta, dim=1)
    d_node = node * (change - (node * change).sum(2, keepdim=True))
    d_edge = u.new_zeros(u.shape[0], *P.shape)
    for t in range(1, time):
        edge = softmax_pairs(edge_scores(alpha, beta, u, P, t)) * inside[:, t, None, None]
        change = d_alpha[t - 1][:, :, None] + dP + (du[:, t] + d_beta[t])[:, None, :]
        d_edge = d_edge + edge * (change - (edge * change).sum((1, 2), keepdim=True))
    return d_node, d_edge


def step_log_likelihoods(u: Tensor, P: Tensor, lengths: Tensor, possible: Tensor) -> Tensor:
    """Return [B, T]: log p(y_t in K_t | y_s in K_s for all s < t, x), 0 in the padding.

    `possible` [B, T, L] is K. Their sum over t is log Z(K) − log Z. Differentiable by plain autograd.
    """
    u, P = finite(u), finite(P)
    beta = backward_messages(u, P, lengths)
    kept = torch.where(possible, 0.0, LOWEST).to(u.dtype)
    row = torch.log_softmax(u[:, 0] + beta[:, 0], dim=1) + kept[:, 0]
    steps = [torch.logsumexp(row, dim=1)]
    for t in range(1, u.shape[1]):
        known = (row - steps[-1][:, None])[:, :, None]
        jump = torch.log_softmax(P + (u[:, t] + beta[:, t])[:, None, :], dim=2)
        row = torch.logsumexp(known + jump, dim=1) + kept[:, t]
        steps.append(torch.logsumexp(row, dim=1))
    found = torch.stack(steps, dim=1)
    return torch.where(active(lengths, u.shape[1]), found, 0.0)
