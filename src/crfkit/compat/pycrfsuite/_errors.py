"""Errors that are crfkit's and of the types that python-crfsuite raised."""

from __future__ import annotations

from typing import ClassVar

from crfkit.errors import CrfkitError, DataError, ParameterError

_FIRST = -(2**31)


class CRFSuiteError(CrfkitError):
    """Training that could not be done; `code` is CRFsuite's.

    >>> CRFSuiteError(-2147483643)
    CRFSuiteError('Overflow')
    """

    _messages: ClassVar[dict[int, str]] = {
        _FIRST: "Unknown error occurred",
        _FIRST + 1: "Insufficient memory",
        _FIRST + 2: "Unsupported operation",
        _FIRST + 3: "Incompatible data",
        _FIRST + 4: "Internal error",
        _FIRST + 5: "Overflow",
        _FIRST + 6: "Not implemented",
    }

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(self._messages.get(code, "Unexpected error"))


OVERFLOW = _FIRST + 5


class LabelTypeError(DataError, TypeError):
    """A label that is not a string."""


class ClosedTaggerError(ParameterError):
    """A tagger that has no model open."""

    def __init__(self) -> None:
        super().__init__("The tagger is not opened; call open() with the name of a model file")


class ClosedModelError(CrfkitError, RuntimeError):
    """A model that was closed before it was to be shown."""


class UnknownLabelError(CrfkitError, RuntimeError):
    """A label that the model does not have."""
