"""Best taggings, n best ones, and samples: in the compiled core on the CPU, otherwise in plain PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor

from crfkit.torch import native, operators
from crfkit.torch.checks import UNKNOWN, check_possible
from crfkit.torch.paths import best_paths
from crfkit.torch.recursions import LOWEST, active, backward_messages, finite, with_boundaries
from crfkit.torch.scores import Scores

Tagging = tuple[list[int], float]


def decode(scores: Scores) -> list[list[int]]:
    """Return the best tags of each sequence."""
    tags = operators.viterbi(*scores)
    return [row[:length] for row, length in zip(tags.tolist(), scores.lengths.tolist(), strict=True)]


@torch.compiler.disable
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


@torch.compiler.disable
def sample(scores: Scores, n: int, generator: torch.Generator | None) -> Tensor:
    """Return n samples [n, B, T] of the tags, −100 in the padding."""
    u, P, lengths = _plain(scores)
    if scores.limited:
        operators.viterbi(*scores)  # checks that a tagging is left
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
