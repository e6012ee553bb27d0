"""Model files of taggers and trainers: CRFsuite's own, crfkit's, and the file that CRFsuite writes without any data."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike

import numpy as np

from crfkit import _core, convert
from crfkit.chain.model.model import ChainModel
from crfkit.compat.pycrfsuite._limits import thread_limit
from crfkit.convert import crfsuite
from crfkit.errors import ModelFileError
from crfkit.files import atomic as files

HEADER = struct.Struct("<4sI4s9I")
_NAMES = (
    "magic", "size", "type", "version", "num_features", "num_labels", "num_attrs",
    "off_features", "off_labels", "off_attrs", "off_labelrefs", "off_attrrefs",
)  # fmt: skip


class ModelAccessError(ModelFileError, OSError):
    """A model file that cannot be read or written."""


class ModelNotFoundError(ModelAccessError, FileNotFoundError):
    """A model file that does not exist."""


@dataclass(eq=False)
class OpenModel:
    """A model as a tagger needs it. A CRFsuite file is tagged with where it lies; only `model` reads all of it."""

    header: Mapping[str, str]  # as CRFsuite's dump shows it
    native: _core.Tagger | None  # None for a model that was trained without data: it has no labels
    read: Callable[[], ChainModel]

    @cached_property
    def model(self) -> ChainModel | None:
        """The model itself."""
        return None if self.native is None else self.read()


def open_model(path: str | PathLike[str]) -> OpenModel:
    """Open a model file of CRFsuite, or of another tool that crfkit reads."""
    name = os.fspath(path)
    try:
        with open(name, "rb", buffering=0) as stream:
            is_crfsuite = stream.read(4) == b"lCRF"
            size = stream.seek(0, os.SEEK_END)
            stream.seek(0)
            contents = stream.readall() if is_crfsuite else b""
    except OSError as error:
        kind = ModelNotFoundError if isinstance(error, FileNotFoundError) else ModelAccessError
        raise kind(f"cannot open the model {name}: {error.strerror or error}") from None
    if not is_crfsuite:
        model = convert.load(name, thread_limit())
        if model.vocabulary.kind == "matrix":
            raise ModelFileError(f"{name}: this model takes matrices, which a tagger cannot; use ChainCRF.load")
        return OpenModel(_summary(model, size), model.tagger, lambda: model)
    try:
        return open_bytes(contents)
    except ModelFileError as error:
        raise ModelFileError(f"{name}: {error}") from None


def open_bytes(value: bytes) -> OpenModel:
    """Open a model from the bytes of a CRFsuite file."""
    if not isinstance(value, bytes):
        raise TypeError(f"a model in memory must be bytes, not {type(value).__name__}")
    header = _header(value[: HEADER.size])
    try:
        native = None if _is_empty(header, len(value)) else _core.Tagger.open_crfsuite(value)
    except _core.BadModel as error:
        raise ModelFileError(f"this is not a sound CRFsuite model: {error}") from None
    return OpenModel(header, native, lambda: crfsuite.read(value, thread_limit()))


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


def check_target(path: str | PathLike[str]) -> None:
    """Raise an error before training if the folder of the model is missing, or the model is a folder itself."""
    name = os.fspath(path)
    if name and os.path.isdir(name):
        raise ModelAccessError(f"cannot write the model {name}: {os.strerror(errno.EISDIR)}")
    if name and not os.path.isdir(os.path.dirname(os.path.abspath(name))):
        raise ModelNotFoundError(f"cannot write the model {name}: {os.strerror(errno.ENOENT)}")


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
            files.write(name, contents)
    except (ModelFileError, OSError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if isinstance(cause, OSError):
            kind = ModelNotFoundError if isinstance(cause, FileNotFoundError) else ModelAccessError
            raise kind(f"cannot write the model {name}: {cause.strerror or cause}") from None
        raise
