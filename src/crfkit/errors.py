"""The errors and warnings of crfkit. Each message says what was wrong, where, what was expected and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, TypeVar

Error = TypeVar("Error", bound="CrfkitError")


class CrfkitError(Exception):
    """Base of all errors of crfkit."""

    path: Any = None  # the file that the message names, if it does
    sample: int | None = None  # the number of the graph, row or image that the message begins with
    problem: str = ""  # what follows the sample, or the option, in the message

    def in_file(self: Error, path: str | Path) -> Error:
        """Return the error with a file in front of its message, unless it names one already."""
        if self.path is not None:
            return self
        error = copy(self)
        error.args = (f"{path}: {self}",)
        error.path = path
        return error

    def of_sample(self: Error, name: str) -> Error:
        """Return the error with another name for its sample."""
        error = copy(self)
        error.args = (f"{name}{self.problem}",)
        return error


def sample_error(kind: type[Error], sample: int, problem: str, noun: str = "graph") -> Error:
    """Return an error about a graph, row or image by number, which callers who know its name can put in.

    >>> error = sample_error(DataError, 1, " has a cycle")
    >>> str(error), str(error.of_sample("b.png"))
    ('graph 1 has a cycle', 'b.png has a cycle')
    """
    error = kind(f"{noun} {sample}{problem}")
    error.sample, error.problem = sample, problem
    return error


@contextmanager
def naming_file(path: str | Path) -> Iterator[None]:
    """Record in errors that their message names this file."""
    try:
        yield
    except CrfkitError as error:
        error.path = error.path or path
        raise


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

    def __init__(self, message: str, path: str | Path | None = None) -> None:
        super().__init__(message)
        self.path = path  # if the message names it


class EncodingError(ModelFileError):
    """A model file whose texts are not in the encoding that was named."""


class ParameterError(CrfkitError, ValueError):
    """An option outside its range, or a name that does not exist."""

    option: str | None = None  # the name of the option that the message begins with; `problem` follows it


def option_error(option: str, problem: str) -> ParameterError:
    """Return an error about an option by name, which the command line writes in its own way.

    >>> error = option_error("n_threads", " must be an integer >= 1")
    >>> str(error), error.option
    ('n_threads must be an integer >= 1', 'n_threads')
    """
    error = ParameterError(f"{option}{problem}")
    error.option, error.problem = option, problem
    return error


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
    """A checkpoint could not be written; training continued."""


class ApproximationWarning(UserWarning):
    """An approximation that was used because exact inference would take too long, or whose results are unreliable."""
