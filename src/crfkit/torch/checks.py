"""Checks of what a CRF layer is given, before any work: shapes, devices, masks, tags."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from crfkit.errors import DataError

UNKNOWN = -100  # the tag of a position whose label is not known, as PyTorch's losses have it


def check_emissions(emissions: Tensor, n_tags: int, device: torch.device, batch_first: bool) -> None:
    order = "(batch, time, tags)" if batch_first else "(time, batch, tags)"
    if not isinstance(emissions, Tensor):
        raise DataError(f"emissions are a {type(emissions).__name__}; expected a tensor {order}")
    if emissions.dim() != 3:
        raise DataError(f"emissions have {emissions.dim()} dimensions; expected 3: {order}")
    if emissions.shape[2] != n_tags:
        raise DataError(f"emissions have {emissions.shape[2]} tags; expected {n_tags}, as num_tags says")
    if emissions.shape[0] == 0 or emissions.shape[1] == 0:
        raise DataError(f"emissions have the shape {tuple(emissions.shape)}; expected at least one sequence and step")
    if not emissions.dtype.is_floating_point:
        raise DataError(f"emissions are of type {emissions.dtype}; expected floating-point scores")
    if emissions.device != device:
        raise DataError(
            f"emissions are on {emissions.device}, the layer on {device}; move one of them with .to(device)"
        )


def check_shape(name: str, given: Any, shape: tuple[int, ...], device: torch.device, scores: str = "emissions") -> None:
    """Raise DataError if a tensor that goes with the network's scores does not."""
    if not isinstance(given, Tensor):
        raise DataError(f"{name} is a {type(given).__name__}; expected a tensor {shape}")
    if tuple(given.shape) != shape:
        raise DataError(f"{name} has the shape {tuple(given.shape)}; expected {shape}, as the {scores} have it")
    if given.device != device:
        raise DataError(f"{name} is on {given.device}, the {scores} on {device}; move one of them with .to(device)")


@torch.library.custom_op("crfkit::chain_lengths", mutates_args=())
def lengths_of(mask: Tensor) -> Tensor:
    """Return the length of each sequence of a mask [B, T] whose padding is behind it; raise DataError if it is not."""
    inside = mask.bool()
    lengths = inside.sum(1)
    wrong = inside != (torch.arange(mask.shape[1], device=mask.device) < lengths[:, None])
    if bool(wrong.any()):
        n, t = wrong.nonzero()[0].tolist()
        what = "its first step is off" if t == 0 else f"step {t} is off, but a later one is on"
        raise DataError(
            f"mask of sequence {n}: {what}. Padding must follow a sequence; remove the steps in between, for example "
            "with one step per word where words have several pieces"
        )
    return lengths


@lengths_of.register_fake
def _(mask: Tensor) -> Tensor:
    return mask.new_empty(mask.shape[0], dtype=torch.int64)


@torch.library.custom_op("crfkit::chain_tags", mutates_args=())
def known_tags(
    tags: Tensor, lengths: Tensor, n_tags: int, start: Tensor, P: Tensor, end: Tensor, limited: bool
) -> Tensor:
    """Return tags [B, T] with 0 in the padding; raise DataError where one is out of range or is forbidden (−inf)."""
    inside = torch.arange(tags.shape[1], device=tags.device) < lengths[:, None]
    wrong = inside & ((tags < 0) | (tags >= n_tags))
    if bool(wrong.any()):
        n, t = wrong.nonzero()[0].tolist()
        if int(tags[n, t]) == UNKNOWN:
            raise DataError(
                f"tags of sequence {n}, step {t}: {UNKNOWN}, an unknown tag, cannot be used in a program that "
                "torch.compile has made; give sets of possible tags, booleans with a dimension more"
            )
        raise DataError(
            f"tags of sequence {n}, step {t}: {int(tags[n, t])} is not a tag; expected 0 … {n_tags - 1}, or {UNKNOWN} "
            "where the tag is not known"
        )
    found = torch.where(inside, tags, 0)
    if limited:
        _check_allowed(found, inside, lengths, start, P, end)
    return found


@known_tags.register_fake
def _(tags: Tensor, lengths: Tensor, n_tags: int, start: Tensor, P: Tensor, end: Tensor, limited: bool) -> Tensor:
    return torch.empty_like(tags)


def _check_allowed(tags: Tensor, inside: Tensor, lengths: Tensor, start: Tensor, P: Tensor, end: Tensor) -> None:
    bad_start = inside[:, 0] & torch.isneginf(start)[tags[:, 0]]
    if bool(bad_start.any()):
        n = int(bad_start.nonzero()[0])
        raise DataError(f"tags of sequence {n}: the constraints do not let a sequence begin with tag {int(tags[n, 0])}")
    bad = inside[:, 1:] & torch.isneginf(P)[tags[:, :-1], tags[:, 1:]]
    if bool(bad.any()):
        n, t = bad.nonzero()[0].tolist()
        raise DataError(
            f"tags of sequence {n}, step {t + 1}: the constraints do not let tag {int(tags[n, t + 1])} follow tag "
            f"{int(tags[n, t])}; correct the tags or the constraints"
        )
    last = tags.gather(1, (lengths - 1).clamp(min=0)[:, None])[:, 0]
    bad_end = inside[:, 0] & torch.isneginf(end)[last]
    if bool(bad_end.any()):
        n = int(bad_end.nonzero()[0])
        raise DataError(f"tags of sequence {n}: the constraints do not let a sequence end with tag {int(last[n])}")


def check_possible(log_z: Tensor) -> None:
    """Raise DataError if no labelling of a sequence is left."""
    bad = torch.isneginf(log_z)
    if bool(bad.any()):
        n = int(bad.nonzero()[0])
        raise DataError(
            f"sequence {n}: no labelling is left by the constraints, the tags that are possible and emissions of -inf"
        )
