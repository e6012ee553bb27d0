"""Images with their masks: read, checked, divided, compared with what a model finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit.errors import DataError, ParameterError
from crfkit.estimators.segmenter_blocks import check_size
from crfkit.estimators.segmenter_model import SegmenterModel
from crfkit.readers.images import Image, Mask, as_list, read_image, read_mask


@dataclass(frozen=True)
class StrengthPoint:
    """One strength of the search: how its model did."""

    strength: float
    error: float  # share of wrong pixels of the validation set
    nonzeros: int  # weights that are not zero
    value: float  # of the objective
    iterations: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Pairs:
    """Images and masks of equal sizes."""

    images: list[Image]
    masks: list[Mask]
    names: list[str]  # of the masks, for messages

    @classmethod
    def read(cls, images: Any, masks: Any, multiclass: bool) -> Pairs:
        """From lists of arrays or paths."""
        given, of = as_list(images, "images"), as_list(masks, "masks")
        if len(given) != len(of):
            raise DataError(f"{len(of)} masks for {len(given)} images")
        if not given:
            raise DataError("there are no images")
        pictures = [read_image(image, f"image {k}") for k, image in enumerate(given)]
        labels = [read_mask(mask, f"mask {k}", multiclass) for k, mask in enumerate(of)]
        names = [_name(mask, f"mask {k}") for k, mask in enumerate(of)]
        for k, (picture, label) in enumerate(zip(pictures, labels, strict=True)):
            check_size(picture, label, _name(given[k], f"image {k}"), names[k])
        return cls(pictures, labels, names)

    def draw(self, fraction: float, seed: int) -> tuple[Pairs, Pairs]:
        """(the others, a random share)."""
        if not 0 < fraction < 1:
            raise ParameterError(f"validation_fraction must be between 0 and 1, not {fraction!r}")
        n = len(self.images)
        count = max(1, round(fraction * n))
        if count >= n:
            raise DataError(f"{n} images are too few to keep {count} for validation; give a validation set")
        order = np.random.default_rng(seed).permutation(n).tolist()
        return self._take(sorted(order[count:])), self._take(sorted(order[:count]))

    def _take(self, ids: Sequence[int]) -> Pairs:
        return Pairs([self.images[k] for k in ids], [self.masks[k] for k in ids], [self.names[k] for k in ids])

    def classes(self, multiclass: bool) -> NDArray[Any]:
        """The values of all masks, sorted; two, unless there may be more."""
        seen: set[int] = set()
        for mask, name in zip(self.masks, self.names, strict=True):
            seen |= set(np.unique(mask).tolist())
            if len(seen) > 2 and not multiclass:
                raise DataError(f"{name} makes it {len(seen)} values in all masks {sorted(seen)}; expected two")
        if len(seen) == 1:
            raise DataError(f"every pixel of the masks is {seen.pop()}; expected two classes or more")
        return np.array(sorted(seen))

    def error(self, model: SegmenterModel, values: Sequence[Image]) -> float:
        """The share of wrong pixels, from raw features that are there."""
        wrong = sum(
            int((model.segment_features(v, mask.shape, False).mask != mask).sum())
            for v, mask in zip(values, self.masks, strict=True)
        )
        return wrong / sum(mask.size for mask in self.masks)


def _name(given: Any, otherwise: str) -> str:
    return str(given) if isinstance(given, (str, Path)) else otherwise
