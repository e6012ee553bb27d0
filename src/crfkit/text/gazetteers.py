"""Lists of phrases (gazetteers) for text features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from crfkit import _core
from crfkit.errors import DataError, ParameterError
from crfkit.files.columns import read_chunks
from crfkit.files.lines import whole_lines, with_newlines


class Phrases(Sequence[str]):
    """Hold the phrases of a list; words of a phrase are separated by blanks when it is shown.

    >>> list(Phrases.of_lines("cities", ["Rome", "New  York", "", "Rome"]))
    ['Rome', 'New York']
    """

    def __init__(self, joined: Iterable[str]) -> None:
        self._joined = tuple(dict.fromkeys(joined))  # words joined by tabs

    @classmethod
    def of_lines(cls, name: str, lines: Iterable[object]) -> Phrases:
        """Return the phrases of strings, whose words are separated by blanks, or of sequences of words."""
        found = []
        for k, line in enumerate(lines):
            words = line.split() if isinstance(line, str) else line
            if isinstance(words, (bytes, dict)) or not isinstance(words, Iterable):
                raise ParameterError(
                    f"gazetteer {name!r}: phrase {k} is {line!r}; expected a string or a sequence of words"
                )
            words = list(words)
            if not all(isinstance(word, str) for word in words):
                raise ParameterError(f"gazetteer {name!r}: phrase {k} has a word that is not a string: {line!r}")
            if any("\t" in word or not word for word in words):
                raise ParameterError(f"gazetteer {name!r}: phrase {k} has an empty word or one with a tab: {line!r}")
            if words:
                found.append("\t".join(words))
        return cls(found)

    @cached_property
    def table(self) -> _core.StringTable:
        """The phrases as the encoder and the model file have them."""
        return _core.StringTable.from_strings(list(self._joined))

    def __len__(self) -> int:
        return len(self._joined)

    def __getitem__(self, k: Any) -> Any:
        found = self._joined[k]
        return found.replace("\t", " ") if isinstance(found, str) else [text.replace("\t", " ") for text in found]

    def __iter__(self) -> Iterator[str]:
        return (text.replace("\t", " ") for text in self._joined)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Phrases) and self._joined == other._joined

    def __hash__(self) -> int:
        return hash(self._joined)

    def __repr__(self) -> str:
        return f"<{len(self)} phrases>"

    def __getstate__(self) -> dict[str, object]:
        return {"_joined": self._joined}


def phrases_of(name: str, given: object) -> Phrases:
    """Return the phrases of a collection, or of a file with one per line."""
    if isinstance(given, Phrases):
        return given
    if isinstance(given, (str, Path)):
        found = Phrases.of_lines(name, _read_lines(given, name))
    elif isinstance(given, Iterable) and not isinstance(given, (bytes, dict)):
        found = Phrases.of_lines(name, given)
    else:
        raise ParameterError(f"gazetteer {name!r} must be a collection of phrases or the path of a file, not {given!r}")
    if not len(found):
        raise ParameterError(f"gazetteer {name!r} has no phrases")
    return found


def _read_lines(path: str | Path, name: str) -> Iterator[str]:
    place = 0
    for block in whole_lines(with_newlines(read_chunks(path, what=f"the gazetteer {name!r}"), str(path))):
        try:
            yield from block.decode("utf-8" if place else "utf-8-sig").removesuffix("\n").split("\n")
        except UnicodeDecodeError as error:
            raise DataError(f"the gazetteer {name!r} is not UTF-8 at byte {place + error.start + 1}", path) from None
        place += len(block)


def check_name(name: object) -> str:
    """Return the name of a gazetteer; raise ParameterError if it is not a usable string."""
    if not isinstance(name, str) or not name:
        raise ParameterError(f"a gazetteer needs a name that is a string, not {name!r}")
    if not name.isascii() and name.encode("utf-8", "replace").decode() != name:
        raise ParameterError(f"the name {name!r} of a gazetteer is not valid Unicode: it has a lone surrogate")
    return name
