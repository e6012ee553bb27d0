"""Attributes of plain words: TextFeatures has the options, and the native encoder computes them."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from crfkit import _core
from crfkit._checks import is_whole
from crfkit._values import Entries, Record
from crfkit.errors import ParameterError
from crfkit.names import unknown_name
from crfkit.parameters import Parameters
from crfkit.text.embeddings import Embeddings
from crfkit.text.gazetteers import Phrases, check_name, phrases_of
from crfkit.wording import shortened


@dataclass(frozen=True)
class TextFeatures(Parameters):
    """Make attributes of plain words: the word and its neighbours, prefixes, suffixes, shapes, lists, vectors.

    Tokens are strings, or rows of columns that begin with the word. The model keeps what it needs to read plain text.

    >>> features = TextFeatures(window=1, affixes=1, shapes=False, pairs=False)
    >>> for names in features.expand(["In", "Rome"]):
    ...     print(*names)
    word[0]=In lower[0]=in lowerprefix1[0]=i lowersuffix1[0]=n lower[-1]=<s> lower[1]=rome
    word[0]=Rome lower[0]=rome lowerprefix1[0]=r lowersuffix1[0]=e lower[-1]=in lower[1]=</s>

    Parameters
    ----------
    window : words up to this distance give attributes
    affixes : length of the longest prefix and suffix of the word, in characters; 0 for none
    shapes : use shapes of words: X for capitals, x for small letters, d for digits, as in ``Xxx-dd`` for "Covid-2020"
    lower : use words, prefixes and suffixes in lower case, next to the word as written; lists match in any case
    pairs : use pairs of neighbouring words, and of columns
    bag : use the words up to this distance before and after, whatever their order; 0 for none
    context : use affixes of the neighbours, and words next to shapes; for names, which are recognised by their context
    columns : numbers of further columns to use, such as (1,) for parts of speech; the word is column 0
    characters : tokens are characters of a text: use sequences of up to this many characters, and their scripts
    gazetteers : lists of phrases by name, each a collection of phrases or the path of a file with one per line. The
        longest phrases are found, and their first and further words marked
    embeddings : vectors of words: a mapping, or the path of a text file (word2vec's or GloVe's); each dimension is an
        attribute with a value
    embedding_window : words up to this distance give their vectors
    extra : further rules, such as "lower[-1]|shape2[0]"; docs/guides/text_features.md has their syntax
    rules : rules instead of those that the options above stand for; None derives them
    """

    window: int = 2
    affixes: int = 4
    shapes: bool = True
    lower: bool = True
    pairs: bool = True
    bag: int = 0
    context: bool = False
    columns: tuple[int, ...] = ()
    characters: int = 0
    gazetteers: Mapping[str, Any] | None = None
    embeddings: Any = None
    embedding_window: int = 0
    extra: tuple[str, ...] = ()
    rules: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name, most in (("window", 10), ("affixes", 20), ("bag", 20), ("characters", 4), ("embedding_window", 10)):
            value = getattr(self, name)
            if not is_whole(value) or not 0 <= int(value) <= most:
                raise ParameterError(f"{name} must be a whole number from 0 to {most}, not {value!r}")
            object.__setattr__(self, name, int(value))
        for name in ("shapes", "lower", "pairs", "context"):
            if not isinstance(getattr(self, name), bool):
                raise ParameterError(f"{name} must be True or False, not {getattr(self, name)!r}")
        object.__setattr__(self, "columns", _columns(self.columns))
        object.__setattr__(self, "extra", _rules("extra", self.extra))
        if self.rules is not None:
            object.__setattr__(self, "rules", _rules("rules", self.rules))
        if self.gazetteers is not None:
            object.__setattr__(self, "gazetteers", _gazetteers(self.gazetteers))
        if self.embeddings is not None:
            object.__setattr__(self, "embeddings", Embeddings.of(self.embeddings))
        self.native  # noqa: B018 - raises if a rule is wrong

    @classmethod
    def make(cls, source: TextFeatures | str) -> TextFeatures:
        """Return the features themselves, or the features of a preset.

        >>> TextFeatures.make("pos").affixes
        4
        """
        if isinstance(source, TextFeatures):
            return source
        from crfkit.text.presets import PRESETS

        if not isinstance(source, str):
            raise ParameterError(
                f"features must be TextFeatures or the name of a preset ({', '.join(PRESETS)}), not {source!r}"
            )
        if source not in PRESETS:
            raise unknown_name("preset of features", source, tuple(PRESETS))
        return PRESETS[source]

    @property
    def all_rules(self) -> tuple[str, ...]:
        """Return the rules that the options stand for; they begin the names of the attributes."""
        derived = [*self._words(), *self._neighbours(), *self._others()] if self.rules is None else self.rules
        return tuple(dict.fromkeys([*derived, *self.extra]))

    @cached_property
    def native(self) -> _core.TextRules:
        """The rules as the encoder uses them."""
        lists = [(name, phrases.table) for name, phrases in (self.gazetteers or {}).items()]
        found = self.embeddings
        try:
            return _core.TextRules(
                self.all_rules,
                lists,
                self.lower,
                found and found.words,
                None if found is None else found.vectors.ravel(),
            )
        except _core.LineError as error:
            raise ParameterError(f"a rule of the text features is wrong: {shortened(error.args[1])}") from None

    @property
    def n_columns(self) -> int:
        """Return the number of columns that tokens need; 1 if words are enough."""
        return self.native.n_columns

    def same_attributes(self, other: TextFeatures) -> bool:
        """Return whether others make the same attributes of all texts."""
        return (
            self.all_rules == other.all_rules
            and self.lower == other.lower
            and (self.gazetteers or {}) == (other.gazetteers or {})
            and self.embeddings == other.embeddings
        )

    def expand(self, tokens: Sequence[str] | Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the attributes of each token of a sequence; a value other than 1 follows its name, as in "a:0.5"."""
        rows = [[token] if isinstance(token, str) else list(token) for token in tokens]
        found = self.native.expand(rows)
        return [[name if value == 1.0 else f"{name}:{value:g}" for name, value in position] for position in found]

    # --- rules

    def _words(self) -> list[str]:
        word = "lower" if self.lower else "word"
        affix = "lower" if self.lower else ""
        found = ["word[0]", f"{word}[0]"]
        found += [f"{affix}{end}{n}[0]" for n in range(1, self.affixes + 1) for end in ("prefix", "suffix")]
        found += ["shape2[0]"] * self.shapes
        return found

    def _neighbours(self) -> list[str]:
        word, affix = ("lower", "lower") if self.lower else ("word", "")
        near = [k for n in range(1, self.window + 1) for k in (-n, n)]
        found = []
        for k in near:
            found += [f"{word}[{k}]"]
            if self.context and abs(k) == 1:
                found += [f"{affix}{end}{n}[{k}]" for n in (3, 4) if n <= self.affixes for end in ("prefix", "suffix")]
        if self.bag:
            found += [f"{word}[-{self.bag}..-1]", f"{word}[1..{self.bag}]"]
        first = -min(self.window, 1)
        if self.pairs:
            found += [f"{word}[{k}]|{word}[{k + 1}]" for k in range(first, -first)]
        if self.shapes:
            found += [f"shape2[{k}]" for k in near]
            found += [f"shape2[{k}]|shape2[{k + 1}]" for k in range(first, -first)]
            if self.context and self.window:
                found += [f"{word}[-1]|shape2[0]", f"shape2[0]|{word}[1]", "shape2[-1]|shape2[0]|shape2[1]"]
        return found

    def _others(self) -> list[str]:
        found = []
        for column in self.columns:
            name = f"column{column}"
            found += [f"{name}[{k}]" for k in range(-self.window, self.window + 1)]
            if self.pairs:
                found += [f"{name}[{k}]|{name}[{k + 1}]" for k in range(-self.window, self.window)]
                found += [f"{name}[{k - 1}]|{name}[{k}]|{name}[{k + 1}]" for k in range(1 - self.window, self.window)]
        if self.characters:
            found += [f"script[{k}]" for k in range(-self.window, self.window + 1)]
            found += [f"script[{k}]|script[{k + 1}]" for k in range(-self.window, self.window)]
            for n in range(2, self.characters + 1):
                starts = range(-self.window, self.window - n + 2)
                found += ["|".join(f"word[{k + i}]" for i in range(n)) for k in starts]
        if self.gazetteers:
            found += [f"gazetteer[{k}]" for k in range(-min(self.window, 1), min(self.window, 1) + 1)]
        if self.embeddings is not None:
            found += [f"embedding[{k}]" for k in range(-self.embedding_window, self.embedding_window + 1)]
        return found

    # --- the model file

    def to_json(self) -> Entries:
        """Return the options for the metadata of a model file, with lists by name only and without vectors."""
        found = {item.name: getattr(self, item.name) for item in fields(self)}
        found |= {"columns": list(self.columns), "extra": list(self.extra), "rules": list(self.all_rules)}
        found |= {"gazetteers": list(self.gazetteers or ()), "embeddings": self.embeddings is not None}
        return found

    def __getstate__(self) -> dict[str, object]:
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def __setstate__(self, state: Record) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)


def _columns(given: object) -> tuple[int, ...]:
    columns = (given,) if isinstance(given, numbers.Integral) else given
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise ParameterError(f"columns must be numbers of columns, such as (1,), not {given!r}")
    found = []
    for column in columns:
        if not is_whole(column) or not 1 <= int(column) <= 1000:
            raise ParameterError(
                f"columns must be whole numbers from 1 to 1000, not {column!r}; column 0 is the word, which is used "
                "anyway"
            )
        found.append(int(column))
    return tuple(dict.fromkeys(found))


def _rules(name: str, given: object) -> tuple[str, ...]:
    found = (given,) if isinstance(given, str) else given
    found = tuple(found) if isinstance(found, Iterable) else (None,)
    if not all(isinstance(rule, str) for rule in found):
        raise ParameterError(f"{name} must be rules such as 'lower[-1]|lower[0]', not {given!r}")
    return found


def _gazetteers(given: object) -> dict[str, Phrases]:
    if not isinstance(given, Mapping):
        raise ParameterError(f"gazetteers must be a mapping from names to phrases or paths, not {given!r}")
    return {check_name(name): phrases_of(name, phrases) for name, phrases in given.items()}
