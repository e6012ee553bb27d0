"""Plain text: its features from the options of `crfkit train`, and a hint where it is read as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from crfkit.errors import DataError, ParameterError

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel
    from crfkit.text.words import TextFeatures


def text_features(
    preset: str | None,
    template: Path | None,
    columns: str | None = None,
    gazetteers: Sequence[str] | None = None,
    embeddings: Path | None = None,
) -> TextFeatures | None:
    """Return the features of a preset with the additions that were requested, or None if no preset was named.

    >>> text_features("ner", None, columns="1,2").columns
    (1, 2)
    """
    from crfkit.text.words import TextFeatures

    additions = {"--feature-columns": columns, "--gazetteer": gazetteers, "--embeddings": embeddings}
    if preset is None:
        for option, value in additions.items():
            if value:
                raise ParameterError(f"{option} adds to text features; give --features NAME as well")
        return None
    if template is not None:
        raise ParameterError("--features and --template cannot be combined; give one of them")
    features = TextFeatures.make(preset)
    if columns is not None:
        features = replace(features, columns=tuple(_number(text) for text in columns.split(",")))
    if gazetteers:
        features = replace(features, gazetteers=dict(_named(text) for text in gazetteers))
    return features if embeddings is None else replace(features, embeddings=embeddings)


def _number(text: str) -> int:
    if not text.strip().isdecimal():
        raise ParameterError(f"--feature-columns must be numbers such as 1 or 1,2, not {text!r}")
    return int(text)


def _named(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not equals or not name or not path:
        raise ParameterError(f"--gazetteer must be NAME=FILE, as in LOC=cities.txt, not {text!r}")
    return name, Path(path)


@contextmanager
def hinting(model: ChainModel, format: str, option: str = "--format text") -> Iterator[None]:
    """Mention the option where a line cannot be read as columns and the model reads plain words."""
    try:
        yield
    except DataError as error:
        if not error.line or format != "auto" or model.vocabulary.text is None:
            raise
        raise DataError(f"{error}; give {option} if this is plain text") from None
