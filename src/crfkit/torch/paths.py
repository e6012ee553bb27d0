"""The best taggings in plain PyTorch: the readable reference, on any device."""

from __future__ import annotations

import torch
from torch import Tensor

from crfkit.torch.recursions import LOWEST, active


def viterbi(u: Tensor, P: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return (the best tags [B, T], their scores [B]; −inf where no tagging is left)."""
    tags, scores = best_paths(u, P, lengths, 1)
    return tags[:, 0], torch.where(scores[:, 0] < LOWEST / 2, -torch.inf, scores[:, 0])


def best_paths(u: Tensor, P: Tensor, lengths: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Return (the n best tags [B, n, T], their scores [B, n], below LOWEST / 2 where there are no more).

    δ_t(j, k) is the k-th best score of the taggings that end in j at t: the n largest of δ_{t−1}(i, k′) + P(i, j) over
    all (i, k′), plus u_t(j). Where a sequence has ended, δ stays and back pointers lead to themselves.
    """
    batch, time, n_tags = u.shape
    inside = active(lengths, time)
    delta = u.new_full((batch, n_tags, n), 2 * LOWEST)
    delta[:, :, 0] = u[:, 0]
    stay = torch.arange(n_tags * n, device=u.device).view(1, n_tags, n)
    pointers = []
    for t in range(1, time):
        paths = delta[:, :, :, None] + P[:, None, :]  # [B, i, k, j]
        best, from_ = _largest(paths.flatten(1, 2).transpose(1, 2), n)  # over (i, k): [B, j, n]
        step = inside[:, t, None, None]
        delta = torch.where(step, (best + u[:, t, :, None]).clamp(min=2 * LOWEST), delta)
        pointers.append(torch.where(step, from_, stay).flatten(1))
    scores, at = delta.flatten(1).topk(n, dim=1)
    tags = [at // n]
    for pointer in reversed(pointers):
        at = pointer.gather(1, at)
        tags.append(at // n)
    tags.reverse()
    empty = (lengths == 0)[:, None]
    return torch.stack(tags, dim=2), torch.where(empty, 0.0, scores)


def _largest(x: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Return the n largest along the last dimension with their places."""
    if n > 1:
        return x.topk(n, dim=-1)
    return x.max(dim=-1, keepdim=True)
