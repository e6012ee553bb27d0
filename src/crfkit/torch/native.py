"""The compiled core on tensors of the CPU. Functions return None where it is not there or the tensors are elsewhere."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crfkit.torch.recursions import Beliefs

Tagging = tuple[list[int], float]


_AVAILABLE = find_spec("crfkit._core") is not None


def available() -> bool:
    """Return whether the compiled core is there."""
    return _AVAILABLE


def _takes(u: Tensor) -> bool:
    return u.device.type == "cpu" and u.dtype in (torch.float32, torch.float64) and available()


def _arrays(
    u: Tensor, start: Tensor, P: Tensor, end: Tensor, lengths: Tensor
) -> tuple[Any, bool, Any, Any, Any, Any, int]:
    """Return what the core takes, with the number of threads; without a copy where the batch or time is first."""
    u = u.detach()
    time_first = not u.is_contiguous() and u.transpose(0, 1).is_contiguous()
    rows = u.transpose(0, 1) if time_first else u.contiguous()
    a, m, z = (x.detach().contiguous().numpy() for x in (start, P, end))
    return rows.numpy(), time_first, a, m, z, lengths.contiguous().numpy(), torch.get_num_threads()


def beliefs(u: Tensor, start: Tensor, P: Tensor, end: Tensor, lengths: Tensor, tags: Tensor | None) -> Beliefs | None:
    """Return log Z, node marginals and expected transitions, minus what tags have of them."""
    if not _takes(u):
        return None
    from crfkit import _core

    batch, _, n = u.shape
    log_z, node = torch.empty(batch, dtype=torch.float64), torch.empty(u.shape, dtype=u.dtype)
    edge = torch.empty(batch, n, n, dtype=u.dtype)
    arrays = _arrays(u, start, P, end, lengths)
    outputs = log_z.numpy(), node.view(-1).numpy(), edge.view(-1).numpy()
    _core.dense_beliefs(*arrays, *outputs, None if tags is None else tags.contiguous().numpy())
    return Beliefs(log_z, node, edge)


def covariances(
    u: Tensor, start: Tensor, P: Tensor, end: Tensor, lengths: Tensor, du: Tensor, dP: Tensor
) -> tuple[Tensor, Tensor] | None:
    """Return the derivatives of (node, edge) along du and dP; computed in double."""
    if not _takes(u):
        return None
    from crfkit import _core

    node, edge = torch.empty(u.shape, dtype=torch.float64), torch.empty(dP.shape, dtype=torch.float64)
    arrays = _arrays(u.double(), start.double(), P.double(), end.double(), lengths)
    d_u, d_P = (x.detach().double().contiguous().numpy() for x in (du, dP))
    _core.dense_covariances(*arrays, d_u, d_P, node.view(-1).numpy(), edge.view(-1).numpy())
    return node.to(u.dtype), edge.to(u.dtype)


def viterbi(u: Tensor, start: Tensor, P: Tensor, end: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return (the best tags [B, T], their scores [B])."""
    if not _takes(u):
        return None
    from crfkit import _core

    tags, scores = torch.empty(u.shape[:2], dtype=torch.int32), torch.empty(len(u), dtype=torch.float64)
    arrays = _arrays(u, start, P.double(), end, lengths)
    _core.dense_viterbi(*arrays, tags.view(-1).numpy(), scores.numpy())
    return tags, scores


def nbest(u: Tensor, start: Tensor, P: Tensor, end: Tensor, lengths: Tensor, n: int) -> list[list[Tagging]] | None:
    """Return the n best taggings of each sequence: every step is a position whose only attribute is its own."""
    if not _takes(u):
        return None
    from crfkit.chain.data import SequenceData
    from crfkit.chain.fields.field import ChainField
    from crfkit.chain.inference import ChainInference
    from crfkit.torch.recursions import active, finite, with_boundaries

    rows = with_boundaries(u.double(), start.double(), end.double(), lengths)[active(lengths, u.shape[1])].numpy()
    P = P.double()
    counts = lengths.numpy()
    positions = np.arange(len(rows) + 1, dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    data = SequenceData(starts, positions, positions[:-1].astype(np.int32))
    allowed = (~torch.isneginf(P)).numpy()
    field = ChainField(P.shape[0], len(rows), n_transition=P.numel(), allowed=None if allowed.all() else allowed)
    w = np.concatenate([finite(torch.from_numpy(rows)).numpy().ravel(), finite(P).numpy().ravel()])
    inference = ChainInference(field, w, torch.get_num_threads())
    limits = ~np.isneginf(rows)
    found = inference.nbest(data, n, None if limits.all() else limits)
    return [[(tags.tolist(), score) for tags, score in paths] for paths in found]
