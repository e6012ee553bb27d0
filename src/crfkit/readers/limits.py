"""Limits that keep a small model file from asking for much memory."""

from __future__ import annotations

from crfkit.errors import ModelFileError

MOST_LABELS = 46340  # the code of a pair of labels is an int32
_ALWAYS = 2048
_PAIRS_PER_BYTE = 256


def check_label_count(n: int, file_size: int) -> None:
    """Raise ModelFileError if a file of this size cannot have so many labels.

    A chain takes memory for every pair of labels, whether the file has weights for them or not.
    """
    if n > MOST_LABELS:
        raise ModelFileError(f"{n} labels; at most {MOST_LABELS} are supported")
    if n > _ALWAYS and n * n > _PAIRS_PER_BYTE * file_size:
        raise ModelFileError(f"damaged: {n} labels are too many for a file of {file_size} bytes")
