"""Probability maps of another model, with the masks to compare them with; from arrays or files."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._checks import unmasked
from crfkit._types import Array, Flags, Floats, Ids, Samples
from crfkit.errors import CrfkitError, DataError, ParameterError, naming_file
from crfkit.files import limits
from crfkit.files.image_folders import merge_alike, raise_all
from crfkit.files.images import as_list, read_image, read_mask
from crfkit.graph.encoding.states import read_labels
from crfkit.images.features import Image
from crfkit.wording import counted

LAYOUTS = ("auto", "first", "last")
FLOOR = 1e-6  # a probability below this counts as this: a zero would decide against everything else
SUM = 1e-2  # how far from 1 the sum of a pixel's probabilities may be


def read_maps(probabilities: Samples, images: Samples, layout: str = "auto") -> list[tuple[Floats, Image]]:
    """Return the probabilities [H, W, K] and the image of each pair, from lists of arrays or of files."""
    maps, pictures = as_list(probabilities, "probabilities"), as_list(images, "images")
    if len(maps) != len(pictures):
        if isinstance(probabilities, np.ndarray) and probabilities.ndim == 3:
            raise DataError(
                f"probabilities are one array of shape {probabilities.shape} for {counted(len(pictures), 'image')}; "
                "expected a list with a map for each image; for one image give [map]"
            )
        raise DataError(
            f"{counted(len(maps), 'probability map')} for {counted(len(pictures), 'image')}; expected one per image"
        )
    out, problems = [], []
    for k, (given, picture) in enumerate(zip(maps, pictures, strict=True)):
        image = read_image(picture, f"image {k}")
        try:
            out.append((read_probabilities(given, image.shape, f"probabilities {k}", layout), image))
        except DataError as error:
            problems.append(error)
    if len(problems) == 1:
        raise problems[0]
    raise_all(merge_alike([str(problem) for problem in problems], figures=False))
    return out


def read_probabilities(given: object, shape: tuple[int, ...], where: str, layout: str = "auto") -> Floats:
    """Return the probabilities [H, W, K] of an image of this shape (H, W, …), floored and normalised.

    `given` is an array [H, W, K], [K, H, W], or [H, W] with the probability of the second of two classes; or a file:
    .npy, .npz with one array, or a grey image (black is 0, white 1) with the probability of the second class.
    """
    if not isinstance(given, (str, Path)):
        return _probabilities(unmasked(given, where), shape, where, layout)
    with naming_file(given):
        return _probabilities(unmasked(_read_file(Path(given)), str(given)), shape, str(given), layout)


def _probabilities(given: object, shape: tuple[int, ...], where: str, layout: str) -> Floats:
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{where} is not an array of numbers") from None
    H, W = shape[:2]
    if array.shape == (H, W):
        array = np.stack([1 - array, array], axis=-1)
    elif array.ndim == 3:
        first, last = array.shape[1:] == (H, W), array.shape[:2] == (H, W)
        if layout == "auto" and first and last:
            raise DataError(
                f"{where} has shape {array.shape}: classes may be its first or its last axis; pass layout='first' or "
                "'last'"
            )
        if (layout == "first" and first) or (layout == "auto" and first):
            array = np.moveaxis(array, 0, -1)
        elif not last or layout == "first":
            raise DataError(_wrong_shape(where, array.shape, H, W))
    else:
        raise DataError(_wrong_shape(where, array.shape, H, W))
    if array.shape[2] < 2:
        raise DataError(f"{where} has the probabilities of one class; expected two or more, or an array ({H}, {W})")
    _check_values(array, where)
    floored = np.maximum(array, FLOOR)
    return np.asarray(floored / floored.sum(axis=-1, keepdims=True))


def _wrong_shape(where: str, found: tuple[int, ...], H: int, W: int) -> str:
    return (
        f"{where} has shape {found}, its image {H}×{W} pixels (height×width); expected ({H}, {W}, classes), "
        f"(classes, {H}, {W}) or ({H}, {W})"
    )


def _check_values(array: Floats, where: str) -> None:
    if not np.isfinite(array).all():
        place = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
        raise DataError(f"{where} is {array[place]} at {place}; expected probabilities")
    expected = (
        "expected probabilities, from 0 to 1, that add up to 1 over the classes of each pixel; if these are scores "
        "(logits), apply a softmax over the classes first"
    )
    sums = array.sum(axis=-1)
    if array.min() < -1e-6:
        row, column, k = np.unravel_index(int(array.argmin()), array.shape)
        raise DataError(
            f"{where} has the negative value {array.min():.4g} for class {k} at pixel ({row}, {column}), where the "
            f"{array.shape[2]} classes add up to {sums[row, column]:.4g}; {expected}"
        )
    if abs(sums - 1).max() > SUM:
        row, column = np.unravel_index(int(abs(sums - 1).argmax()), sums.shape)
        raise DataError(
            f"{where}: the {array.shape[2]} values of pixel ({row}, {column}) add up to {sums[row, column]:.4g}; "
            f"{expected}"
        )


def _read_file(path: Path) -> Any:
    suffix = path.suffix.lower()
    try:
        if suffix == ".npy":
            # Not a mapping: the process would end if the file were cut short while it is read.
            return np.load(io.BytesIO(path.read_bytes()), allow_pickle=False)
        if suffix == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                if len(archive.files) != 1:
                    raise DataError(f"the file has the arrays {', '.join(archive.files)}; expected one", path)
                _check_member(path)
                return archive[archive.files[0]]
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except (OSError, ValueError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, CrfkitError):
            raise
        raise DataError(f"cannot be read as an array: {error}", path) from None
    grey = read_image(path)
    if grey.ndim == 3:
        if (grey != grey[..., :1]).any():
            raise DataError("the image has colours; a probability map is grey", path)
        grey = grey[..., 0]
    return grey


def _check_member(path: Path) -> None:
    """Raise LimitError if the array of an archive would unpack to more than its file may ask for."""
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    limits.check_memory(size, f"{path}: the array", path.stat().st_size)


Truth = tuple[Array, Flags]  # labels and which are known, [H, W]


def read_truth(given: object, shape: tuple[int, ...], where: str, ignore: ArrayLike | None, multiclass: bool) -> Truth:
    """Return the labels [H, W] of one mask, and which are known: not masked, None, NaN, −1 or a value of `ignore`."""
    if isinstance(given, (str, Path)):
        where = str(given)
        values, known = read_labels(read_mask(given, where, multiclass or ignore is not None), where)
    else:
        values, known = read_labels(given, where)
    if values.shape != tuple(shape[:2]):
        found = "×".join(map(str, values.shape))
        raise DataError(
            f"{where} is {found}, its image {shape[0]}×{shape[1]} pixels (height×width); expected equal sizes"
        )
    if values.dtype.kind in "if":
        known = known & (values != -1)
    if ignore is not None:
        known = known & ~np.isin(values, np.atleast_1d(ignore))
    return values, known


def choose_classes(truths: list[Truth], n_classes: int, given: object) -> Array:
    """Return the label of each column of the probabilities: as given, 0 … K−1, or the sorted values of the masks."""
    if given is not None:
        classes = np.asarray(given)
        if classes.ndim != 1 or len(classes) != n_classes or len(np.unique(classes)) != n_classes:
            raise ParameterError(
                f"classes must name the {n_classes} columns of the probabilities, each once; got {given!r}"
            )
        return classes
    found = np.unique(np.concatenate([np.unique(values[known]) for values, known in truths]))
    if not len(found):
        raise DataError("the masks have no known pixel; at least two classes are needed to learn from")
    if found.dtype.kind == "b":
        found = found.astype(np.int64)
    if found.dtype.kind in "iu" and found.min() >= 0 and found.max() < n_classes:
        return np.arange(n_classes)
    if len(found) == n_classes:
        return np.asarray(found)
    shown = ", ".join(map(str, found[:6].tolist())) + (", …" if len(found) > 6 else "")
    raise DataError(
        f"the masks have {len(found)} different values ({shown}), the probabilities {n_classes} classes; pass classes= "
        "with the label of each class in the order of the probabilities, or ignore= for labels that are not known"
    )


def to_class_numbers(values: Array, known: Flags, classes: Array, where: str) -> Ids:
    """Return [H, W]: the column of each label, −1 where it is not known."""
    states = np.full(values.shape, -1, dtype=np.int32)
    for k, label in enumerate(classes.tolist()):
        states[known & (values == label)] = k
    if (strange := known & (states < 0)).any():
        place = tuple(np.argwhere(strange)[0].tolist())
        shown = ", ".join(map(str, classes.tolist()))
        raise DataError(f"{where} has the label {values[place]!s} at {place}; the classes are {shown}")
    return states


def pixel_accuracy(found: list[Array], masks: Samples, ignore: ArrayLike | None, multiclass: bool) -> float:
    """Return the share of known pixels of all masks that have the label found; 0 if no pixel is known."""
    truth = as_list(masks, "masks")
    if len(truth) != len(found):
        raise DataError(f"{len(truth)} masks for {len(found)} images; expected one mask per image")
    right = total = 0
    for k, (mask, given) in enumerate(zip(found, truth, strict=True)):
        values, known = read_truth(given, mask.shape, f"mask {k}", ignore, multiclass)
        right += int(np.count_nonzero((mask == values) & known))
        total += int(np.count_nonzero(known))
    return right / total if total else 0.0
