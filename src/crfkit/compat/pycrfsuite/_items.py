"""ItemSequence: items whose attributes have been worked out once, to be tagged or learned several times."""

from __future__ import annotations

from collections.abc import Iterable

from crfkit import _core
from crfkit.errors import DataError


class ItemSequence(_core.Items):
    """The attributes of a sequence, as the core keeps them.

    An item may be a list (or set, or other iterable) of attributes, or a dict: ``{"word": "the"}`` is the attribute
    ``word:the``; numbers and booleans are values; dicts, lists and sets nest, ``{"next": ["a"]}`` is ``next:a``.

    >>> ItemSequence([["foo"], {"bar": {"baz": 2}, "word": "the"}]).items()
    [{'foo': 1.0}, {'bar:baz': 2.0, 'word:the': 1.0}]
    """

    def __init__(self, pyseq: Iterable[object]) -> None:
        try:
            super().__init__(pyseq)
        except _core.BadInput as error:
            raise DataError(str(error)) from None

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"
