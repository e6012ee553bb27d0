"""Words of messages."""

from __future__ import annotations

from collections.abc import Callable

Naming = Callable[..., str]  # (name of an option, value or None) → how messages write it


def in_python(name: str, value: str | None = None) -> str:
    """Return an option as messages in Python write it. Commands hand over their own function.

    >>> in_python("max_iterations"), in_python("loss", "likelihood")
    ('max_iterations', "loss='likelihood'")
    """
    return name if value is None else f"{name}={value!r}"


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun.

    >>> counted(1, "column"), counted(3, "column"), counted(2, "entry", "entries")
    ('1 column', '3 columns', '2 entries')
    """
    return f"{n} {noun if n == 1 else plural or noun + 's'}"


def shortened(text: str, length: int = 400) -> str:
    """Return a message that quotes a line of a file, without the middle of a long line and without control characters.

    >>> shortened("'" + 1000 * "x" + "' is no macro", 40)
    "'xxxxxxxxxxxxxxxxxxx … xxxxxxx' is no macro"
    >>> print(shortened("'\\x1b[2J' is no macro"))
    '\\x1b[2J' is no macro
    """
    if len(text) > length:
        text = f"{text[: length // 2]} … {text[-(length // 2) :]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def quoted(value: object) -> str:
    """Return what a person gave, as Python writes it; its type if that fails, as for a list that is nested too deep.

    >>> quoted("x"), quoted(None)
    ("'x'", 'None')
    """
    try:
        return shortened(repr(value))
    except Exception:  # whatever an object of the caller's raises
        return f"an object of type {type(value).__name__} that cannot be printed"


def printable(text: str) -> str:
    """Return a text for the terminal: line ends and tabs stay, other control characters are shown as escapes.

    So are lone surrogates, which no encoding has.

    Names in models and files may hold anything, such as a sequence that clears the screen or turns a line around.

    >>> print(printable("B-\\x1b[2J"))
    B-\\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(c.encode("unicode_escape").decode() if c in _CONTROLS else c for c in text)


_CONTROLS = frozenset(
    map(chr, [*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
) | frozenset(map(chr, range(0xD800, 0xE000)))
