"""Recognise the tool that wrote a model file by its first bytes, whatever its name is."""

from __future__ import annotations

import re

CRFKIT, CRFSUITE, CRFPP, CRFPP_TEXT, WAPITI = "crfkit", "CRFsuite", "CRF++", "CRF++ text", "Wapiti"


def recognise(head: bytes) -> str | None:
    """Return the kind of model that begins with these bytes (64 or more of a longer file), or None if it is none.

    >>> recognise(b"lCRF" + bytes(60))
    'CRFsuite'
    >>> recognise(b"version: 100\\ncost-factor: 1\\n")
    'CRF++ text'
    >>> recognise(b"#mdl#2#16876\\n")
    'Wapiti'
    """
    if head.startswith(b"lCRF"):
        return CRFSUITE
    if head.startswith(b"#mdl#"):
        return WAPITI
    if re.match(rb"version:\s*\d", head):
        return CRFPP_TEXT
    if int.from_bytes(head[:4], "little") == 100:  # the version; a crfkit header of 100 bytes would be too short
        return CRFPP
    return CRFKIT if len(head) >= 9 and head[8:9] == b"{" else None
