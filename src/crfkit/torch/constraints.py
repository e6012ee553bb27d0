"""Which tags a layer forbids: matrices, or a tagging scheme of named labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from crfkit.chain.fields.constraints import SCHEMES, Constraints, make_constraints
from crfkit.errors import option_error
from crfkit.names import unknown_name


class Limits(NamedTuple):
    """Tags that are forbidden after each other, at the start and at the end."""

    jump: Tensor  # [L, L]
    start: Tensor  # [L]
    end: Tensor  # [L]

    @property
    def any(self) -> bool:
        return any(bool(mask.any()) for mask in self)

    @classmethod
    def make(
        cls,
        n_tags: int,
        allowed: Any,
        allowed_start: Any,
        allowed_end: Any,
        labels: Sequence[str] | None,
        scheme: str | None,
    ) -> Limits:
        """Return what the options of :class:`crfkit.torch.CRF` forbid together."""
        if labels is not None and len(labels) != n_tags:
            raise option_error("labels", f" are {len(labels)}; expected num_tags = {n_tags}")
        if labels is not None and len(set(labels)) != n_tags:
            raise option_error("labels", " must be distinct")
        found = Constraints()
        if scheme is not None:
            if labels is None:
                raise option_error("scheme", f" is {scheme!r}, but the tags have no names; give labels=[…]")
            if scheme not in SCHEMES or scheme == "observed":
                raise unknown_name("scheme", scheme, SCHEMES[:-1])
            found = make_constraints(scheme, labels)
        jump = _forbidden("allowed", allowed, (n_tags, n_tags)) | _forbidden("", found.allowed, (n_tags, n_tags))
        start = _forbidden("allowed_start", allowed_start, (n_tags,)) | _forbidden("", found.allowed_start, (n_tags,))
        end = _forbidden("allowed_end", allowed_end, (n_tags,)) | _forbidden("", found.allowed_end, (n_tags,))
        if bool(start.all()) or bool(end.all()):
            raise option_error("allowed_start" if bool(start.all()) else "allowed_end", " allows no tag at all")
        return cls(jump, start, end)


def _forbidden(name: str, allowed: Any, shape: tuple[int, ...]) -> Tensor:
    if allowed is None:
        return torch.zeros(shape, dtype=torch.bool)
    given = allowed.detach().cpu().numpy() if isinstance(allowed, Tensor) else np.asarray(allowed)
    if given.shape != shape:
        raise option_error(name, f" has the shape {given.shape}; expected {shape}")
    if given.dtype.kind not in "bui" or not np.isin(given, (0, 1)).all():
        raise option_error(name, f" is of type {given.dtype}; expected booleans, True where a tag is allowed")
    return torch.from_numpy(~given.astype(bool))
