"""The tagger of python-crfsuite on crfkit's tagger of single sequences."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit import _core
from crfkit._values import Label
from crfkit.chain.model.model import ChainModel
from crfkit.compat.pycrfsuite._dump import describe, dump_lines
from crfkit.compat.pycrfsuite._dumpparser import ParsedDump
from crfkit.compat.pycrfsuite._errors import ClosedModelError, ClosedTaggerError, UnknownLabelError
from crfkit.compat.pycrfsuite._files import OpenModel, open_bytes, open_model
from crfkit.compat.pycrfsuite._items import ItemSequence
from crfkit.errors import DataError, ModelFileError, ParameterError

NO_LABELS = "the model has no labels: it was trained without data"


class _Closed:
    """Stands in for the native tagger while no model is open."""

    def __getattr__(self, name: str) -> Any:
        raise ClosedTaggerError


class _NoLabels:
    """Stands in for the native tagger of a model that was trained without data."""

    length, log_partition = 0, 0.0

    def set(self, sequence: Sequence[object]) -> None:
        if len(sequence):
            raise DataError(NO_LABELS)

    def tag(self, sequence: Sequence[object]) -> list[Label]:
        self.set(sequence)
        return []

    def viterbi(self) -> list[Label]:
        return []


class Tagger:
    """Predict label sequences with a model.

    >>> tagger = Tagger()
    >>> tagger.open("no such model")
    Traceback (most recent call last):
    crfkit.compat.pycrfsuite._files.ModelNotFoundError: cannot open the model no such model: No such file or directory
    """

    def __init__(self) -> None:
        self.close()

    def open(self, name: str | PathLike[str]) -> contextlib.closing[Tagger]:
        """Open a model file of CRFsuite or of crfkit; it may be used as ``with tagger.open(name):``."""
        self._begin(open_model(name))
        return contextlib.closing(self)

    def open_inmemory(self, value: bytes) -> contextlib.closing[Tagger]:
        """Open a model from the bytes of a CRFsuite file."""
        self._begin(open_bytes(value))
        return contextlib.closing(self)

    def _begin(self, opened: OpenModel) -> None:
        self._opened: OpenModel | None = opened
        self._labels: list[Label] = [] if opened.native is None else opened.native.labels
        self._ids = {label: k for k, label in enumerate(self._labels)}
        self._native: Any = _NoLabels() if opened.native is None else opened.native

    def close(self) -> None:
        """Close the model."""
        self._opened = None
        self._labels, self._ids = [], {}
        self._native = _Closed()

    @property
    def model(self) -> ChainModel:
        """The model itself, crfkit's: it tags many sequences in one call, on all cores."""
        if self._opened is None:
            raise ClosedTaggerError
        if self._opened.model is None:
            raise DataError(NO_LABELS)
        return self._opened.model

    def labels(self) -> list[Label]:
        """Return the labels of the model."""
        if self._opened is None:
            raise ClosedTaggerError
        return list(self._labels)

    def tag(self, xseq: Iterable[object] | ItemSequence | None = None) -> list[Label]:
        """Return the best labels of a sequence, or of the one that was set last."""
        try:
            return self._native.viterbi() if xseq is None else self._native.tag(xseq)  # type: ignore[no-any-return]
        except _core.BadInput as error:
            raise DataError(str(error)) from None
        except _core.BadModel as error:
            raise ModelFileError(f"the model is damaged: {error}") from None

    def set(self, xseq: Iterable[object] | ItemSequence) -> None:
        """Set the sequence that `tag`, `probability` and `marginal` are about."""
        try:
            self._native.set(xseq)
        except _core.BadInput as error:
            raise DataError(str(error)) from None
        except _core.BadModel as error:
            raise ModelFileError(f"the model is damaged: {error}") from None

    def probability(self, yseq: Iterable[Label]) -> float:
        """Return the probability of a label sequence for the current sequence."""
        native = self._native
        length = native.length
        if length == 0:
            return 0.0
        ids = [self._id(label) for label in yseq]
        if len(ids) != length:
            raise DataError(f"The numbers of items and labels differ: |x| = {length}, |y| = {len(ids)}")
        return math.exp(native.score(ids) - native.log_partition)

    def marginal(self, y: Label, pos: int) -> float:
        """Return the probability of label `y` at position `pos` of the current sequence."""
        native = self._native
        length = native.length
        if length == 0:
            return 0.0
        if not 0 <= pos < length:
            raise ParameterError(f"the position {pos} is out of range: the sequence has {length} items")
        return native.marginal(self._id(y), pos)  # type: ignore[no-any-return]

    def marginals(self, xseq: Iterable[object] | ItemSequence | None = None) -> NDArray[np.float64]:
        """Return the probabilities of all labels of a sequence, or of the one that was set last: [items, labels]."""
        if xseq is not None:
            self.set(xseq)
        if self._native.length == 0:
            return np.zeros((0, len(self._labels)))
        return self._native.marginals()  # type: ignore[no-any-return]

    def _id(self, label: Label) -> int:
        try:
            return self._ids[label]
        except KeyError:
            raise UnknownLabelError(f"the model has no label {label!r}; its labels are {self._labels}") from None

    def dump(self, filename: str | PathLike[str] | None = None) -> None:
        """Write the model as text to a file, or to standard output."""
        lines = dump_lines(self.info())
        if filename is None:
            sys.stdout.writelines(lines)
        else:
            with open(filename, "w", encoding="utf-8", newline="\n") as stream:
                stream.writelines(lines)

    def info(self) -> ParsedDump:
        """Return the labels, attributes and weights of the model by name."""
        if self._opened is None:
            raise ClosedModelError("The tagger is closed; open a model before you look into it")
        return describe(self._opened.model, self._opened.header)
