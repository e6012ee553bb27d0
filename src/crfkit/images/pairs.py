"""Images with their masks: reading, checking, dividing, and comparing them with what a model finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Array, Samples
from crfkit.errors import DataError, LimitError, ParameterError
from crfkit.files.image_folders import raise_all
from crfkit.files.images import VOID, Image, Mask, MaskRules, as_list, known_values, read_image, resize_nearest
from crfkit.warn import warn_caller
from crfkit.wording import counted

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class Pairs:
    """Hold images and masks of equal sizes."""

    images: list[Image]
    masks: list[Mask]  # VOID where a pixel's class is not known
    names: list[str]  # of the masks, for messages
    image_names: list[str]
    skipped: tuple[str, ...] = ()  # why files were skipped
    notes: tuple[str, ...] = ()  # what a person should know about these files

    @classmethod
    def read(
        cls,
        images: Samples,
        masks: Samples,
        rules: MaskRules,
        classes: Array | None = None,
        skip_bad: bool = False,
    ) -> Pairs:
        """Read lists of arrays or paths. All problems are in one error; with `skip_bad` such pairs are skipped.

        `classes` are the classes of a model, for masks to compare with its own; None for masks to learn from.
        """
        given, of = as_list(images, "images"), as_list(masks, "masks")
        if len(given) != len(of):
            raise DataError(
                f"{counted(len(of), 'mask')} for {counted(len(given), 'image')}; expected one mask per image"
            )
        if not given:
            raise DataError("there are no images; give at least one")
        made = cls([], [], [], [])
        problems: list[str] = []
        resized: list[str] = []
        yes_or_no: list[int] = []
        for k, (image, mask) in enumerate(zip(given, of, strict=True)):
            name, mask_name = _name(image, f"image {k}"), _name(mask, f"mask {k}")
            picture = _attempt(read_image, image, name, problems)
            found = _attempt(rules.read, mask, mask_name, problems)
            if picture is None or found is None:
                continue
            labels, binary = found
            if labels.shape != picture.shape[:2]:
                if not _scaled(labels.shape, picture.shape):
                    sizes = ["×".join(map(str, shape)) for shape in (picture.shape[:2], labels.shape)]
                    problems.append(
                        f"{name} is {sizes[0]} pixels (height×width), {mask_name} {sizes[1]}; expected equal sizes"
                    )
                    continue
                labels = resize_nearest(labels, picture.shape[:2])
                resized.append(mask_name)
            if binary:
                yes_or_no.append(len(made.masks))
            for part, value in zip(made._lists(), (picture, labels, mask_name, name), strict=True):
                part.append(value)
        if not skip_bad:
            raise_all(problems)
        if not made.images:
            raise_all([*problems, "no image is left"])
        notes = []
        if resized:
            notes.append(
                f"{len(resized)} of {len(given)} masks have another size than their image (the first: {resized[0]}); "
                "they were resized to it, each pixel from the nearest"
            )
        masks_now = _agree(made.masks, yes_or_no, rules, classes)
        return cls(made.images, masks_now, made.names, made.image_names, tuple(problems), tuple(notes))

    @classmethod
    def attempt(cls, image: Path, mask: Path, rules: MaskRules, classes: Array, problems: list[str]) -> Pairs | None:
        """Return one pair to compare with what a model of these classes finds; None adds to the problems."""
        try:
            pair = cls.read([image], [mask], rules, classes)
        except (DataError, LimitError) as error:
            problems.append(str(error))
            return None
        strange = np.setdiff1d(known_values(pair.masks[0]), classes)
        if strange.size:
            known = ", ".join(map(str, classes.tolist()))
            problems.append(f"{mask}: the value {strange[0]} is not a class of the model ({known})")
            return None
        return pair

    def _lists(self) -> tuple[list[Any], ...]:
        return self.images, self.masks, self.names, self.image_names

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return what was done to the files."""
        return (*self.notes, "\n  ".join(["skipped:", *self.skipped])) if self.skipped else tuple(self.notes)

    def warn(self) -> None:
        """Warn about what was done to the files."""
        for remark in self.remarks:
            warn_caller(remark, UserWarning)

    def draw(self, fraction: float, seed: int) -> tuple[Pairs, Pairs]:
        """Divide the pairs: return the others, and a random share."""
        others, drawn = self.draw_ids(fraction, seed)
        return self.take(others), self.take(drawn)

    def draw_ids(self, fraction: float, seed: int) -> tuple[list[int], list[int]]:
        """Return the numbers of the others, and of a random share."""
        if not 0 < fraction < 1:
            raise ParameterError(f"validation_fraction must be between 0 and 1, not {fraction!r}")
        n = len(self.images)
        count = max(1, round(fraction * n))
        if count >= n:
            raise DataError(f"{n} images are too few to keep {count} for validation; give a validation set")
        order = np.random.default_rng(seed).permutation(n).tolist()
        return sorted(order[count:]), sorted(order[:count])

    def take(self, ids: Sequence[int]) -> Pairs:
        images, masks, names, image_names = ([part[k] for k in ids] for part in self._lists())
        return replace(self, images=images, masks=masks, names=names, image_names=image_names)

    def known(self) -> Pairs:
        """Return the pairs with a known pixel, with a note if others are omitted."""
        some = [k for k, mask in enumerate(self.masks) if (mask != VOID).any()]
        if len(some) == len(self.masks):
            return self
        first = next(k for k in range(len(self.masks)) if k not in set(some))
        if not some:
            raise DataError("no pixel of the masks has a known class")
        note = (
            f"{len(self.masks) - len(some)} masks have no pixel of a known class (the first: {self.names[first]}); "
            "their images are omitted"
        )
        return replace(self.take(some), notes=(*self.notes, note))

    def classes(self, multiclass: bool) -> Array:
        """Return the values of all masks, sorted; two, unless there may be more."""
        seen: set[int] = set()
        for mask, name in zip(self.masks, self.names, strict=True):
            seen |= set(known_values(mask).tolist())
            if len(seen) > 2 and not multiclass:
                raise DataError(
                    f"masks contain {len(seen)} distinct values {sorted(seen)}, expected 2 (the last of them is in "
                    f"{name}); pass multiclass=True to keep them all, or ignore=… for values that mean unknown"
                )
        if len(seen) < 2:
            which = f"every pixel of the masks is {seen.pop()}" if seen else "no pixel of the masks has a known class"
            raise DataError(f"{which}; expected two classes or more")
        return np.array(sorted(seen))

    def error(self, found: Iterable[Array]) -> float:
        """Return the share of known pixels that are wrong in masks that a model found."""
        counts = [wrong_pixels(mask, truth) for mask, truth in zip(found, self.masks, strict=True)]
        wrong, known = np.sum(counts, axis=0).tolist()
        return float(wrong / known) if known else 0.0


