"""A hint for those who give sentences of plain text to a command that expects a token per line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel


@contextmanager
def hinting(model: ChainModel, format: str, option: str = "--format text") -> Iterator[None]:
    """Mention the option where a line cannot be read as columns and the model reads plain words."""
    from crfkit.errors import DataError

    try:
        yield
    except DataError as error:
        if not error.line or format != "auto" or model.vocabulary.text is None:
            raise
        raise DataError(f"{error}; give {option} if this is plain text") from None
