"""Plain text as tokens: one sentence per line, which becomes lines of one token each and a blank line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from crfkit.errors import DataError
from crfkit.readers.lines import whole_lines

_TOKEN = re.compile(r"\w+(?:[-'’.,:/@&+]\w+)*|[^\w\s]")


def tokenize(line: str) -> list[str]:
    """Return the tokens of a text: words and numbers, which may have one of - ' . , : / @ & + inside, and other signs.

    >>> tokenize("El Sr. Pérez-Roca pagó 3,5 €, ¿no?")
    ['El', 'Sr', '.', 'Pérez-Roca', 'pagó', '3,5', '€', ',', '¿', 'no', '?']
    """
    return _TOKEN.findall(line)


def characters(line: str) -> list[str]:
    """Return the characters of a text other than blanks."""
    return [c for c in line if not c.isspace()]


# formats of plain text, a sentence per line → the tokens of a line
PLAIN_FORMATS: dict[str, Callable[[str], list[str]]] = {
    "text": tokenize,
    "words": str.split,
    "characters": characters,
}


def plain_chunks(blocks: Iterable[bytes], format: str, name: str) -> Iterator[bytes]:
    """Yield a text in UTF-8 as lines of one token each, with a blank line after each sentence."""
    tokens = PLAIN_FORMATS[format]
    number = 0
    for block in whole_lines(blocks):
        lines = block.removesuffix(b"\n").split(b"\n")
        found = []
        for raw in lines:
            number += 1
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise DataError(
                    f"not UTF-8 at byte {error.start + 1} of the line; name the encoding of the file, as in "
                    "--encoding latin-1",
                    name,
                    number,
                ) from None
            words = tokens(line)
            if words:
                found.append("\n".join(words) + "\n\n")
        if found:
            yield "".join(found).encode()
