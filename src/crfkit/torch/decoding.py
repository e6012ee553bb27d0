"""Best taggings, n best ones, and samples: in the compiled core on the CPU, otherwise in plain PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor

from crfkit.torch import native
from crfkit.torch.checks import UNKNOWN, check_possible
from crfkit.torch.recursions import LOWEST, active, backward_messages, finite, with_boundaries
from crfkit.torch.scores import Scores

Tagging = tuple[list[int], float]


def decode(scores: Scores) -> list[list[int]]:
    """Return the best tags of each sequence."""
    found = native.viterbi(*scores[:5])
    tags, best = viterbi(*_plain(scores)) if found is None else found
    if scores.limited:
        check_possible(best)
    return [row[:length] for row, length in zip(tags.tolist(), scores.lengths.tolist(), strict=True)]


def nbest(scores: Scores, n: int) -> list[list[Tagging]]:
    """Return the n best taggings of each sequence with their scores, best first."""
    found = native.nbest(*scores[:5], n)
    if found is None:
        tags, best = best_paths(*_plain(scores), n)
        found = [
            [(path[:length], score) for path, score in zip(paths, row, strict=True) if score > LOWEST / 2]
            for paths, row, length in zip(tags.tolist(), best.tolist(), scores.lengths.tolist(), strict=True)
        ]
        found = [paths if length else [([], 0.0)] for paths, length in zip(found, scores.lengths.tolist(), strict=True)]
    if scores.limited:
        check_possible(torch.tensor([0.0 if paths else -torch.inf for paths in found]))
    return found


def sample(scores: Scores, n: int, generator: torch.Generator | None) -> Tensor:
    """Return n samples [n, B, T] of the tags, −100 in the padding."""
    u, P, lengths = _plain(scores)
    if scores.limited:
        check_possible(viterbi(u, P, lengths)[1])
    beta = backward_messages(u, P, lengths)
    steps = []
    before: Tensor | None = None
    for t in range(u.shape[1]):
        row = u[:, t] + beta[:, t]
        logits = row.expand(n, *row.shape) if before is None else P[before] + row
        chances = torch.softmax(logits, dim=2).flatten(0, 1)
        before = torch.multinomial(chances, 1, generator=generator).view(n, -1)
        steps.append(before)
    return torch.where(active(lengths, u.shape[1]), torch.stack(steps, dim=2), UNKNOWN)


def _plain(scores: Scores) -> tuple[Tensor, Tensor, Tensor]:
    u = with_boundaries(scores.u, scores.start, scores.end, scores.lengths)
    return finite(u), finite(scores.P), scores.lengths


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
        best, from_ = paths.flatten(1, 2).transpose(1, 2).topk(n, dim=2)  # over (i, k): [B, j, n]
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
