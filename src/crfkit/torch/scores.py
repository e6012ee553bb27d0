"""What a CRF layer computes with: the scores of a batch, and expectations under them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from crfkit.torch import operators
from crfkit.torch.recursions import Beliefs, accumulator, active


class Scores(NamedTuple):
    """Log-potentials of a batch. −inf forbids."""

    u: Tensor  # [B, T, L] of tags
    start: Tensor  # [L]
    P: Tensor  # [L, L] of tag j after tag i
    end: Tensor  # [L]
    lengths: Tensor  # [B]
    limited: bool  # something is forbidden

    def only(self, possible: Tensor) -> Scores:
        """Return the scores of the taggings that keep to `possible` [B, T, L]."""
        return self._replace(u=self.u.masked_fill(~possible, -torch.inf), limited=True)


def log_partition(scores: Scores, tags: Tensor | None = None) -> Beliefs:
    """Return log Z, marginals and expected transitions, minus what tags have of them; all are differentiable."""
    return Beliefs(*operators.beliefs(*scores, tags))


def _product(probability: Tensor, score: Tensor) -> Tensor:
    """Return p · s, 0 where s is −inf, as p is 0 there."""
    return probability * score.masked_fill(torch.isneginf(score), 0.0)


def expected_score(beliefs: Beliefs, scores: Scores) -> Tensor:
    """Return E[score(y)], [B], of taggings with these beliefs."""
    first, last = ends(beliefs.node, scores.lengths)
    exact = accumulator(scores.u)
    inside = active(scores.lengths, scores.u.shape[1])[:, :, None]
    return (
        _product(beliefs.node, torch.where(inside, scores.u, 0.0)).sum((1, 2), dtype=exact)
        + _product(beliefs.edge, scores.P).sum((1, 2), dtype=exact)
        + _product(first, scores.start).sum(1, dtype=exact)
        + _product(last, scores.end).sum(1, dtype=exact)
    )


def ends(node: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows of the first and the last positions, [B, L]."""
    last = (lengths - 1).clamp(min=0)
    return node[:, 0], node[torch.arange(len(node), device=node.device), last]
