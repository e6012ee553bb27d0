"""Model files whose parts are changed and whose checksums are right, so that changes reach the code behind them."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np

from crfkit.files import modelfile
from fuzz.text import change_bytes
from fuzz.values import Shaped, change_array, change_json

_NAMES = {np.dtype(dtype): name for name, dtype in modelfile._DTYPES.items()}
_OWN = ("version", "checksums")
EXTRA = ("extra", "weights", "field.allowed", "field.pair_codes", "field.class_codes", "state.active", "state.u")


def take_apart(blob: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """Return the metadata and the tensors of a valid file."""
    contents = modelfile._parse(blob)
    return {k: v for k, v in contents.metadata.items() if k not in _OWN}, dict(contents.tensors)


def put_together(
    metadata: dict[str, Any], tensors: dict[str, np.ndarray[Any, Any]], rng: random.Random | None = None
) -> bytes:
    """Return a file with right checksums; with `rng`, something in its header is wrong."""
    sums = {name: modelfile._checksum(np.ascontiguousarray(array)) for name, array in tensors.items()}
    text = json.dumps({"version": modelfile.FORMAT_VERSION, "checksums": sums, **metadata})
    header: dict[str, Any] = {"__metadata__": {"crfkit": modelfile._text_checksum(text) + text}}
    position = 0
    for name, array in tensors.items():
        shape = list(array.stated if isinstance(array, Shaped) else array.shape)
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": shape,
            "data_offsets": [position, position + array.nbytes],
        }
        position += array.nbytes
    if rng is not None:
        header = change_json(header, rng)
    raw = json.dumps(header).encode()
    raw += b" " * (-len(raw) % 8)
    return len(raw).to_bytes(8, "little") + raw + b"".join(array.tobytes() for array in tensors.values())


def change_container(valid: bytes, rng: random.Random) -> bytes:
    """Return a file with one to three changes: most of what it says, some of its header, some of its bytes."""
    kind = rng.random()
    if kind < 0.03:
        return change_bytes(valid, rng)
    metadata, tensors = take_apart(valid)
    if kind < 0.08:
        return put_together(metadata, tensors, rng)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if rng.random() < 0.5 or not tensors:
            metadata = change_json(metadata, rng)
        else:
            _change_tensors(tensors, rng)
    return put_together(metadata, tensors)


def _change_tensors(tensors: dict[str, np.ndarray[Any, Any]], rng: random.Random) -> None:
    name = rng.choice(list(tensors))
    match rng.randrange(12):
        case 0:
            del tensors[name]
        case 1:
            other = rng.choice(list(tensors))
            tensors[name], tensors[other] = tensors[other], tensors[name]
        case 2:
            tensors[rng.choice(EXTRA)] = tensors[name]
        case _:
            tensors[name] = change_array(tensors[name], rng)
