"""The chain's recursions as operators that PyTorch can differentiate twice and need not look into (torch.compile).

`beliefs` returns log Z, node marginals and expected transitions; with tags, minus their score and counts. Either way
the gradient of its first output is made of the others, and theirs of covariances, which `covariances` returns. On the
CPU the compiled core computes them if it is there, otherwise :mod:`crfkit.torch.recursions`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from crfkit.torch import native, paths, recursions
from crfkit.torch.checks import check_possible

# The operators take part in autocast as they are: their inputs have been widened to float32 or better.


@torch.library.custom_op("crfkit::chain_beliefs", mutates_args=())
def beliefs(
    u: Tensor, start: Tensor, P: Tensor, end: Tensor, lengths: Tensor, limited: bool, tags: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (log Z [B], node marginals [B, T, L], expected transitions [B, L, L]), minus those of tags [B, T].

    `limited`: constraints forbid something. Raises DataError if no labelling of a sequence is left.
    """
    with torch.autocast(u.device.type, enabled=False):
        found = native.beliefs(u, start, P, end, lengths, tags)
        if found is None:
            u = recursions.with_boundaries(u, start, end, lengths)
            found = recursions.beliefs(u, P, lengths)
            if tags is not None:
                found = recursions.without(found, recursions.counts(u, P, lengths, tags))
    if limited or u.device.type == "cpu":  # elsewhere it has to wait for the device
        check_possible(found.log_z)
    return found.log_z, found.node, found.edge


@beliefs.register_fake
def _(
    u: Tensor, start: Tensor, P: Tensor, end: Tensor, lengths: Tensor, limited: bool, tags: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    batch, _, n = u.shape
    log_z = u.new_empty(batch, dtype=recursions.accumulator(u))
    return log_z, u.new_empty(u.shape), u.new_empty(batch, n, n)


@torch.library.custom_op("crfkit::chain_covariances", mutates_args=())
def covariances(
    u: Tensor, start: Tensor, P: Tensor, end: Tensor, lengths: Tensor, du: Tensor, dP: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the derivatives of (node, edge) along du [B, T, L] and dP [B, L, L]."""
    with torch.autocast(u.device.type, enabled=False):
        found = native.covariances(u, start, P, end, lengths, du, dP)
        if found is None:
            found = recursions.tangents(recursions.with_boundaries(u, start, end, lengths), P, lengths, du, dP)
        return found


@covariances.register_fake
def _(
    u: Tensor, start: Tensor, P: Tensor, end: Tensor, lengths: Tensor, du: Tensor, dP: Tensor
) -> tuple[Tensor, Tensor]:
    return u.new_empty(u.shape), torch.empty_like(dP)


@torch.library.custom_op("crfkit::chain_viterbi", mutates_args=())
def viterbi(u: Tensor, start: Tensor, P: Tensor, end: Tensor, lengths: Tensor, limited: bool) -> Tensor:
    """Return the best tags [B, T] as 32-bit integers, anything in the padding; raise DataError where none are left."""
    found = native.viterbi(u, start, P, end, lengths)
    if found is None:
        u = recursions.with_boundaries(u, start, end, lengths)
        found = paths.viterbi(recursions.finite(u), recursions.finite(P), lengths)
    tags, best = found
    if limited or u.device.type == "cpu":
        check_possible(best)
    return tags.int()


@viterbi.register_fake
def _(u: Tensor, start: Tensor, P: Tensor, end: Tensor, lengths: Tensor, limited: bool) -> Tensor:
    return u.new_empty(u.shape[:2], dtype=torch.int32)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    u, start, P, end, lengths, *_ = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(u, start, P, end, lengths, output[1], output[2])


def _gradient(
    ctx: Any, of_log_z: Tensor | None, of_node: Tensor | None, of_edge: Tensor | None
) -> tuple[Tensor | None, ...]:
    u, start, P, end, lengths, node, edge = ctx.saved_tensors
    with torch.autocast(u.device.type, enabled=False):
        d_u = d_P = None
        if of_log_z is not None:
            by = of_log_z.to(u.dtype)
            d_u, d_P = by[:, None, None] * node, (by @ edge.flatten(1)).view_as(P)
        if of_node is not None or of_edge is not None:
            du = torch.zeros_like(u) if of_node is None else of_node
            dP = torch.zeros_like(edge) if of_edge is None else of_edge
            more_u, more_edge = covariances(u, start, P, end, lengths, du, dP)
            d_u = more_u if d_u is None else d_u + more_u
            d_P = more_edge.sum(0) if d_P is None else d_P + more_edge.sum(0)
        if d_u is None:
            return (None,) * 7
        last = (lengths - 1).clamp(min=0)
        d_end = d_u[torch.arange(len(u), device=u.device), last].sum(0)
        return d_u, d_u[:, 0].sum(0), d_P, d_end, None, None, None


beliefs.register_autograd(_gradient, setup_context=_keep)
