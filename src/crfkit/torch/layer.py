"""A CRF on top of a network: `crfkit.torch.CRF`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from crfkit.errors import option_error
from crfkit.torch import decoding, likelihood
from crfkit.torch.checks import check_emissions, check_shape, lengths_of
from crfkit.torch.constraints import Limits
from crfkit.torch.scores import Scores, expected_score, log_partition
from crfkit.torch.spans import chances_of_spans


class CRF(nn.Module):
    """A linear-chain CRF whose label scores come from a network, with the names and semantics of pytorch-crf.

    The score of tags y is start(y_0) + Σ_t emission_t(y_t) + Σ_t transition(y_{t−1}, y_t) + end(y_T). Emissions are
    (time, batch, tags), or (batch, time, tags) with `batch_first`. A mask is True (or 1) for the steps of a sequence;
    padding follows them. A sequence may have no steps at all: its log-likelihood is 0 and its tags are [].

    Scores of half precision are widened to float32, and sums over time are double, inside autocast as well.

    Parameters
    ----------
    num_tags : how many tags there are.
    batch_first : whether the batch is the first dimension of emissions, tags and masks. Default: time is.
    allowed : [num_tags, num_tags] booleans: whether tag j may follow tag i. Default: all may.
    allowed_start, allowed_end : [num_tags] booleans: whether a sequence may begin or end with a tag. Default: all may.
    labels : the tags' names, in their order: for `scheme` and `span_probabilities`.
    scheme : how the labels mark phrases: "iob1", "iob2", "ioe1", "ioe2", "iobes" or "bilou". Tags that break the scheme
        get the probability 0. Default: no such constraint.

    Examples
    --------
    >>> layer = CRF(3, batch_first=True, labels=["O", "B-X", "I-X"], scheme="iob2")
    >>> emissions = torch.zeros(1, 4, 3)
    >>> emissions[0, :, 2] = 5  # I-X, which may not begin a phrase
    >>> loss = -layer(emissions, torch.tensor([[0, 1, 2, -100]]), reduction="mean")
    >>> layer.decode(emissions)
    [[1, 2, 2, 2]]
    >>> layer.marginals(emissions)[0, 0, 2].item()
    0.0
    """

    def __init__(
        self,
        num_tags: int,
        batch_first: bool = False,
        *,
        allowed: Any = None,
        allowed_start: Any = None,
        allowed_end: Any = None,
        labels: Sequence[str] | None = None,
        scheme: str | None = None,
    ) -> None:
        if isinstance(num_tags, bool) or not isinstance(num_tags, int) or num_tags < 1:
            raise option_error("num_tags", f" is {num_tags!r}; expected a whole number >= 1")
        super().__init__()
        self.num_tags = num_tags
        self.batch_first = batch_first
        self.labels = None if labels is None else [str(label) for label in labels]
        self.scheme = scheme
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        limits = Limits.make(num_tags, allowed, allowed_start, allowed_end, self.labels, scheme)
        # not in the state dict, which is that of pytorch-crf
        self.register_buffer("_forbidden", limits.jump, persistent=False)
        self.register_buffer("_forbidden_start", limits.start, persistent=False)
        self.register_buffer("_forbidden_end", limits.end, persistent=False)
        self._limited = limits.any
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters from uniform(−0.1, 0.1)."""
        for parameter in (self.start_transitions, self.end_transitions, self.transitions):
            nn.init.uniform_(parameter, -0.1, 0.1)

    def extra_repr(self) -> str:
        scheme = f", scheme={self.scheme!r}" if self.scheme else ""
        return f"num_tags={self.num_tags}, batch_first={self.batch_first}{scheme}"

    # --- losses

    def forward(
        self,
        emissions: Tensor,
        tags: Tensor,
        mask: Tensor | None = None,
        reduction: str = "sum",
        *,
        token_weights: Tensor | None = None,
    ) -> Tensor:
        """Return the log-likelihood of tags; its negative is the loss to minimise.

        tags: (time, batch) integers, −100 where the tag is not known; or (time, batch, num_tags) booleans, True where a
        tag is possible. Then it is the log-probability of all taggings that agree. Inside torch.compile, use booleans.
        reduction: "none" (one value per sequence), "sum", "mean" (over sequences), "token_mean" (over steps).
        token_weights: (time, batch), the weight of each step; step t counts log p(tag t | the tags before it).
        """
        if reduction not in likelihood.REDUCTIONS:
            raise option_error("reduction", f" is {reduction!r}; expected one of {', '.join(likelihood.REDUCTIONS)}")
        scores = self._scores(emissions, mask)
        shape = tuple(emissions.shape[:2])
        sets = isinstance(tags, Tensor) and tags.dtype == torch.bool
        check_shape("tags", tags, (*shape, self.num_tags) if sets else shape, emissions.device)
        if token_weights is not None:
            check_shape("token_weights", token_weights, shape, emissions.device)
            token_weights = self._rows(token_weights)
        found = likelihood.log_likelihood(scores, self._rows(tags), token_weights)
        return likelihood.reduced(found, scores.lengths, reduction).to(scores.u.dtype)

    def log_partition(self, emissions: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return log Z of each sequence, (batch)."""
        scores = self._scores(emissions, mask)
        return log_partition(scores).log_z.to(scores.u.dtype)

    def entropy(self, emissions: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the entropy of the tagging of each sequence in nats, (batch); differentiable."""
        scores = self._scores(emissions, mask)
        beliefs = log_partition(scores)
        return (beliefs.log_z - expected_score(beliefs, scores)).to(scores.u.dtype)

    def kl(self, other: CRF, emissions: Tensor, other_emissions: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return KL(self ‖ other) of each sequence in nats, (batch): how much the other layer's distribution misses.

        For distillation, self is the teacher (with detached emissions) and other the student.
        """
        if other.num_tags != self.num_tags or other.batch_first != self.batch_first:
            raise option_error("other", f" is CRF({other.extra_repr()}); expected the same as CRF({self.extra_repr()})")
        p, q = self._scores(emissions, mask), other._scores(other_emissions, mask)
        if p.u.shape != q.u.shape:
            raise option_error(
                "other_emissions", f" have the shape {tuple(other_emissions.shape)}; expected {tuple(emissions.shape)}"
            )
        return likelihood.divergence(p, q).to(p.u.dtype)

    # --- answers

    def marginals(self, emissions: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return p(tag at step t | x) in the order of the emissions, 0 in the padding; differentiable."""
        return self._rows(log_partition(self._scores(emissions, mask)).node)

    @torch.no_grad()
    def decode(self, emissions: Tensor, mask: Tensor | None = None) -> list[list[int]]:
        """Return the most probable tags of each sequence."""
        return decoding.decode(self._scores(emissions, mask))

    @torch.no_grad()
    def nbest(self, emissions: Tensor, n: int, mask: Tensor | None = None) -> list[list[tuple[list[int], float]]]:
        """Return the n best taggings of each sequence with their scores, best first; fewer where no more exist.

        ``exp(score − log_partition)`` is the probability of a tagging.
        """
        _check_count("n", n)
        return decoding.nbest(self._scores(emissions, mask), n)

    @torch.no_grad()
    def sample(
        self, emissions: Tensor, mask: Tensor | None = None, n: int = 1, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return n exact samples of the tags, (n, time, batch) or (n, batch, time); −100 in the padding."""
        _check_count("n", n)
        drawn = decoding.sample(self._scores(emissions, mask), n, generator)
        return drawn if self.batch_first else drawn.transpose(1, 2)

    @torch.no_grad()
    def span_probabilities(
        self, emissions: Tensor, spans: Sequence[tuple[int, int, int, str]], mask: Tensor | None = None
    ) -> Tensor:
        """Return the probability of spans (sequence, start, end, type): that the tagging has exactly this phrase.

        Ends are exclusive. Needs `labels`.
        """
        if self.labels is None:
            raise option_error("labels", " are not given: CRF(…, labels=[…]) names the tags that mark phrases")
        return chances_of_spans(self._scores(emissions, mask), self.labels, spans)

    # --- inputs

    def _rows(self, x: Tensor) -> Tensor:
        """Return x with the batch first, or what has the batch first in the caller's order."""
        return x if self.batch_first else x.transpose(0, 1)

    def _scores(self, emissions: Tensor, mask: Tensor | None) -> Scores:
        """Check what was given; return it with the batch first, in float32 or float64, −inf where forbidden."""
        parameters = self.transitions
        check_emissions(emissions, self.num_tags, parameters.device, self.batch_first)
        dtype = torch.promote_types(torch.promote_types(emissions.dtype, parameters.dtype), torch.float32)
        u = self._rows(emissions).to(dtype)
        if mask is None:
            lengths = torch.full((u.shape[0],), u.shape[1], dtype=torch.int64, device=u.device)
        else:
            check_shape("mask", mask, tuple(emissions.shape[:2]), emissions.device)
            lengths = lengths_of(self._rows(mask))
        start, P, end = self.start_transitions.to(dtype), parameters.to(dtype), self.end_transitions.to(dtype)
        if self._limited:
            start = start.masked_fill(self._forbidden_start, -torch.inf)
            end = end.masked_fill(self._forbidden_end, -torch.inf)
            P = P.masked_fill(self._forbidden, -torch.inf)
        return Scores(u, start, P, end, lengths, self._limited)


def _check_count(name: str, n: int) -> None:
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise option_error(name, f" is {n!r}; expected a whole number >= 1")
