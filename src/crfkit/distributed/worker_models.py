"""Models on workers: what is sent of a model, and the models that a process keeps loaded.

A model travels as the name of its file, or as the metadata and the arrays of its file. Both are made into a model once
per process, which all tasks and threads of the process then share.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from crfkit._types import Array, Record
from crfkit.chain.model.answers import ChainAnswers
from crfkit.chain.model.model import ChainModel
from crfkit.convert import load
from crfkit.errors import CrfkitError, ModelFileError, ParameterError
from crfkit.extras import load as load_package
from crfkit.files import atomic as files
from crfkit.files import modelfile

MAX_MODELS = 4  # models that a process keeps
ADVICE = (
    "every worker must be able to read it: put it in a folder that all machines share, give an address such as s3://…, "
    "or pass the model itself instead of its path"
)


@dataclass(frozen=True)
class ModelFile:
    """A model that each worker reads from a path or an address, such as s3://bucket/model.crf.

    `seen` is the state of the file when the job was set up, if it could be read there. Dask takes tasks with the same
    arguments for the same work, so it must change when the file does.
    """

    path: str
    seen: str = ""

    @property
    def remote(self) -> bool:
        return "://" in self.path

    def model(self) -> ChainModel:
        """Return the model, loaded by this process now or earlier; a file that has changed is loaded again."""
        return LOADED.get(self.path, self._state(), self._load)

    def _state(self) -> Any:
        if self.remote:
            return _remote(self.path, lambda system, path: system.ukey(path))
        state = files.signature(self.path)
        if state is None:
            raise _unreadable(self.path, "there is no such file")
        return state

    def _load(self) -> ChainModel:
        if not self.remote:
            return _named(self.path, self.path)
        contents = _remote(self.path, lambda system, path: system.cat_file(path))
        with tempfile.TemporaryDirectory(prefix="crfkit-") as folder:
            copy = os.path.join(folder, "model")
            with open(copy, "wb") as stream:
                stream.write(contents)
            return _named(copy, self.path)


@dataclass(frozen=True, eq=False)
class ModelParts:
    """A model that is sent: the metadata and arrays of its file. It has no pickled code."""

    digest: str
    metadata: Record
    tensors: Mapping[str, Array]

    @classmethod
    def of(cls, model: ChainModel) -> ModelParts:
        metadata, tensors = model.parts()
        arrays = {name: np.ascontiguousarray(tensors[name]) for name in sorted(tensors)}
        digest = hashlib.blake2b(json.dumps(metadata, sort_keys=True).encode(), digest_size=16)
        for name, array in arrays.items():
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(array.reshape(-1).view(np.uint8).data)
        return cls(digest.hexdigest(), metadata, arrays)

    def model(self) -> ChainModel:
        """Return the model, made by this process now or earlier."""
        return LOADED.get(self.digest, None, self._load)

    def _load(self) -> ChainModel:
        # what comes from a network may begin anywhere in memory, and the kernels need aligned arrays
        arrays = {name: np.require(array, requirements=["A", "C"]) for name, array in self.tensors.items()}
        return ChainModel.from_parts(modelfile.Contents("chain", self.metadata, arrays), n_threads=1)

    def __dask_tokenize__(self) -> str:
        return self.digest

    def __sizeof__(self) -> int:  # what Dask counts as memory of a worker
        return object.__sizeof__(self) + sum(array.nbytes for array in self.tensors.values())


Source = ModelFile | ModelParts


def model_source(given: object) -> Source:
    """Return what is sent of a model: of a path its name, made absolute; of a chain or an estimator its contents."""
    if isinstance(given, ChainAnswers):
        return ModelParts.of(given.trained_model())
    if not isinstance(given, (str, os.PathLike)):
        raise ParameterError(
            f"model must be the path of a model file, a ChainModel or a fitted ChainCRF, not {type(given).__name__}"
        )
    path = os.fspath(given)
    if "://" in path:
        return ModelFile(path)
    path = os.path.abspath(path)
    state = files.signature(path)
    return ModelFile(path, f"{state.inode} {state.size} {state.modified}" if state else "")


def local_model(source: Source) -> ChainModel:
    """Return the model in the process that sets up a job; the error names this process if it cannot be read."""
    try:
        return source.model()
    except ModelFileError as error:
        raise ModelFileError(f"{error}. The columns and labels of the model are needed here as well") from None


@dataclass
class _Entry:
    lock: Lock = field(default_factory=Lock)
    state: object = None
    model: ChainModel | None = None


class LoadedModels:
    """The models that were used last. Each is loaded once, however many threads ask for it at the same time."""

    def __init__(self, most: int = MAX_MODELS) -> None:
        self._most = most
        self._lock = Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self.loads = 0

    def get(self, name: str, state: object, make: Callable[[], ChainModel]) -> ChainModel:
        """Return the model of this name; `make` it if it is not there, or if its file had another state."""
        with self._lock:
            entry = self._entries.setdefault(name, _Entry())
            self._entries.move_to_end(name)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)
        with entry.lock:
            if entry.model is None or entry.state != state:
                entry.model = None  # the old one need not stay in memory beside the new one
                entry.model, entry.state = make(), state
                with self._lock:
                    self.loads += 1
            return entry.model


LOADED = LoadedModels()


def models_loaded() -> int:
    """Return how many models this process has loaded so far; ``client.run(models_loaded)`` asks all workers."""
    return LOADED.loads


def _named(path: str, name: str) -> ChainModel:
    """Return the model in a file; errors name the machine and the file as the user knows it."""
    try:
        return load(path, n_threads=1)
    except CrfkitError as error:
        raise type(error)(f"on {socket.gethostname()}: {str(error).replace(path, name)}") from None


def _remote(address: str, work: Callable[[Any, str], Any]) -> Any:
    """Return what `work(file system, path)` returns; raise ModelFileError if the address cannot be read."""
    fsspec = load_package("fsspec", "an address of a model needs")
    try:
        return work(*fsspec.core.url_to_fs(address))
    except (OSError, ImportError, ValueError) as error:
        raise _unreadable(address, str(error).strip().partition("\n")[0] or type(error).__name__) from error


def _unreadable(path: str, why: str) -> ModelFileError:
    return ModelFileError(f"cannot read {path} on {socket.gethostname()}: {why}; {ADVICE}")
