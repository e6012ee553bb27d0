"""Plain text as tokens with character offsets: words, numbers, addresses and single signs.

Every character that is not a blank is in exactly one token, and text[token.start : token.end] == token.text. A line is
divided by one regular expression. Then full stops are joined to abbreviations, and clitics are cut off.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from crfkit.text.abbreviations import BEFORE_NUMBERS, STARTERS, STATES, TITLES, WORDS
from crfkit.text.marks import BLANKS, mark_class


class Token(NamedTuple):
    """A token of a text, and its first character and the one after its last."""

    text: str
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """Return the tokens of a text with their offsets in characters.

    >>> text = "Dr. Smith left the U.N. at 10:30."
    >>> [token.text for token in tokens(text)]
    ['Dr.', 'Smith', 'left', 'the', 'U.N.', 'at', '10:30', '.']
    >>> tokens(text)[1]
    Token(text='Smith', start=4, end=9)
    """
    return [token for offset, line in lines(text) for token in with_offsets(line, line_tokens(line), offset)]


def tokenize(text: str) -> list[str]:
    """Return the tokens of a text as strings.

    >>> tokenize("El Sr. Pérez-Roca pagó 3,5 €, ¿no?")
    ['El', 'Sr.', 'Pérez-Roca', 'pagó', '3,5', '€', ',', '¿', 'no', '?']
    >>> tokenize("नमस्ते दुनिया")
    ['नमस्ते', 'दुनिया']
    >>> tokenize("Anna's #news: https://example.org/a?b=1, C++.")
    ['Anna', "'s", '#news', ':', 'https://example.org/a?b=1', ',', 'C++', '.']
    """
    parts = text.splitlines()
    if len(parts) == 1:
        return line_tokens(text)
    return [token for line in parts for token in line_tokens(line)]


def lines(text: str) -> list[tuple[int, str]]:
    """Return where each line of a text begins, and the line with its break, which is a blank."""
    parts = text.splitlines(keepends=True)
    return list(zip(accumulate(map(len, parts), initial=0), parts, strict=False))


def starts(line: str, words: Sequence[str]) -> list[int]:
    """Return where the tokens of a line begin, which are in order and have only blanks between them."""
    found = []
    end = 0
    for word in words:
        start = line.find(word, end)
        end = start + len(word)
        found.append(start)
    return found


def with_offsets(line: str, words: Sequence[str], offset: int = 0) -> list[Token]:
    """Return the tokens of a line that begins at `offset`."""
    return [
        Token(word, offset + start, offset + start + len(word))
        for word, start in zip(words, starts(line, words), strict=True)
    ]


def line_tokens(line: str) -> list[str]:
    """Return the tokens of one line."""
    plain = line.isascii() or _rare().search(line) is None
    found: list[str] = _pattern(plain, "://" in line or "www." in line).findall(line)
    if "'" in line or "’" in line:
        found = _without_clitics(found)
    return _without_stops(found) if "." in line else found


@cache
def _rare() -> re.Pattern[str]:
    """Return a pattern of the characters for which the plain pattern of tokens is not enough."""
    return re.compile(f"[{mark_class(0xFFFF)}{BLANKS}\u05d0-\u05f4\U00010000-\U0010ffff]")


@cache
def _pattern(plain: bool, addresses: bool) -> re.Pattern[str]:
    """Return the pattern of tokens, in which a word may end in a full stop.

    The one for lines without marks, Hebrew and characters beyond the 16-bit range is faster.
    """
    marks = "" if plain else mark_class() + "\u05f3"  # and geresh, which belongs to Hebrew letters
    blanks = "" if plain else BLANKS
    tail = "" if plain else f"[{marks}]*"
    sign = rf"[^\w\s{blanks}]{tail}"
    currency = "|".join(rf"(?<=\b[A-Z]{{{n}}}\$)" for n in (1, 2, 3))  # US$
    run = r"\w+" if plain else rf"\w[\w{marks}]*"
    inside = [r"[-'’./:@&+·‧‐‑⁄]", r"\.-", r"%-(?=[^\W\d])", rf"[,٫٬،，．](?<=\d.)(?=[\d{marks}])"]
    after = [r"\+\+(?!\w)", r"\#(?<![\w.].\#)(?<=[A-Z]\#)(?!\w)", rf"\$(?:{currency})"]
    if not plain:
        inside.append('["״](?<=[א-ת].)(?=[א-ת])')
        after.append(r"['’](?<=[א-ת].)(?!\w)")
    alternatives = [
        # most words have a blank after them; the rest of the alternative would find the same
        rf"{run}(?:(?=\s)|(?:(?:{'|'.join(inside)}){tail}{run})*(?:{'|'.join(after)})?(?:\.(?![.{marks}]))?)",
        rf"\#\d*[^\W\d][\w{marks}]*",
        rf"@{run}",
        r"['’](?:\d\d(?:\d\d)?s?|[sSdDmM]|re|ve|ll|RE|VE|LL)(?!\w)",  # '90s; clitics that stand alone
        rf"\.(?<![\w.]\.)\d[\w{marks}]*",  # .50
        r"\.{3}(?=\.(?!\.))|\.{2,}|-{2,}|={2,}|\*{2,}|~{2,}|`{2,}|'{2,}",
    ]
    if addresses:
        char = rf"[^\s<>\"“”«»(){blanks}]"
        end = rf"[^\s<>\"“”«»(){blanks}.,:;!?'’\]}}…]"
        inner = rf"\([^\s<>(){blanks}]*\)"  # in brackets, as in …/Crab_(animal)
        address = rf"(?:[Hh]ttps?://|ftp://|www\.)(?:{char}|{inner})*(?:{end}|{inner})"
        alternatives.insert(0, address)
    if not plain:
        alternatives.append(f"(?:[\U0001f1e6-\U0001f1ff]{tail}){{2}}")  # a flag
        emoji = r"[\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff]"
        sign += rf"(?:(?<=\u200d){emoji}{tail})*"
    return re.compile("|".join([*alternatives, sign]))


# --- full stops


_DOTTED = re.compile(  # U.N, e.g, Ph.D, EE.UU, also after a hyphen: non-U.S
    r"(?:.*[-/])?(?:[^\W\d_]|[A-Z][A-Za-z])(?:\.-?(?:[^\W\d_]|[A-Z][A-Za-z]))+", re.DOTALL
)
_AFTER_HYPHEN = TITLES | WORDS


def _without_stops(found: list[str]) -> list[str]:
    """Cut full stops from the words that are not abbreviations."""
    out: list[str] = []
    done = 0
    last = len(found) - 1
    for k in [k for k, token in enumerate(found) if token[-1] == "." and token[0] != "."]:
        word = found[k][:-1]
        if not _keeps_stop(word, found[k - 1] if k else "", found[k + 1] if k < last else ""):
            out += found[done:k]
            out += (word, ".")
            done = k + 1
    out += found[done:]
    return out


def _keeps_stop(word: str, previous: str, following: str) -> bool:
    """Return whether a word is an abbreviation, so that the full stop after it is part of it."""
    if following and following[0] in ",;":
        return True  # no sentence ends before a comma
    if word in TITLES:
        return True
    if word in WORDS:  # … of Acme Inc. The company: the full stop ends the sentence
        return bool(following) and not begins_sentence(following)
    before_number = following[:1].isdigit()
    if len(word) == 1 and word.isalpha():
        return _is_initial(word, previous, following) or (before_number and word.islower())
    if before_number and word in BEFORE_NUMBERS:
        return True
    if "." in word and _DOTTED.fullmatch(word) is not None:
        return True
    if "-" in word:
        return word[word.rindex("-") + 1 :] in _AFTER_HYPHEN
    return previous == "," and word in STATES


def begins_sentence(word: str) -> bool:
    """Return whether a word after an abbreviation is so common at the beginning of a sentence that it begins one."""
    return word.removesuffix(".") in STARTERS


def _is_initial(letter: str, previous: str, following: str) -> bool:
    if letter.isupper():  # J. Smith, J. de la Cruz; but not: Plan B. Then …
        return following[:1].isalpha() and not begins_sentence(following)
    if letter == "v":  # Roe v. Wade
        return following[:1].isupper()
    if letter == "h":  # a las 20.30 h.
        return previous[-1:].isdigit()
    return len(following) == 2 and following[0].isalpha() and following[1] == "."  # z. B., a. C.


# --- clitics

_VOWEL = "aàâäáeéèêëiîïíoôöóœuùûüúyhæAÀÂÄÁEÉÈÊËIÎÏÍOÔÖÓŒUÙÛÜÚYHÆ"
_ENGLISH = re.compile(r"(.+?)([nN]['’][tT]|['’](?:[sSdDmM]|re|ve|ll|RE|VE|LL))(\.?)")
# French and Italian. A capital before a capital is left alone: D'Arcy, L'Oréal
_ELIDED = (
    "(?:[ldcjmnst]|qu|jusqu|lorsqu|puisqu|quoiqu|d?all|dell|nell|sull|un|quest|quell)['’](?=[{0}])"
    "|(?:[LDCJMNST]|Qu|Jusqu|Lorsqu|Puisqu|Quoiqu|D?all|Dell|Nell|Sull|Un|Quest|Quell)['’](?=[{1}])"
)
_ELISION = re.compile(_ELIDED.format(_VOWEL, "".join(c for c in _VOWEL if c.islower())))


def _without_clitics(found: list[str]) -> list[str]:
    """Cut 's, n't and their like from the ends of words, and elided articles and pronouns from their beginnings."""
    out: list[str] = []
    done = 0
    for k in [k for k, token in enumerate(found) if "'" in token or "’" in token]:
        token = found[k]
        if not token[0].isalnum() or "//" in token:
            continue
        out += found[done:k]
        done = k + 1
        elided = _ELISION.match(token)
        if elided is not None:
            out.append(elided[0])
            token = token[elided.end() :]
        clitic = _ENGLISH.fullmatch(token)
        if clitic is not None:
            out.append(clitic[1])
            token = clitic[2] + clitic[3]
        out.append(token)
    out += found[done:]
    return out
