"""Model files: a safetensors container with versioned metadata, read whole and checked, written atomically.

The metadata entry "crfkit" holds its own checksum (16 hexadecimal digits) and then JSON: format version, kind of model,
its options, and a checksum per tensor.
Everything is checked before use: header against file size, tensors against the header, checksums against contents.

A loaded model is a private copy: whatever happens to its file afterwards, it stays as it was checked. A file that
another program overwrites in place while it is loaded (``cp new.crf live.crf``) is the old model, the new one, or a
ModelFileError. Files that crfkit itself writes are replaced at once, so that readers never see a half.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from crfkit import _core
from crfkit._types import Array, Entries, Record
from crfkit.errors import CrfkitError, LimitError, ModelFileError, ParameterError
from crfkit.files.atomic import check_writable, is_special, patiently, replacing
from crfkit.files.atomic import read as read_file
from crfkit.interrupts import deferred
from crfkit.names import check_name

__all__ = ["FORMAT_VERSION", "Contents", "check_writable", "load", "read", "write"]

Model = TypeVar("Model")

FORMAT_VERSION = 2
_MAX_HEADER = 100_000_000
MOST_DIMENSIONS = 32
_DTYPES = {
    "F64": np.float64,
    "F32": np.float32,
    "I64": np.int64,
    "I32": np.int32,
    "U32": np.uint32,
    "U64": np.uint64,
    "U8": np.uint8,
}

_NAMES = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}
MOST_WEIGHT = 1e100
# "8bit": a byte for each weight, and a step for each 64 of them; no weight is off by more than half a step
FORMS_OF_WEIGHTS = ("double", "8bit")
LARGE_FILE = 1_000_000  # bytes; larger files are looked at before they are read
LAZY_CHECKSUM_BYTES = 4_000_000  # bytes; the checksums of more are computed while the model is made


@dataclass(frozen=True)
class Contents:
    """The contents of a model file. Tensors are read-only views of one private copy of the file."""

    kind: str
    metadata: Record
    tensors: Mapping[str, Array]
    check: Callable[[], None] = lambda: None  # raises ModelFileError if the contents are not what was written

    def tensor(self, name: str, dtype: type, optional: bool = False) -> Any:
        array = self.tensors.get(name)
        if array is None:
            if optional:
                return None
            raise ModelFileError(f"the model has no tensor '{name}'")
        if array.dtype != dtype or array.ndim != 1:
            raise ModelFileError(
                f"the tensor '{name}' is {array.ndim}-dimensional {array.dtype}; expected a vector of {np.dtype(dtype)}"
            )
        return array

    def weights(self, size: int) -> Any:
        """Return the weights of a field with so many; raise ModelFileError if they are not finite, or more or fewer."""
        w = self._stored_weights()
        if len(w) != size:
            raise ModelFileError(f"the model has {len(w)} weights, but its field needs {size}")
        # a weight of a byte is at most 128 steps
        small = self._in_bytes and _core.all_within(self.tensors["weights.steps"], MOST_WEIGHT / 128)
        if not small and not _core.all_within(w, MOST_WEIGHT):  # NaN is not
            raise ModelFileError(f"a weight is not a finite number, or beyond ±{MOST_WEIGHT:g}: the file is damaged")
        return w

    @property
    def _in_bytes(self) -> bool:
        form = self.metadata.get("weights", "double")  # older files do not name it
        if form not in FORMS_OF_WEIGHTS:
            raise ModelFileError(f"the weights are stored as {form!r:.80}, which this version cannot read. Upgrade it")
        return bool(form == "8bit")

    def _stored_weights(self) -> Any:
        if not self._in_bytes:
            return self.tensor("weights", np.float64)
        codes, steps = self.tensor("weights.codes", np.uint8), self.tensor("weights.steps", np.float64)
        try:
            w = _core.decode_weights(codes, steps)
        except ValueError as error:
            raise ModelFileError(f"inconsistent model: {error}") from None
        w.flags.writeable = False
        return w

    def entry(self, name: str, *types: type) -> Any:
        """Return an entry of one of these types: of numbers, those that are finite and fit into 64 bits."""
        value = self.metadata.get(name)
        if type(value) not in types or (isinstance(value, (int, float)) and not abs(value) < 2**63):
            raise ModelFileError(f"the metadata entry '{name}' is {value!r:.200}")
        return value

    @property
    def size(self) -> int:
        """Return the bytes of all tensors, by which limits of memory are measured."""
        return sum(array.nbytes for array in self.tensors.values())


def stored_weights(metadata: Record, tensors: Mapping[str, Array], form: str) -> tuple[Entries, dict[str, Array]]:
    """Return the metadata and tensors of a file whose weights have another form: one of FORMS_OF_WEIGHTS."""
    check_name("form of weights", form, FORMS_OF_WEIGHTS)
    if form == "double":
        return dict(metadata), dict(tensors)
    others = {name: array for name, array in tensors.items() if name != "weights"}
    codes, steps = _core.encode_weights(tensors["weights"])
    return {**metadata, "weights": form}, {**others, "weights.codes": codes, "weights.steps": steps}


def write(path: str | Path, kind: str, metadata: Record, tensors: Mapping[str, Array]) -> None:
    """Write a model file. An older file at `path` is replaced when the new one is complete. Ctrl-C waits for it."""
    with deferred():
        _write(path, kind, metadata, tensors)


def _write(path: str | Path, kind: str, metadata: Record, tensors: Mapping[str, Array]) -> None:
    if is_special(path):
        raise ModelFileError(f"cannot write {path}: it is not a regular file")
    # those of the widest elements first, so that each is aligned
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    arrays = {name: np.ascontiguousarray(tensors[name]) for name in order}
    sums = {name: _checksum(array) for name, array in arrays.items()}
    try:
        text = json.dumps({"version": FORMAT_VERSION, "kind": kind, "checksums": sums, **metadata}, ensure_ascii=False)
    except ValueError as error:  # such as a label with thousands of digits
        raise ModelFileError(f"cannot write {path}: {error}") from None
    header: Entries = {"__metadata__": {"crfkit": _text_checksum(text) + text}}
    begin = 0
    for name, array in arrays.items():
        end = begin + array.nbytes
        if array.dtype not in _NAMES:
            raise ModelFileError(f"cannot write {path}: model files cannot hold the type {array.dtype} of '{name}'")
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
        begin = end
    try:
        head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError as error:
        shown = ascii(error.object[max(0, error.start - 20) : error.end])
        raise ModelFileError(f"cannot write {path}: {shown} is not text; it holds half a surrogate pair") from None
    head += b" " * (-len(head) % 8)
    with replacing(path) as stream:
        stream.write(len(head).to_bytes(8, "little") + head)
        for array in arrays.values():
            stream.write(array.reshape(-1).view(np.uint8).data)


def read(path: str | Path) -> Contents:
    """Read a model file into memory and check it.

    A file that is not valid is read again if it has changed meanwhile: somebody may be in the middle of writing it.
    """
    return patiently(path, lambda: _read(path, lambda contents: contents))


def _read(path: str | Path, make: Callable[[Contents], Model]) -> Model:
    """Return what `make` makes of the contents of a file. Large contents are still being checked meanwhile."""
    blob = read_file(path, partial(_check_head, path))
    try:
        contents = _parse(blob)
        try:
            return make(contents)
        finally:  # of several errors, what is wrong with the file is the one to report
            contents.check()
    except (ModelFileError, LimitError) as error:
        raise error.in_file(path) from None
    except CrfkitError as error:
        raise ModelFileError(f"{path}: {error}", path) from None


def _check_head(path: str | Path, head: bytes, size: int) -> None:
    """Raise ModelFileError, before a large file is read, if it does not begin as a model does."""
    if size > LARGE_FILE and int.from_bytes(head[:8], "little") > min(_MAX_HEADER, size - 8):
        raise ModelFileError(f"{path}: not a crfkit model, or truncated: its header does not fit the file", path)
    if size > LARGE_FILE and head[8:9] != b"{":
        raise ModelFileError(f"{path}: not a crfkit model (no crfkit metadata in its header)", path)


def load(path: str | Path, from_parts: Callable[[Contents, int | None], Model], n_threads: int | None) -> Model:
    """Return the model in a file, made by `from_parts(contents, n_threads)`; errors name the file."""
    if n_threads is not None and n_threads < 1:
        raise ParameterError(f"the number of threads must be >= 1, not {n_threads}")
    return patiently(path, lambda: _read(path, lambda contents: from_parts(contents, n_threads)))


def _parse(buffer: Any) -> Contents:
    if len(buffer) < 8:
        raise ModelFileError("not a crfkit model (too short)")
    length = int.from_bytes(buffer[:8], "little")
    if length > min(_MAX_HEADER, len(buffer) - 8):
        raise ModelFileError("not a crfkit model, or truncated: its header does not fit the file")
    try:
        header = json.loads(bytes(buffer[8 : 8 + length]).decode("utf-8"))
        entry = header.pop("__metadata__")["crfkit"]
        checksum, text = entry[:16], entry[16:]
        metadata = json.loads(text)
        if not isinstance(metadata, dict):
            raise TypeError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ModelFileError("not a crfkit model (no crfkit metadata in its header)") from None
    if metadata.get("version") != FORMAT_VERSION:
        raise ModelFileError(
            f"model format {metadata.get('version')!r}; this version of crfkit reads format {FORMAT_VERSION}. "
            "Upgrade crfkit, or train the model again"
        )
    if checksum != _text_checksum(text):
        raise ModelFileError("altered or damaged: the checksum of its metadata does not match")
    data = np.frombuffer(buffer, dtype=np.uint8, offset=8 + length)
    tensors = _tensors(header, data)
    checksums = metadata.get("checksums")
    if not isinstance(checksums, dict) or checksums.keys() != tensors.keys():
        raise ModelFileError("altered: the checksums do not name the tensors of the file")

    def check(name: str) -> None:
        if checksums[name] != _checksum(tensors[name]):
            raise ModelFileError(f"altered or damaged: the checksum of '{name}' does not match")

    def check_all() -> None:
        for name in tensors:
            check(name)

    if len(data) >= LAZY_CHECKSUM_BYTES:
        return Contents(str(metadata.get("kind")), metadata, tensors, _in_background(check_all))
    check_all()
    return Contents(str(metadata.get("kind")), metadata, tensors)


def _in_background(work: Callable[[], None]) -> Callable[[], None]:
    """Let another thread do the work, and return a function that waits for it and raises what it raised."""
    from concurrent.futures import Future
    from threading import Thread

    done: Future[None] = Future()

    def run() -> None:
        try:
            work()
            done.set_result(None)
        except BaseException as error:
            done.set_exception(error)

    try:
        Thread(target=run).start()
    except RuntimeError:  # there is no memory for another thread
        run()
    return done.result


def _tensors(header: Record, data: NDArray[np.uint8]) -> dict[str, Array]:
    tensors, spans = {}, []
    for name, entry in header.items():
        try:
            dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), list(entry["shape"])
            begin, end = entry["data_offsets"]
            if len(shape) > MOST_DIMENSIONS or not all(type(n) is int for n in (*shape, begin, end)):
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise ModelFileError(f"the header entry of '{name}' is malformed") from None
        count = 1
        for n in shape:
            count *= n
        if min(shape, default=0) < 0 or not 0 <= begin <= end or end - begin != count * dtype.itemsize:
            raise ModelFileError(f"the header entry of '{name}' contradicts itself")
        if end > len(data):
            raise ModelFileError(f"truncated: '{name}' ends at byte {end}, but there are {len(data)}")
        spans.append((begin, end))
        try:
            array = data[begin:end].view(dtype).reshape(shape)
        except (ValueError, OverflowError):  # empty, but with dimensions that no array has
            raise ModelFileError(f"the header entry of '{name}' has an impossible shape") from None
        tensors[name] = array if array.flags.aligned else array.copy()  # of a header that was not padded
    position = 0
    for begin, end in sorted(spans):
        if begin != position:
            raise ModelFileError("tensors overlap or leave gaps")
        position = end
    if position != len(data):
        raise ModelFileError(f"{len(data) - position} bytes follow the last tensor")
    return tensors


def _checksum(array: Array) -> str:
    return f"{_core.checksum(array.reshape(-1).view(np.uint8)):016x}"


def _text_checksum(text: str) -> str:
    return _checksum(np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8))
