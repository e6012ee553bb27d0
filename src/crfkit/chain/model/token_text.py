"""The text of a token where people read it."""

from __future__ import annotations

from typing import Any

from crfkit.text.attributes import is_matrix

# keys and prefixes of attributes that are likely to hold the word
WORDS = ("word", "token", "text", "form", "w", "w0", "w[0]", "0:word", "word.lower()", "lower")


def token_text(x: Any, t: int) -> str:
    """Return what to call the token at position t of a sequence: its first column, its word, or "" if unknown.

    >>> token_text([["the", "DT"]], 0), token_text([{"bias": 1, "word": "cat"}], 0), token_text([["bias", "w=cat"]], 0)
    ('the', 'cat', 'cat')
    """
    if is_matrix(x):
        return ""
    token = x[t]
    if isinstance(token, str):
        return token
    if isinstance(token, dict):
        return next((str(token[name]) for name in WORDS if name in token), "")
    parts = [str(part) for part in token]
    for name in WORDS:
        for part in parts:
            if part.startswith((f"{name}=", f"{name}:")):
                return part[len(name) + 1 :]
    return parts[0] if parts else ""
