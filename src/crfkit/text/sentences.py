"""Plain text as sentences. A line break always ends a sentence; within a line, full stops and their like do.

A full stop ends a sentence if a blank and no lower-case letter follow it. The full stop of an abbreviation (U.S., Inc.)
does only if a word follows that often begins a sentence ("The"). Doubtful places are left together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from crfkit.text.abbreviations import AFTER_ORDINALS, TITLES, WORDS
from crfkit.text.tokens import Token, begins_sentence, line_tokens, lines, starts, with_offsets

_WIDE = frozenset("。｡！？")  # no blank need follow them
_STOPS = _WIDE | frozenset(".!?…‼‽⁇⁈⁉؟۔।॥։።፧၊။។᙮")
_CLOSERS = frozenset("\"'”’»›)]}」』】）〉》")
_AFTER_STOP = _STOPS | _CLOSERS  # as the first character of a token
_OPENERS = frozenset([*"\"'“‘«‹([{「『【（〈《¿¡-–—", "``", "''", "--"])


def _class(characters: frozenset[str]) -> str:
    return f"[{re.escape(''.join(sorted(characters)))}]"


# where a sentence may end within a line
_CANDIDATE = re.compile(rf"{_class(_STOPS)}(?:{_class(_CLOSERS)}*\s+\S|(?<={_class(_WIDE)}){_class(_CLOSERS)}*\S)")


class Sentence(NamedTuple):
    """A sentence of a text: its tokens, its first character and the one after its last."""

    tokens: list[Token]
    start: int
    end: int


def sentences(text: str) -> list[Sentence]:
    """Return the sentences of a text with their offsets in characters.

    >>> text = "The U.N. met on 3 May. Mr. Annan spoke."
    >>> [text[s.start : s.end] for s in sentences(text)]
    ['The U.N. met on 3 May.', 'Mr. Annan spoke.']
    >>> [token.text for token in sentences(text)[1].tokens]
    ['Mr.', 'Annan', 'spoke', '.']
    """
    found = []
    for start, line in lines(text):
        words = line_tokens(line)
        placed = with_offsets(line, words, start)
        found += [Sentence(placed[a:b], placed[a].start, placed[b - 1].end) for a, b in _parts(line, words)]
    return found


def sentence_words(text: str) -> list[list[str]]:
    """Return the tokens of each sentence as strings; this is faster than :func:`sentences`.

    >>> sentence_words("Who? Me.")
    [['Who', '?'], ['Me', '.']]
    """
    found = []
    for _, line in lines(text):
        words = line_tokens(line)
        found += [words[first:end] for first, end in _parts(line, words)]
    return found


def _parts(line: str, words: list[str]) -> Iterator[tuple[int, int]]:
    """Yield the first token of each sentence of a line and the one after its last."""
    n = len(words)
    first = 0
    if _CANDIDATE.search(line) is not None:
        begins = starts(line, words)
        k = 0
        while k < n:
            if words[k][-1] not in _STOPS:
                k += 1
                continue
            stop = k
            k += 1
            while k < n and words[k][0] in _AFTER_STOP and begins[k] == begins[k - 1] + len(words[k - 1]):
                k += 1
            if k == n:
                break
            touching = begins[k] == begins[k - 1] + len(words[k - 1])
            if _ends(words, first, stop, k, touching):
                yield first, k
                first = k
    if first < n:
        yield first, n


def _ends(words: list[str], first: int, stop: int, end: int, touching: bool) -> bool:
    """Return whether a sentence that begins with token `first` and has a stop ends before the token `end`.

    `touching`: no blank stands before that token.
    """
    word = words[stop]
    if word in _WIDE:
        return True
    if touching:
        return False
    k = end
    while k < len(words) - 1 and words[k] in _OPENERS:
        k += 1
    following = words[k]
    if following[0].islower():
        return False
    if len(word) > 1 and word[0].isalnum():  # an abbreviation
        known = word[:-1] not in TITLES and not (len(word) == 2 and word[0].isupper())
        return known and begins_sentence(following)
    if (word[0] in ".…" and len(word) > 1) or word == "…":
        return following[0].isupper()
    if word in "!?" and following.removesuffix(".") in WORDS:
        return False  # Yahoo! Inc.
    if word == "." and stop - first == 1 and words[first].isdigit():
        return False  # 1. Introduction
    before = words[stop - 1] if stop else ""
    return not (word == "." and before.isdigit() and len(before) <= 2 and following in AFTER_ORDINALS)
