"""The errors and warnings of crfkit. Each message says what was wrong, where, what was expected and what to do."""

from __future__ import annotations

from pathlib import Path


class CrfkitError(Exception):
    """Base of all errors of crfkit."""


class DataError(CrfkitError, ValueError):
    """Input data that cannot be used: a malformed file, ragged columns, NaN, mismatched labels."""

    def __init__(self, message: str, path: str | Path | None = None, line: int = 0) -> None:
        where = f"{path}:{line}: " if path and line else f"{path}: " if path else f"line {line}: " if line else ""
        super().__init__(where + message)
        self.path = path
        self.line = line


class TemplateError(DataError):
    """A feature template that cannot be used."""


class TemplateWarning(UserWarning):
    """A feature template that is valid but probably contains a mistake."""


class DataWarning(UserWarning):
    """Input data that can be used but probably contain a mistake."""


class ModelFileError(CrfkitError, ValueError):
    """A file that is not a model file, or one that is truncated, altered or from a newer version."""


class ParameterError(CrfkitError, ValueError):
    """An option outside its range, or a name that does not exist."""


class LimitError(CrfkitError, ValueError):
    """A file asks for more memory or time than :mod:`crfkit.files.limits` allows. The message says how to allow it."""


class MissingPackageError(ParameterError, ImportError):
    """A package that only some functions need is not installed. The message names the extra that brings it."""


class CapabilityError(CrfkitError, TypeError):
    """A loss, a penalty and a solver that cannot work together."""


class ClusterError(CrfkitError, RuntimeError):
    """A cluster that cannot be reached, or that lost its workers faster than they could be replaced."""


class StopTraining(Exception):  # noqa: N818 - a signal, not an error
    """Raised by a callback to end training at the current iterate."""


class CheckpointWarning(UserWarning):
    """A checkpoint that could not be written while training went on."""


class ApproximationWarning(UserWarning):
    """An approximation that was used because exact inference would take too long, or whose results are unreliable."""
