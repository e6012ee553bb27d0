"""The CRFsuite model inside a pickled sklearn_crfsuite.CRF, found without unpickling, which could run any code.

A pickle holds the model's bytes as they are: the whole file stands in one string of the pickle, from "lCRF" on, and its
header says how long it is. joblib's uncompressed files are the same. In pickles of protocols 0 to 2 from Python 3 the
bytes are written as Latin-1 text; those are read by the pickle module's own tokeniser, which runs nothing.
"""

from __future__ import annotations

import pickletools
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"lCRF"
_LIMIT = 1 << 30  # bytes of a pickle that are searched


def find_model(data: NDArray[np.uint8]) -> bytes | None:
    """Return the bytes of the first CRFsuite model in a pickle, or None if there is none."""
    if len(data) > _LIMIT or len(data) < 2 or not _looks_pickled(data):
        return None
    raw = data.tobytes()
    if raw[0] != 0x80 or raw[1] < 3:  # a protocol that has no bytes
        return _in_texts(raw)
    at = raw.find(MAGIC)
    while at >= 0:
        found = _model_at(raw, at)
        if found is not None:
            return found
        at = raw.find(MAGIC, at + 1)
    return None


def _looks_pickled(data: NDArray[np.uint8]) -> bool:
    return int(data[0]) == 0x80 or b"sklearn_crfsuite" in data[:4096].tobytes()


def _model_at(raw: bytes, at: int) -> bytes | None:
    size = int.from_bytes(raw[at + 4 : at + 8], "little")
    return raw[at : at + size] if raw[at + 8 : at + 12] == b"FOMC" and 48 <= size <= len(raw) - at else None


def _in_texts(raw: bytes) -> bytes | None:
    """Return a model that stands in a text of the pickle, as bytes do that were written as Latin-1."""
    try:
        for _, argument, _ in pickletools.genops(raw):
            found = _from_text(argument)
            if found is not None:
                return found
    except Exception:  # genops raises whatever the bytes lead it to; then this is not a pickle
        return None
    return None


def _from_text(argument: Any) -> bytes | None:
    if not isinstance(argument, str) or not argument.startswith("lCRF"):
        return None
    try:
        return _model_at(argument.encode("latin-1"), 0)
    except UnicodeEncodeError:
        return None
