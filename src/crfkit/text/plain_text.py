"""Plain text as lines of one token each, with a blank line after each sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from crfkit.errors import DataError
from crfkit.files.lines import whole_lines

PLAIN_FORMATS = ("text", "words", "characters")


def characters(line: str) -> list[str]:
    """Return the characters of a text other than blanks."""
    return [c for c in line if not c.isspace()]


def sentences_of_line(format: str) -> Callable[[str], list[list[str]]]:
    """Return the function that divides a line of a format into sentences of tokens."""
    if format == "text":
        from crfkit.text.sentences import sentence_words  # here, since its patterns take milliseconds to compile

        return sentence_words
    split: Callable[[str], list[str]] = str.split if format == "words" else characters
    return lambda line: [words] if (words := split(line)) else []


def plain_chunks(blocks: Iterable[bytes], format: str, name: str) -> Iterator[bytes]:
    """Yield a text in UTF-8 as lines of one token each, with a blank line after each sentence.

    A line of the format "text" may have several sentences, one of the other formats is a sentence.
    """
    sentences = sentences_of_line(format)
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
            found += ["\n".join(words) + "\n\n" for words in sentences(line)]
        if found:
            yield "".join(found).encode()


def __getattr__(name: str) -> object:
    if name == "tokenize":  # where it was before crfkit.text
        from crfkit.text import tokenize

        return tokenize
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
