"""Wapiti's patterns, worked out slowly: the oracle for those in the core. Texts are bytes."""

from __future__ import annotations

import re

CLASSES = {
    "a": b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "d": b"0123456789",
    "l": b"abcdefghijklmnopqrstuvwxyz",
    "u": b"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "p": b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "s": b" \t\n\v\f\r",
}
CLASSES["w"] = CLASSES["a"] + CLASSES["d"]


def fits(atom: bytes, text: bytes) -> bool:
    """Whether one character of an expression (a letter, a dot, or two bytes with a backslash) fits the next byte."""
    if not text:
        return False
    if atom == b".":
        return True
    if atom[:1] == b"\\":
        letter = chr(atom[1])
        if letter.lower() in CLASSES:
            return (text[0] in CLASSES[letter.lower()]) == letter.islower()
        return atom[1] == text[0]
    return atom[0] == text[0]


class Match:
    """A match by trial and error. `length` counts what was compared, also in vain before a ? gave its byte back."""

    def __init__(self, expression: bytes, text: bytes) -> None:
        self.begin, self.length = -1, 0
        anchored = expression.startswith(b"^")
        for begin in range(1 if anchored else len(text) + 1):
            self.length = 0
            if self._here(expression[anchored:], text[begin:]):
                self.begin = begin
                return

    def _here(self, expression: bytes, text: bytes) -> bool:
        if not expression:
            return True
        if expression == b"$":
            return not text
        size = 2 if expression[:1] == b"\\" else 1
        atom, sign, rest = expression[:size], expression[size : size + 1], expression[size + 1 :]
        if sign == b"*":
            while True:
                before = self.length
                if self._here(rest, text):
                    return True
                self.length = before + 1
                if not fits(atom, text):
                    return False
                text = text[1:]
        if sign == b"?":
            if fits(atom, text):
                self.length += 1
                if self._here(rest, text[1:]):
                    return True
                self.length -= 1
            return self._here(rest, text)
        self.length += 1
        return fits(atom, text) and self._here(expression[size:], text[1:])


COMMAND = re.compile(rb'%([xXtTmM])\[(@?)\s*([+-]?\d+),\s*(\d+)(?:,"((?:\\.|[^"\\])*)")?\]')


def cell(rows: list[list[bytes]], at: int, column: int) -> bytes:
    if at < 0:
        return b"_x-" + (b"%d" % -at if at >= -4 else b"#")
    if at >= len(rows):
        after = at - len(rows) + 1
        return b"_x+" + (b"%d" % after if after <= 4 else b"#")
    return rows[at][column]


def observe(pattern: bytes, rows: list[list[bytes]], t: int) -> bytes:
    """The observation of a pattern at position t."""
    out, end = b"", 0
    for found in COMMAND.finditer(pattern):
        out += pattern[end : found.start()]
        end = found.end()
        letter, absolute, row, column, expression = found.groups()
        offset = int(row)
        at = t + offset if not absolute else len(rows) + offset if offset < 0 else offset - 1
        value, cut = cell(rows, at, int(column)), False
        if letter in b"tT":
            value = b"true" if Match(expression, value).begin >= 0 else b"false"
        elif letter in b"mM":
            match = Match(expression, value)
            begin, last = max(match.begin, 0), max(match.begin, 0) + (match.length if match.begin >= 0 else 0)
            value, cut = value[begin:last], last > len(value)
        out += value.lower() if letter.isupper() else value
        if cut:  # the zero byte behind the cell was copied as well
            return out
    return out + pattern[end:]
