"""ItemSequence: items whose attributes have been worked out once, to be tagged or learned several times."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crfkit import _core
from crfkit.errors import DataError


class ItemSequence(list[dict[str, float]]):
    """The attributes of a sequence: a list with one ``{attribute: value}`` for each item.

    An item may be a list (or set, or other iterable) of attributes, or a dict: ``{"word": "the"}`` is the attribute
    ``word:the``; numbers and booleans are values; dicts, lists and sets nest, ``{"next": ["a"]}`` is ``next:a``.

    >>> ItemSequence([["foo"], {"bar": {"baz": 2}, "word": "the"}]).items()
    [{'foo': 1.0}, {'bar:baz': 2.0, 'word:the': 1.0}]
    """

    def __init__(self, pyseq: Iterable[Any]) -> None:
        try:
            totals, last = _core.prepare_items(pyseq)
        except _core.BadInput as error:
            raise DataError(str(error)) from None
        super().__init__(totals)
        # an attribute that is named several times counts as often, but `items` shows its last value
        self._last: list[dict[str, float] | None] = last
        if isinstance(pyseq, ItemSequence):
            self._last = pyseq._last

    def items(self) -> list[dict[str, float]]:
        """Return the attributes of each item with their values."""
        return [dict(total if last is None else last) for total, last in zip(self, self._last, strict=True)]

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"
