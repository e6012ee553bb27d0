"""Open the model file of any tool; its contents tell which."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from crfkit._checks import check_encoding
from crfkit.chain.model.model import ChainModel
from crfkit.convert import kinds
from crfkit.convert.sources import read_bytes
from crfkit.errors import CrfkitError, LimitError, ModelFileError, ParameterError
from crfkit.files.atomic import patiently, read_head

READERS = {
    kinds.CRFSUITE: "crfkit.convert.crfsuite",
    kinds.CRFPP: "crfkit.convert.crfpp",
    kinds.CRFPP_TEXT: "crfkit.convert.crfpp",
    kinds.WAPITI: "crfkit.convert.wapiti",
}


def load(path: str | Path, n_threads: int | None = None, encoding: str = "utf-8") -> ChainModel:
    """Return the chain in a model file of crfkit, CRFsuite, CRF++ or Wapiti.

    `encoding` is the encoding of the texts in the other tools' files, which do not say it; crfkit's are always UTF-8. A
    pickled ``sklearn_crfsuite.CRF`` is read without unpickling: only the CRFsuite model inside it is used.
    """
    if n_threads is not None and n_threads < 1:
        raise ParameterError(f"the number of threads must be >= 1, not {n_threads}")
    check_encoding(encoding)
    return patiently(path, lambda: _load(path, n_threads, encoding))


def _load(path: str | Path, n_threads: int | None, encoding: str) -> ChainModel:
    kind = model_kind(path)
    if kind == kinds.CRFKIT:
        return ChainModel.load(path, n_threads)
    try:
        if kind is not None:
            read: Callable[..., ChainModel] = import_module(READERS[kind]).read
            return read(path, n_threads, encoding)
        from crfkit.convert.pickled import find_model

        data = read_bytes(path)
        inside = find_model(data)
        if inside is not None:
            return import_module(READERS[kinds.CRFSUITE]).read(inside, n_threads, encoding)  # type: ignore[no-any-return]
    except (ModelFileError, LimitError) as error:
        raise error.in_file(path) from None
    except CrfkitError as error:
        raise ModelFileError(str(error.in_file(path))) from None
    raise ModelFileError(f"{path}: {_reason(bytes(data[:2]))}")


def _reason(head: bytes) -> str:
    """Return why a file that begins with these bytes is no model, and what to do."""
    if not head:
        return "the file is empty, so it is not a model that crfkit knows"
    if head in (b"\x1f\x8b", b"BZ", b"\xfd7"):
        return "this is a compressed file, not a model that crfkit knows; unpack it first"
    if head in (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda"):  # zlib, as joblib compresses
        return (
            "this is a compressed file, not a model that crfkit knows; if joblib wrote it, call "
            "crfkit.compat.install() and open it with joblib.load"
        )
    if head[:1] == b"\x80":
        return "this is a pickle in which there is no whole CRFsuite model, or not a model that crfkit knows"
    return "this is not a model that crfkit knows; it reads crfkit, CRFsuite, CRF++ and Wapiti models"


def model_kind(path: str | Path) -> str | None:
    """Return which tool a model file is of ("crfkit", "CRFsuite", "CRF++", "CRF++ text", "Wapiti"); None if unknown."""
    return kinds.recognise(read_head(path))
