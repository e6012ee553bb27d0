"""Model files of taggers and trainers: CRFsuite's own, crfkit's, and the file that CRFsuite writes without any data."""

from __future__ import annotations

import os
import struct
from os import PathLike

import numpy as np

from crfkit import _core, convert
from crfkit.convert import crfsuite
from crfkit.errors import ModelFileError
from crfkit.models.chain import ChainModel

HEADER = struct.Struct("<4sI4s9I")
_NAMES = (
    "magic", "size", "type", "version", "num_features", "num_labels", "num_attrs",
    "off_features", "off_labels", "off_attrs", "off_labelrefs", "off_attrrefs",
)  # fmt: skip


class ModelAccessError(ModelFileError, OSError):
    """A model file that cannot be read or written."""


class ModelNotFoundError(ModelAccessError, FileNotFoundError):
    """A model file that does not exist."""


def open_model(path: str | PathLike[str]) -> tuple[ChainModel | None, dict[str, str]]:
    """Return the model in a file and the header that CRFsuite's dump shows; None for a model without labels."""
    name = os.fspath(path)
    try:
        with open(name, "rb") as stream:
            head = stream.read(HEADER.size)
            size = os.fstat(stream.fileno()).st_size
    except OSError as error:
        kind = ModelNotFoundError if isinstance(error, FileNotFoundError) else ModelAccessError
        raise kind(f"cannot open the model {name}: {error.strerror or error}") from None
    header = _header(head)
    if _is_empty(header, size):
        return None, header
    model = convert.load(name)
    return model, header or _summary(model, size)


def open_bytes(value: bytes) -> tuple[ChainModel | None, dict[str, str]]:
    """Return the model in the bytes of a CRFsuite file, and its header."""
    if not isinstance(value, bytes):
        raise TypeError(f"a model in memory must be bytes, not {type(value).__name__}")
    header = _header(value[: HEADER.size])
    return (None if _is_empty(header, len(value)) else crfsuite.read(value)), header


def _header(head: bytes) -> dict[str, str]:
    """Return the entries of a CRFsuite file's header as its dump shows them; none for other files."""
    if len(head) < HEADER.size or head[:4] != b"lCRF":
        return {}
    values = HEADER.unpack(head)
    return {
        name: value.decode("latin-1") if isinstance(value, bytes) else f"0x{value:X}" if "off_" in name else str(value)
        for name, value in zip(_NAMES, values, strict=True)
    }


def _is_empty(header: dict[str, str], size: int) -> bool:
    """Return whether this is the header of a model that was trained without data."""
    counts = [header.get(name) for name in ("num_features", "num_labels", "num_attrs")]
    return counts == ["0", "0", "0"] and header["size"] == str(size) and header["type"] == "FOMC"


def _summary(model: ChainModel, size: int) -> dict[str, str]:
    """Return what a header would say of a model that is not in a CRFsuite file."""
    counts = (size, len(model.w), len(model.classes), len(model.vocabulary.attributes))
    return dict(zip(("size", "num_features", "num_labels", "num_attrs"), map(str, counts), strict=True))


def write_model(model: ChainModel | None, path: str | PathLike[str]) -> None:
    """Write a CRFsuite file; None is the model of no data at all."""
    name = os.fspath(path)
    try:
        if model is not None:
            crfsuite.write(model, name)
        else:
            nothing = np.zeros(0, dtype=np.int32)
            table = _core.StringTable.from_strings([])
            contents = _core.write_crfsuite([], table, np.zeros(1, np.int64), nothing, nothing, np.zeros(0))
            with open(name, "wb") as stream:
                stream.write(contents)
    except (ModelFileError, OSError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if isinstance(cause, OSError):
            kind = ModelNotFoundError if isinstance(cause, FileNotFoundError) else ModelAccessError
            raise kind(f"cannot write the model {name}: {cause.strerror or cause}") from None
        raise
