"""The CRFsuite model inside a pickled sklearn_crfsuite.CRF, found without unpickling, which could run any code.

A pickle holds the whole model file in one string, from "lCRF" on, and the model's header has its size. joblib's
uncompressed files are the same. Pickles of protocols 0 to 2 from Python 3 hold the bytes as Latin-1 text: protocol 0 as
``V…\\n`` with escapes, protocols 1 and 2 as ``X``, the size in four bytes, and UTF-8.

The search is one pass: a string that claims to be a model and is none is skipped whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MAGIC = b"lCRF"
_LIMIT = 1 << 30  # bytes of a pickle that are searched
_HEADER = 48  # bytes of a CRFsuite model before its features
_ESCAPED = 6  # bytes that a byte of the model takes at most as text, "\u00ff"


def find_model(data: NDArray[np.uint8]) -> bytes | None:
    """Return the bytes of the first CRFsuite model in a pickle, or None if there is none."""
    if len(data) > _LIMIT or len(data) < 2 or not _looks_pickled(data):
        return None
    raw = data.tobytes()
    has_bytes = raw[0] == 0x80 and raw[1] >= 3  # from protocol 3 on
    at = raw.find(MAGIC)
    while at >= 0:
        found, after = (_model_at(raw, at), at + 1) if has_bytes else _text_at(raw, at)
        if found is not None:
            return found
        at = raw.find(MAGIC, after)
    return None


def _looks_pickled(data: NDArray[np.uint8]) -> bool:
    return int(data[0]) == 0x80 or b"sklearn_crfsuite" in data[:4096].tobytes()


def _model_at(raw: bytes, at: int) -> bytes | None:
    size = _size(raw[at : at + _HEADER])
    return raw[at : at + size] if size is not None and size <= len(raw) - at else None


def _size(header: bytes) -> int | None:
    """Return the size of the model that begins with these bytes; None if no model does."""
    size = int.from_bytes(header[4:8], "little")
    return size if header[8:12] == b"FOMC" and size >= _HEADER else None


def _text_at(raw: bytes, at: int) -> tuple[bytes | None, int]:
    """Return (the model in the text that begins here, or None; where to search on)."""
    if raw[at - 5 : at - 4] == b"X" and at >= 5:
        codec, length = "utf-8", int.from_bytes(raw[at - 4 : at], "little")
    elif raw[at - 1 : at] == b"V" and at >= 1:
        codec, length = "raw_unicode_escape", len(raw)
    else:
        return None, at + 1
    size = _size(_bytes_of(raw[at : at + min(length, _HEADER * _ESCAPED)], codec, "ignore"))
    if size is None:
        return None, at + 1
    end = at + min(length, size * _ESCAPED)
    if codec != "utf-8":
        line_end = raw.find(b"\n", at, end + 1)
        end = line_end if line_end >= 0 else end
    text = _bytes_of(raw[at:end], codec, "strict")
    return (text[:size], end) if len(text) >= size else (None, end)


def _bytes_of(text: bytes, codec: str, errors: str) -> bytes:
    """Return the bytes that a text stands for; none if it stands for no bytes."""
    try:
        return text.decode(codec, errors).encode("latin-1", errors)
    except UnicodeError:
        return b""