def confusion(found: Array, mask: Mask, classes: Array) -> NDArray[np.int64]:
    """Return [true class, found class] the counts of known pixels."""
    known = mask != VOID
    states = [np.searchsorted(classes, labels[known]) for labels in (mask, found)]
    K = len(classes)
    return np.bincount(states[0] * K + states[1], minlength=K * K).reshape(K, K)


def _attempt(read: Callable[[object, str], Value], given: object, name: str, problems: list[str]) -> Value | None:
    try:
        return read(given, name)
    except (DataError, LimitError) as error:
        problems.append(str(error))
        return None


def wrong_pixels(found: Array, mask: Mask) -> tuple[int, int]:
    """Return (how many of the known pixels are wrong, how many are known)."""
    known = mask != VOID
    return int(((found != mask) & known).sum()), int(known.sum())


def _agree(masks: list[Mask], yes_or_no: list[int], rules: MaskRules, classes: Array | None) -> list[Mask]:
    """Return masks whose values mean the same in all of them.

    −1 is unknown unless it is a class, as it is beside 1 alone. The "yes" of masks of one bit, or of lossy files, is
    the number that other masks have for it (0/255 in most files), or the second class of a model.
    """
    values = [set(known_values(mask).tolist()) for mask in masks]
    seen = set().union(*values) if classes is None else set(classes.tolist())
    minus_one = -1 in seen and (classes is not None or seen <= {-1, 1})
    if any(-1 in of for of in values) and not minus_one:
        masks = [np.where(mask == -1, VOID, mask) for mask in masks]
        seen.discard(-1)
    if not yes_or_no or rules.multiclass:
        return masks
    binary = set(yes_or_no)
    others = (
        set().union(*(of for k, of in enumerate(values) if k not in binary)) - {-1, 0}
        if classes is None
        else seen - {0}
    )
    if not others:
        others = {max(max(values[k], default=0) for k in binary)} - {0}
    if len(others) != 1 or (classes is not None and 0 not in seen):
        return masks
    yes = others.pop()
    return [np.where(mask > 0, yes, mask) if k in binary else mask for k, mask in enumerate(masks)]


def _scaled(mask: tuple[int, ...], image: tuple[int, ...]) -> bool:
    """Return whether a mask has the shape of its image at another scale; both factors may differ by 2 %."""
    (h, w), (H, W) = mask[:2], image[:2]
    if h == H or w == W:  # cut rather than scaled
        return False
    return abs(h * W - w * H) <= 0.02 * max(h * W, w * H)


def _name(given: object, otherwise: str) -> str:
    return str(given) if isinstance(given, (str, Path)) else otherwise
