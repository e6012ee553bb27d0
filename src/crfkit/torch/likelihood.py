"""Log-likelihoods of tags that are known, known in part, or weighted; and the divergence of two CRFs."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from crfkit.errors import DataError
from crfkit.torch.checks import UNKNOWN, check_possible, known_tags
from crfkit.torch.recursions import LOWEST, accumulator, active, step_log_likelihoods, with_boundaries
from crfkit.torch.scores import Scores, ends, expected_score, log_partition

REDUCTIONS = ("none", "sum", "mean", "token_mean")


def log_likelihood(scores: Scores, tags: Tensor, token_weights: Tensor | None) -> Tensor:
    """Return log p(tags), [B]: of tags [B, T], −100 where unknown, or of sets of tags [B, T, L]."""
    n_tags = scores.u.shape[2]
    if tags.dtype != torch.bool:
        if tags.dtype.is_floating_point or tags.dtype.is_complex:
            raise DataError(f"tags are of type {tags.dtype}; expected integers, or booleans for sets of tags")
        tags = tags.long()
        # Compiled programs cannot branch on values: there, unknown tags are an error that asks for sets.
        if torch.compiler.is_compiling() or not bool((_inside(scores) & (tags == UNKNOWN)).any()):
            tags = known_tags(tags, scores.lengths, n_tags, scores.start, scores.P, scores.end, scores.limited)
            if token_weights is None:
                return -log_partition(scores, tags).log_z
            tags = functional.one_hot(tags, n_tags).bool()
        else:
            tags = _sets(scores, tags)
    if token_weights is not None:
        return _weighted(scores, tags, token_weights)
    return log_partition(scores.only(tags)).log_z - log_partition(scores).log_z


def _inside(scores: Scores) -> Tensor:
    return active(scores.lengths, scores.u.shape[1])


def _sets(scores: Scores, tags: Tensor) -> Tensor:
    """Return the sets of possible tags of tags that are known in part."""
    known = tags != UNKNOWN
    n_tags = scores.u.shape[2]
    free = torch.zeros(n_tags, dtype=scores.u.dtype, device=scores.u.device)
    checked = known_tags(
        torch.where(known, tags, 0), scores.lengths, n_tags, free, free.expand(n_tags, n_tags), free, False
    )
    return functional.one_hot(checked, n_tags).bool() | ~known[:, :, None]


def _weighted(scores: Scores, possible: Tensor, token_weights: Tensor) -> Tensor:
    """Return Σ_t weight_t · log p(y_t in K_t | the K before)."""
    u = with_boundaries(scores.u, scores.start, scores.end, scores.lengths)
    steps = step_log_likelihoods(u, scores.P, scores.lengths, possible)
    if not torch.compiler.is_compiling():
        check_possible(torch.where(steps.sum(1) < LOWEST / 2, -torch.inf, 0.0))
    weights = torch.where(_inside(scores), token_weights.to(steps.dtype), 0.0)
    return (weights * steps).sum(1, dtype=accumulator(u))


def reduced(found: Tensor, lengths: Tensor, reduction: str) -> Tensor:
    if reduction == "sum":
        return found.sum()
    if reduction == "mean":
        return found.mean()
    if reduction == "token_mean":
        return found.sum() / lengths.sum()
    return found


def divergence(p: Scores, q: Scores) -> Tensor:
    """Return KL(p ‖ q), [B]; infinite where q forbids what p does not."""
    of_p, log_z = log_partition(p), log_partition(q).log_z
    found = expected_score(of_p, p) - of_p.log_z - expected_score(of_p, q) + log_z
    if not q.limited:
        return found
    first, last = ends(of_p.node, p.lengths)
    missed = (
        (of_p.edge * torch.isneginf(q.P)).sum((1, 2))
        + (first * torch.isneginf(q.start)).sum(1)
        + (last * torch.isneginf(q.end)).sum(1)
    )
    return torch.where(missed > 0, torch.inf, found)
