"""Folders of images and masks: which files they have, and which belong together."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from crfkit.errors import DataError, ParameterError
from crfkit.files.pictures import SUFFIXES

MASK = "_mask"  # what `crfkit segment apply` adds to the name of an image
OTHERS = ("_overlay", "_probability")  # its other pictures
MAX_LISTED = 20  # problems that one message lists


def list_images(folder: str | Path, pattern: str | None = None) -> dict[str, Path]:
    """Return {name: file} of the images in a folder, in the order of their names.

    The name is the file name without its ending or, with a pattern such as "{name}_mask.png", the part that stands
    for {name}; other files are ignored. A pattern without an ending takes any of those that images have.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(
            "there is no such folder" if not folder.exists() else "expected a folder of images, not a file", folder
        )
    matching = None if pattern is None else _compile(pattern)
    found: dict[str, Path] = {}
    problems = []
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in SUFFIXES or path.name.startswith(".") or not path.is_file():
            continue
        if matching is None:
            name = path.stem
        elif match := matching.fullmatch(path.name):
            name = match[1]
        else:
            continue
        if name in found:
            problems.append(
                f"{folder}: {found[name].name} and {path.name} differ only in their ending; keep one of them"
            )
        found.setdefault(name, path)
    raise_all(problems)
    if not found:
        which = f"files like {pattern}" if pattern is not None else f"images ({', '.join(SUFFIXES)})"
        raise DataError(f"the folder has no {which}", folder)
    return found


def pair_folders(
    images: str | Path,
    masks: str | Path,
    image_pattern: str | None = None,
    mask_pattern: str | None = None,
    unpaired: list[str] | None = None,
) -> list[tuple[Path, Path]]:
    """Return (image, mask) pairs by name. Every image needs a mask and every mask an image.

    The mask of an image has its name or, as `crfkit segment apply` writes it, its name and "_mask"; or what the pattern
    says, e.g. "{name}_gt.png". With a pattern, images and masks may lie in one folder. All files without a partner are
    named in one error; or in the list `unpaired`, where one is given.
    """
    pictures, labels = list_images(images, image_pattern), list_images(masks, mask_pattern)
    if image_pattern is None and mask_pattern is not None and os.path.realpath(images) == os.path.realpath(masks):
        taken = set(labels.values())
        pictures = {name: path for name, path in pictures.items() if path not in taken}
    partners = dict(labels)
    applied = False
    if mask_pattern is None:
        for name in pictures:
            if name not in labels and name + MASK in labels:
                partners[name] = partners.pop(name + MASK)
                applied = True
    if applied:  # the other pictures of `apply` beside them
        for name in pictures:
            for ending in OTHERS:
                partners.pop(name + ending, None)
    problems = [
        f"{path}: there is no image named {name} in {images}" for name, path in partners.items() if name not in pictures
    ]
    problems += [
        f"{path}: there is no mask named {name} in {masks}" for name, path in pictures.items() if name not in partners
    ]
    pairs = [(path, partners[name]) for name, path in pictures.items() if name in partners]
    if problems and not pairs and mask_pattern is None:
        problems.append("if the names of masks have something added, give a pattern: --mask-pattern '{name}_gt.png'")
    if unpaired is None:
        raise_all(problems)
    else:
        unpaired.extend(problems)
    return pairs


_ENDINGS = "|".join(map(re.escape, (*SUFFIXES, ".npy", ".npz")))
_NAME = re.compile(rf"\b(?:image|mask|probabilities) \d+\b|[^\s,:;()]+(?:{_ENDINGS})(?!\w)", re.IGNORECASE)


def raise_all(problems: Sequence[str]) -> None:
    """Raise one DataError that lists all problems, if there are any; a problem of several files is listed once."""
    if not problems:
        return
    listed = merge_alike(problems)
    if len(listed) == 1:
        raise DataError(listed[0])
    more = [f"… and {len(listed) - MAX_LISTED} more"] if len(listed) > MAX_LISTED else []
    raise DataError("\n  ".join([f"{len(problems)} problems:", *listed[:MAX_LISTED], *more]))


def merge_alike(problems: Sequence[str], figures: bool = True) -> list[str]:
    """Return the problems, those that differ only in the name of the image once, with the names of the others.

    Without `figures`, problems whose numbers differ count as alike too.

    >>> merge_alike(["mask 0 has colours; name them", "mask 1 is empty", "mask 2 has colours; name them"])
    ['mask 0 has colours; name them (the same is true of mask 2)', 'mask 1 is empty']
    """
    alike: dict[str, list[str]] = {}
    for problem in problems:
        key = _NAME.sub("#", problem)
        alike.setdefault(key if figures else re.sub(r"\d[\d.,]*(e[-+]?\d+)?|[-−]", "0", key), []).append(problem)
    listed = []
    for first, *others in alike.values():
        names = [found[0] for problem in others if (found := _NAME.search(problem))]
        if len(names) < len(others) or not others:
            listed += [first, *others]
            continue
        more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
        count = f"{len(names)} others: " if len(names) > 1 else ""
        listed.append(f"{first} (the same is true of {count}{', '.join(names[:MAX_LISTED])}{more})")
    return listed


def _compile(pattern: str) -> re.Pattern[str]:
    if pattern.count("{name}") != 1:
        raise ParameterError(
            f"a pattern of file names must contain {{name}} once, such as {{name}}_mask.png, not {pattern!r}"
        )
    before, after = (re.escape(part).replace(r"\*", ".*") for part in pattern.split("{name}"))
    ending = "" if Path(pattern).suffix.lower() in SUFFIXES else f"({'|'.join(map(re.escape, SUFFIXES))})"
    return re.compile(f"{before}(.+?){after}{ending}", re.IGNORECASE)
