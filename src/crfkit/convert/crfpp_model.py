"""Model files of CRF++, text and binary, with nothing converted: labels, template lines, features and weights.

CRF++ does not know encodings, so all names are bytes here. Everything is checked against the size of the file
before memory is taken for it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crfkit._types import Floats, Ints
from crfkit.errors import ModelFileError
from crfkit.files.atomic import read
from crfkit.files.limits import check_labels

VERSION = 100
NOT_CRFPP = "this is not a CRF++ model: it has neither the first lines of a text model nor the header of a binary one"
_HEADER = struct.Struct("<IidIIII")  # version, type, cost factor, maxid, xsize, bytes of the trie, bytes of the labels
_MAX_NAME = 1 << 16  # bytes; CRF++ itself reads lines of 8 KB
# Names share their beginnings in the trie. So all names together may have more bytes than the file, by this factor, and
# all beginnings, which are made on the way, by that one.
_NAMES, _BEGINNINGS = 16, 64


@dataclass(frozen=True, eq=False)
class CRFPPModel:
    """A model file of CRF++. Feature k has the weights from ``starts[k]``: one per label, or per label pair (B…)."""

    labels: tuple[bytes, ...]
    templates: tuple[bytes, ...]
    names: tuple[bytes, ...]
    starts: Ints
    weights: Floats
    n_columns: int  # that the template needs

    def __post_init__(self) -> None:
        _check_blocks(self)


def read_crfpp_model(source: str | Path | bytes) -> CRFPPModel:
    """Return the contents of a model file, or of its bytes; raise ModelFileError if it is not a valid one."""
    if isinstance(source, bytes):
        return _parse(source)
    data = read(source).tobytes()
    try:
        return _parse(data)
    except ModelFileError as error:
        raise ModelFileError(f"{source}: {error}") from None


def _parse(data: bytes) -> CRFPPModel:
    model = _parse_text(data) if re.match(rb"version:\s", data) else _parse_binary(data)
    check_labels(len(model.labels), 1, len(data))
    return model


def _check_version(version: int) -> None:
    if version // 100 == VERSION // 100:
        return
    if version > 1000:
        raise ModelFileError(NOT_CRFPP)
    raise ModelFileError(
        f"this is a CRF++ model of version {version}, but only versions {VERSION} to {VERSION + 99} are supported"
    )


# --- text: header, labels, template, features, weights, with a blank line after each


def _parse_text(data: bytes) -> CRFPPModel:
    if b"\r\n" in data[:64]:
        data = data.replace(b"\r\n", b"\n")
    parts = data.split(b"\n\n", 4)
    if len(parts) < 5:
        wanted = ("the header", "the labels", "the template", "the features", "the weights")
        raise ModelFileError(f"truncated: this CRF++ text model ends in {wanted[len(parts) - 1]}")
    header: dict[bytes, bytes] = {}
    for line in parts[0].split(b"\n"):
        key, _, value = line.partition(b":")
        header[key.strip()] = value.strip()
    _check_version(_number(header, b"version"))
    size, n_columns = _number(header, b"maxid"), _number(header, b"xsize")
    names, starts = [], []
    for line in parts[3].split(b"\n"):
        start, blank, name = line.partition(b" ")
        if not blank or not start.isdigit() or len(start) > 10 or not name:
            raise ModelFileError(f"the feature line {_shown(line)} is malformed; expected a number and a name")
        names.append(name)
        starts.append(int(start))
    numbers = parts[4].split()
    if len(numbers) != size:
        raise ModelFileError(f"the header announces {size} weights, but the file has {len(numbers)}")
    try:
        if b"_" in parts[4]:  # which Python takes for a part of a number
            raise ValueError("there is an underscore among them")
        weights = np.array([float(number) for number in numbers], dtype=np.float64)
    except ValueError as error:
        raise ModelFileError(f"a weight is not a number: {error}") from None
    return CRFPPModel(
        _lines(parts[1]), _lines(parts[2]), tuple(names), np.array(starts, dtype=np.int64), weights, n_columns
    )


def _number(header: dict[bytes, bytes], key: bytes) -> int:
    value = header.get(key, b"")
    if not value.isdigit() or len(value) > 10:
        raise ModelFileError(f"the header has no valid entry '{key.decode()}:'")
    return int(value)


def _lines(block: bytes) -> tuple[bytes, ...]:
    return tuple(block.split(b"\n"))


# --- binary


def _parse_binary(data: bytes) -> CRFPPModel:
    if len(data) < _HEADER.size + 4:
        raise ModelFileError("this file is too short to be a CRF++ model")
    version, _, _, size, n_columns, trie_bytes, label_bytes = _HEADER.unpack_from(data)
    _check_version(version)
    place = _HEADER.size
    if label_bytes > len(data) - place - 4:
        raise ModelFileError("truncated or damaged: the labels do not fit the file")
    labels = _strings(data[place : place + label_bytes], "labels")
    place += label_bytes
    (template_bytes,) = struct.unpack_from("<I", data, place)
    place += 4
    if place + template_bytes + trie_bytes + 4 * size != len(data):
        raise ModelFileError(
            f"truncated or damaged: its header needs {place + template_bytes + trie_bytes + 4 * size} bytes, but there "
            f"are {len(data)}"
        )
    templates = tuple(t for t in _strings(data[place : place + template_bytes], "template") if t)
    place += template_bytes
    if trie_bytes % 8 or trie_bytes < 16:
        raise ModelFileError(f"damaged: its double array has {trie_bytes} bytes")
    units = np.frombuffer(data, dtype="<i4", count=trie_bytes // 4, offset=place).reshape(-1, 2)
    pairs = list(_walk(units, len(data)))
    weights = np.frombuffer(data, dtype="<f4", count=size, offset=place + trie_bytes).astype(np.float64)
    return CRFPPModel(
        labels,
        templates,
        tuple(name for name, _ in pairs),
        np.array([start for _, start in pairs], dtype=np.int64),
        weights,
        n_columns,
    )


def _strings(block: bytes, what: str) -> tuple[bytes, ...]:
    """Return strings that end in a zero byte each."""
    if not block.endswith(b"\0"):
        raise ModelFileError(f"damaged: the {what} do not end where the header says")
    return tuple(block[:-1].split(b"\0"))


def _walk(units: Ints, file_size: int) -> Iterator[tuple[bytes, int]]:
    """Yield (key, value) of a double array, level by level.

    Unit p is (base, check). A node with base b > 0 has the child of character c at unit b + 1 + c, and the value of its
    own key at unit b; both have check b. The base of a value v is −v − 1. A unit that is reached twice is an error, so
    the walk ends after as many steps as there are units.
    """
    base, check = units[:, 0].astype(np.int64), units[:, 1].astype(np.int64)
    order = np.argsort(check, kind="stable")
    ordered = check[order]
    seen = np.zeros(len(units), dtype=bool)
    frontier, prefixes, beginnings, names = base[:1], [b""], 0, 0
    for _ in range(_MAX_NAME):
        first, last = np.searchsorted(ordered, frontier, "left"), np.searchsorted(ordered, frontier, "right")
        counts = last - first
        parents = np.repeat(np.arange(len(frontier)), counts)
        places = order[np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())]
        codes = places - frontier[parents] - 1
        if seen[places].any() or (codes < -1).any() or (codes > 255).any():
            raise ModelFileError("damaged: its double array is not a tree")
        seen[places] = True
        ends = codes == -1
        values = base[places]
        if (values[ends] >= 0).any() or (values[~ends] <= 0).any():
            raise ModelFileError("damaged: its double array has a node without a value")
        for parent, value in zip(parents[ends].tolist(), values[ends].tolist(), strict=True):
            names += len(prefixes[parent])
            yield prefixes[parent], -value - 1
        more = ~ends
        letters = codes[more].tolist()
        prefixes = [
            prefixes[parent] + _BYTES[letter] for parent, letter in zip(parents[more].tolist(), letters, strict=True)
        ]
        frontier = values[more]
        if len(np.unique(frontier)) < len(frontier):
            raise ModelFileError("damaged: its double array is not a tree")
        beginnings += sum(map(len, prefixes))
        if names > _NAMES * file_size or beginnings > _BEGINNINGS * file_size:
            raise ModelFileError("damaged: the names in its double array are too long for a file of this size")
        if not len(frontier):
            return
    raise ModelFileError(f"damaged: a name in its double array has more than {_MAX_NAME} bytes")


_BYTES = [bytes([code]) for code in range(256)]


# --- both


def _check_blocks(model: CRFPPModel) -> None:
    """Raise ModelFileError unless every weight belongs to exactly one feature, and all names are of a known kind."""
    if not model.labels or b"" in model.labels or len(set(model.labels)) < len(model.labels):
        raise ModelFileError("damaged: a label is empty or occurs twice")
    if not model.templates:
        raise ModelFileError("damaged: it has no template")
    for line in (*model.templates, *model.names):
        if line[:1] not in (b"U", b"B"):
            raise ModelFileError(f"damaged: {_shown(line)} starts with neither U nor B")
    if len(set(model.names)) < len(model.names):
        raise ModelFileError("damaged: a feature occurs twice")
    n_labels = len(model.labels)
    sizes = np.array([n_labels if name[:1] == b"U" else n_labels**2 for name in model.names], dtype=np.int64)
    order = np.argsort(model.starts, kind="stable")
    ends = np.cumsum(sizes[order])
    if not np.array_equal(model.starts[order], ends - sizes[order]) or sizes.sum() != len(model.weights):
        raise ModelFileError(
            f"damaged: its {len(model.names)} features and {n_labels} labels do not make {len(model.weights)} weights"
        )
    if not np.isfinite(model.weights).all():
        raise ModelFileError("a weight is not a finite number")


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    return repr(text if len(text) <= 60 else f"{text[:57]}…")
