"""Checks of what a grid layer is given, before any work: shapes, devices, masks, labels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from crfkit.errors import DataError
from crfkit.torch.checks import UNKNOWN, check_shape


def check_unary(unary: Any, n_labels: int, device: torch.device, channels_last: bool) -> None:
    order = "(batch, height, width, labels)" if channels_last else "(batch, labels, height, width)"
    if not isinstance(unary, Tensor):
        raise DataError(f"unary scores are a {type(unary).__name__}; expected a tensor {order}")
    if unary.dim() != 4:
        raise DataError(f"unary scores have {unary.dim()} dimensions; expected 4: {order}")
    found = unary.shape[3 if channels_last else 1]
    if found != n_labels:
        other = "False" if channels_last else "True"
        hint = f"; pass channels_last={other} if the labels are elsewhere" if n_labels in unary.shape else ""
        raise DataError(f"unary scores have {found} labels; expected {n_labels}, as num_labels says{hint}")
    if 0 in unary.shape:
        raise DataError(f"unary scores have the shape {tuple(unary.shape)}; expected at least one image and pixel")
    if not unary.dtype.is_floating_point:
        raise DataError(f"unary scores are of type {unary.dtype}; expected floating-point scores")
    if unary.device != device:
        raise DataError(f"unary scores are on {unary.device}, the layer on {device}; move one of them with .to(device)")


def check_goes_with(name: str, given: Any, shape: tuple[int, ...], device: torch.device) -> None:
    """Raise DataError if a tensor that goes with the unary scores does not."""
    check_shape(name, given, shape, device, "unary scores")


def check_image(image: Any, unary_shape: tuple[int, ...], device: torch.device, channels_last: bool) -> None:
    """Raise DataError unless the image has a channel or more for each pixel of the unary scores."""
    order = "(batch, height, width, channels)" if channels_last else "(batch, channels, height, width)"
    if not isinstance(image, Tensor) or image.dim() != 4:
        found = f"{image.dim()} dimensions" if isinstance(image, Tensor) else f"the type {type(image).__name__}"
        raise DataError(f"the image has {found}; expected a tensor {order}")
    axis = 3 if channels_last else 1
    expected = list(unary_shape)
    expected[axis] = image.shape[axis]
    check_goes_with("the image", image, tuple(expected), device)
    if image.shape[axis] == 0:
        raise DataError("the image has no channels; expected at least one")
    if image.dtype.is_complex or image.dtype == torch.bool:
        raise DataError(f"the image is of type {image.dtype}; expected numbers")


@torch.library.custom_op("crfkit::grid_unary", mutates_args=())
def possible_scores(u: Tensor, inside: Tensor) -> Tensor:
    """Return u [B, L, H, W] with 0 outside the mask; raise DataError where all labels of a pixel are −inf."""
    found = torch.where(inside, u, 0.0).contiguous()
    bad = torch.isneginf(found).all(1)
    if bool(bad.any()):
        n, y, x = bad.nonzero()[0].tolist()
        raise DataError(f"image {n}, pixel ({y}, {x}): unary scores of -inf forbid all labels; leave it one at least")
    return found


@possible_scores.register_fake
def _(u: Tensor, inside: Tensor) -> Tensor:
    return u.new_empty(u.shape)


def _keep_inside(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[1])


def _unary_gradient(ctx: Any, found: Tensor) -> tuple[Tensor, None]:
    return torch.where(ctx.saved_tensors[0], found, 0.0), None


possible_scores.register_autograd(_unary_gradient, setup_context=_keep_inside)


@torch.library.custom_op("crfkit::grid_labels", mutates_args=())
def known_labels(labels: Tensor, inside: Tensor, u: Tensor) -> Tensor:
    """Return which labels [B, H, W] are known and inside the mask; raise DataError where one is not possible."""
    n_labels = u.shape[1]
    known = inside[:, 0] & (labels != UNKNOWN)
    wrong = known & ((labels < 0) | (labels >= n_labels))
    if bool(wrong.any()):
        n, y, x = wrong.nonzero()[0].tolist()
        raise DataError(
            f"labels of image {n}, pixel ({y}, {x}): {int(labels[n, y, x])} is not a label; expected "
            f"0 … {n_labels - 1}, or {UNKNOWN} where the label is not known"
        )
    chosen = u.gather(1, torch.where(known, labels, 0)[:, None])[:, 0]
    forbidden = known & torch.isneginf(chosen)
    if bool(forbidden.any()):
        n, y, x = forbidden.nonzero()[0].tolist()
        raise DataError(
            f"labels of image {n}, pixel ({y}, {x}): unary scores of -inf forbid its label {int(labels[n, y, x])}; "
            "correct the label or the scores"
        )
    return known


@known_labels.register_fake
def _(labels: Tensor, inside: Tensor, u: Tensor) -> Tensor:
    return torch.empty_like(labels, dtype=torch.bool)
