"""The attributes of text rules, slowly: the oracle for those in the core."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

BEFORE, AFTER = "<s>", "</s>"
AT_BOUNDARIES = ("word", "lower", "shape", "script", "column")  # rules of these have attributes outside the sequence
_PIECE = re.compile(r"([a-z]+)(\d*)\[([+-]?\d+)(?:\.\.([+-]?\d+))?\]")


def lowered(text: str) -> str:
    """Return the text in lower case, a character for each character."""
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def letter(c: str) -> str:
    category = unicodedata.category(c)
    if category[0] == "L":
        return {"Lu": "X", "Lt": "X", "Ll": "x"}.get(category, "a")
    return {"M": "", "N": "d"}.get(category[0], c)


def shape(text: str, limit: int) -> str:
    out: list[str] = []
    for found in filter(None, map(letter, text)):
        if out[-limit:] != [found] * limit:
            out.append(found)
    return "".join(out)


def script(c: str) -> str:
    code = ord(c)
    blocks = {
        "h": [(0x3040, 0x309F)],
        "k": [(0x30A0, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F)],
        "g": [(0x1100, 0x11FF), (0xAC00, 0xD7A3)],
        "H": [(0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF)],
    }
    for name, ranges in blocks.items():
        if any(first <= code <= last for first, last in ranges):
            return name
    category = unicodedata.category(c)
    return letter(c) if category[0] in "LN" else {"M": "m", "Z": "s"}.get(category[0], "p")


def scripts(text: str) -> str:
    return re.sub(r"(.)\1+", r"\1", "".join(map(script, text)))


def value(atom: str, size: int, row: Sequence[str]) -> str | None:
    """Return the value of an atom for a token, None if it has none."""
    word = lowered(row[0]) if atom.startswith("lower") else row[0]
    if atom in ("word", "lower"):
        return word
    if atom == "column":
        return row[size]
    if atom == "shape":
        return shape(word, size)
    if atom == "script":
        return scripts(word)
    assert atom.endswith(("prefix", "suffix")), f"{atom} is missing in this twin"
    if len(word) < size:
        return None
    return word[:size] if atom.endswith("prefix") else word[len(word) - size :]


def phrase_marks(words: Sequence[str], phrases: Sequence[str], fold: bool) -> list[str]:
    """Return B where a phrase begins, I where it continues: the longest phrases, from left to right."""
    clean = lowered if fold else str
    known = {tuple(clean(phrase).split()) for phrase in phrases}
    marks, t = [""] * len(words), 0
    while t < len(words):
        ends = [k for k in range(t + 1, len(words) + 1) if tuple(map(clean, words[t:k])) in known]
        if ends:
            marks[t : ends[-1]] = ["B"] + ["I"] * (ends[-1] - t - 1)
        t = ends[-1] if ends else t + 1
    return marks


def expand(
    rules: Sequence[str],
    rows: Sequence[Sequence[str]],
    gazetteers: Mapping[str, Sequence[str]] | None = None,
    fold: bool = False,
    embeddings: Mapping[str, Sequence[float]] | None = None,
) -> list[set[tuple[str, float]]]:
    """Return the attributes of every position, with their values."""
    n = len(rows)
    words = [row[0] for row in rows]
    marks = {name: phrase_marks(words, phrases, fold) for name, phrases in (gazetteers or {}).items()}
    found: list[set[tuple[str, float]]] = [set() for _ in rows]
    for rule in rules:
        pieces = [(m[1], int(m[2] or 0), int(m[3]), int(m[4] or m[3])) for m in _PIECE.finditer(rule)]
        atom, _, first, last = pieces[0]
        for t in range(n):
            places = [k for k in range(t + first, t + last + 1) if 0 <= k < n]
            if atom == "gazetteer":
                named = [(name, row[k]) for name, row in marks.items() for k in places if row[k]]
                found[t] |= {(f"{rule}={name}:{mark}", 1.0) for name, mark in named}
            elif atom == "embedding":
                for k in places:
                    vectors = embeddings or {}
                    vector = vectors.get(words[k], vectors.get(lowered(words[k]), ()))
                    found[t] |= {(f"{rule}={d}", float(x)) for d, x in enumerate(vector) if x != 0}
            elif first != last:
                texts = [value(atom, pieces[0][1], rows[k]) for k in places]
                found[t] |= {(f"{rule}={text}", 1.0) for text in texts if text is not None}
            else:
                texts = [_at(name, size, t + offset, rows) for name, size, offset, _ in pieces]
                if len(pieces) == 1 and atom not in AT_BOUNDARIES and not 0 <= t + first < n:
                    continue
                if None not in texts:
                    found[t].add((f"{rule}={'|'.join(map(str, texts))}", 1.0))
    return found


def _at(atom: str, size: int, at: int, rows: Sequence[Sequence[str]]) -> str | None:
    return BEFORE if at < 0 else AFTER if at >= len(rows) else value(atom, size, rows[at])
