"""Wapiti's model files (``#mdl#2#…`` and the older ``#mdl#…``): patterns, labels, observations and weights.

A file is text: the number of weights that are not zero; the patterns, labels and observations as netstrings
(``4:B-NP,``); then a line ``index=weight`` for each of these weights, in hexadecimal. An observation has a weight per
label (u), per pair of labels (b), or both (*), in the order of the observations.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crfkit import _core
from crfkit._types import Floats, Ints
from crfkit.errors import ModelFileError
from crfkit.files.atomic import read
from crfkit.files.limits import check_labels

TYPES = ("maxent", "memm", "crf")
_HEADER = re.compile(rb"#mdl#(?:(\d{1,9})#)?(\d{1,18})\r?\n#rdr#(\d{1,9})/(\d{1,9})(?:/(\d{1,9}))?\r?\n")
_LIST = re.compile(rb"#qrk#(\d{1,18})\r?\n")
_SHORTEST = 5  # bytes of a netstring and its line end: "1:x,\n"


@dataclass(frozen=True, eq=False)
class WapitiModel:
    """The contents of a model file. Texts are bytes, because Wapiti knows no encodings."""

    patterns: tuple[bytes, ...]
    labels: tuple[bytes, ...]
    observations: tuple[bytes, ...]
    index: Ints  # places of the weights that are given, ascending
    weights: Floats  # and their values
    unigrams_only: bool = False  # "pure maxent mode": every line is a sample, and observations lack their prefix

    def starts(self) -> Ints:
        """Return the places of each observation's first weight, and the number of places."""
        n = len(self.labels)
        sizes = {ord("u"): n, ord("b"): n * n, ord("*"): n + n * n}
        counts = np.fromiter((sizes[name[0]] for name in self.observations), np.int64, len(self.observations))
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def read_wapiti(source: str | Path | bytes | bytearray | memoryview) -> WapitiModel:
    """Return the contents of a model file, or of its bytes; raise ModelFileError if they are damaged."""
    if not isinstance(source, (str, Path)):
        return parse_wapiti(bytes(source))
    data = read(source).tobytes()
    try:
        return parse_wapiti(data)
    except ModelFileError as error:
        raise ModelFileError(f"{source}: {error}") from None


def parse_wapiti(data: bytes) -> WapitiModel:
    """Return the contents of a model file from its bytes."""
    header = _HEADER.match(data)
    if header is None:
        raise ModelFileError("this is not a Wapiti model: it should begin with #mdl#2#… and #rdr#…, each on a line")
    kind, n_weights, n_patterns = (int(header[i]) if header[i] else 2 for i in (1, 2, 3))
    if kind != 2:
        known = TYPES[kind] if kind < len(TYPES) else f"unknown ({kind})"
        raise ModelFileError(f"a Wapiti model of type {known}; only models of type crf can be read")
    patterns, end = _netstrings(data, header.end(), n_patterns, "patterns")
    labels, end = _named_list(data, end, "labels")
    observations, end = _named_list(data, end, "observations")
    if not labels or not observations:
        raise ModelFileError("a Wapiti model without labels or without observations")
    check_labels(len(labels), 1, len(data))
    for what, names in (("label", labels), ("observation", observations)):
        if len(set(names)) != len(names):
            raise ModelFileError(f"damaged: a {what} of the Wapiti model occurs twice")
    for name in observations:
        if name[:1] not in (b"u", b"b", b"*"):
            raise ModelFileError(f"damaged: the observation {_shown(name)} starts with neither u, b nor *")
    index, weights = _weights(data, end, n_weights)
    model = WapitiModel(patterns, labels, observations, index, weights, header[5] not in (None, b"0"))
    n_places = int(model.starts()[-1])
    if len(index) and index[-1] >= n_places:
        raise ModelFileError(f"damaged: a weight has the number {index[-1]}, but there are only {n_places}")
    return model


def format_wapiti(model: WapitiModel) -> bytes:
    """Return the bytes of a model file (``#mdl#2#…``).

    >>> model = WapitiModel((b"u:%x[0,0]",), (b"A", b"B"), (b"u:x",), np.array([1]), np.array([0.75]))
    >>> print(format_wapiti(model).decode(), end="")
    #mdl#2#1
    #rdr#1/0/0
    9:u:%x[0,0],
    #qrk#2
    1:A,
    1:B,
    #qrk#1
    3:u:x,
    1=0x1.8p-1
    """
    columns = [int(c) for pattern in model.patterns for c in re.findall(rb"%[xXtTmM]\[[^,]*,\s*(\d+)", pattern)]
    kept = model.weights != 0
    parts = [
        f"#mdl#2#{int(kept.sum())}\n#rdr#{len(model.patterns)}/{max(columns, default=0)}/0\n".encode(),
        *map(_netstring, model.patterns),
        f"#qrk#{len(model.labels)}\n".encode(),
        *map(_netstring, model.labels),
        f"#qrk#{len(model.observations)}\n".encode(),
        *map(_netstring, model.observations),
    ]
    parts.append(_core.format_wapiti_weights(model.index[kept].astype(np.int64), model.weights[kept]))
    return b"".join(parts)


def _netstring(text: bytes) -> bytes:
    return b"%d:%s,\n" % (len(text), text)


def _shown(name: bytes) -> str:
    return repr(name[:60].decode("utf-8", "replace"))


def _named_list(data: bytes, begin: int, what: str) -> tuple[tuple[bytes, ...], int]:
    header = _LIST.match(data, begin)
    if header is None:
        raise ModelFileError(f"damaged or truncated: the list of {what} should begin at byte {begin} with #qrk#")
    return _netstrings(data, header.end(), int(header[1]), what)


def _netstrings(data: bytes, begin: int, n: int, what: str) -> tuple[tuple[bytes, ...], int]:
    """Return n netstrings that begin there, and where they end."""
    if n > (len(data) - begin) // _SHORTEST + 1:
        raise ModelFileError(f"damaged or truncated: {n} {what} do not fit into the file")
    texts = []
    for _ in range(n):
        colon = data.find(b":", begin, begin + 12)
        digits = data[begin:colon] if colon > begin else b""
        if not digits.isdigit():
            raise ModelFileError(f"damaged or truncated: the {what} lack a length at byte {begin}")
        end = colon + 1 + int(digits)
        if data[end : end + 1] != b"," or end == colon + 1:
            raise ModelFileError(f"damaged or truncated: one of the {what} at byte {begin} does not end with a comma")
        texts.append(data[colon + 1 : end])
        begin = end + 1
        if data[begin : begin + 1] == b"\r":
            begin += 1
        if data[begin : begin + 1] != b"\n":
            raise ModelFileError(f"damaged or truncated: a line end is missing at byte {begin}")
        begin += 1
    return tuple(texts), begin


def _weights(data: bytes, begin: int, n: int) -> tuple[Ints, Floats]:
    try:
        index, weights = _core.parse_wapiti_weights(np.frombuffer(data, np.uint8, offset=begin))
    except ValueError as error:
        raise ModelFileError(f"damaged or truncated: {error}") from None
    if len(index) != n:
        raise ModelFileError(f"damaged or truncated: {n} weights are announced, and there are {len(index)}")
    if (np.diff(index) < 0).any():
        order = np.argsort(index, kind="stable")
        index, weights = index[order], weights[order]
    if (np.diff(index) == 0).any():
        raise ModelFileError("damaged: a weight of the Wapiti model occurs twice")
    return index, weights
