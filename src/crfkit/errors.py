"""Everything crfkit raises on purpose. Each message says what was given, where, and what to do."""

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
    """A feature template that probably does not mean what was meant."""


class DataWarning(UserWarning):
    """Input data that can be used, but probably not as was meant."""


class ModelFileError(CrfkitError, ValueError):
    """A model file that is truncated, foreign, altered or from a newer version."""


class ParameterError(CrfkitError, ValueError):
    """An option outside its range, or a name that does not exist."""


class CapabilityError(CrfkitError, TypeError):
    """A loss, a penalty and a solver that cannot work together."""


class StopTraining(Exception):  # noqa: N818 - a signal, not an error
    """Raised by a callback to end training at the current iterate."""


class ApproximationWarning(UserWarning):
    """An approximation that was chosen because exact inference would take too long, or that cannot be trusted here."""
