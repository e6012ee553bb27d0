"""ItemSequence: items whose attributes have been worked out once, to be tagged or learned several times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from crfkit.errors import DataError


class ItemSequence(list[dict[str, float]]):
    """The attributes of a sequence: a list with one ``{attribute: value}`` for each item.

    An item may be a list (or set, or other iterable) of attributes, or a dict: ``{"word": "the"}`` is the attribute
    ``word:the``; numbers and booleans are values; dicts, lists and sets nest, ``{"next": ["a"]}`` is ``next:a``.

    >>> ItemSequence([["foo"], {"bar": {"baz": 2}, "word": "the"}]).items()
    [{'foo': 1.0}, {'bar:baz': 2.0, 'word:the': 1.0}]
    """

    def __init__(self, pyseq: Iterable[Any]) -> None:
        self._shown: list[dict[str, float]] | None = None
        if isinstance(pyseq, ItemSequence):
            super().__init__(pyseq)
            self._shown = pyseq._shown
            return
        if isinstance(pyseq, (str, bytes)) or not isinstance(pyseq, Iterable):
            raise DataError(f"a sequence must be a list of items, not the {type(pyseq).__name__} {pyseq!r}")
        pairs = [list(_attributes(item, t)) for t, item in enumerate(pyseq)]
        shown = [dict(item) for item in pairs]
        super().__init__(shown)
        for t, item in enumerate(pairs):
            if len(item) > len(shown[t]):  # an attribute that is named several times counts as often
                self._shown = shown
                self[t] = {}
                for name, value in item:
                    self[t][name] = self[t].get(name, 0.0) + value

    def items(self) -> list[dict[str, float]]:
        """Return the attributes of each item with their values."""
        return [dict(item) for item in (self if self._shown is None else self._shown)]

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"


def _attributes(item: Any, t: int) -> Iterator[tuple[str, float]]:
    """Yield the attributes of an item with their values."""
    if isinstance(item, (str, bytes)) or not isinstance(item, Iterable):
        raise DataError(
            f"position {t}: an item must be a list of attribute strings or a dict, not the {type(item).__name__} "
            f"{item!r}"
        )
    if not isinstance(item, dict):
        for name in item:
            yield _text(name, t), 1.0
        return
    for key, value in item.items():
        name = _text(key, t)
        if isinstance(value, (str, bytes)):
            yield f"{name}:{_text(value, t)}", 1.0
        elif isinstance(value, (dict, list, tuple, set, frozenset)):
            for inner, number in _attributes(value, t):
                yield f"{name}:{inner}", number
        else:
            try:
                yield name, float(value)
            except (TypeError, ValueError):
                raise DataError(
                    f"position {t}: '{name}' is a {type(value).__name__}; expected a string, a number, a boolean, a "
                    "list of strings or a dict"
                ) from None


def _text(value: Any, t: int) -> str:
    try:
        if isinstance(value, str):
            return value
        if isinstance(value, bytes):
            return value.decode()
    except UnicodeDecodeError:
        raise DataError(f"position {t}: the bytes {value!r} are not UTF-8") from None
    raise DataError(f"position {t}: an attribute must be a string, not the {type(value).__name__} {value!r}")
