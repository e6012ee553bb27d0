"""Targets: images and masks as files, with headers that are changed and signed again."""

from __future__ import annotations

import random
import struct
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from crfkit.files.images import read_image, read_mask
from fuzz.target import Target
from fuzz.text import change_bytes

PIXELS = (np.arange(12 * 10 * 3).reshape(12, 10, 3) * 7 % 256).astype(np.uint8)


def _file(kind: str, mode: str) -> bytes:
    stream = BytesIO()
    image = Image.fromarray(PIXELS)
    image = image.convert("L").point(lambda v: 255 * (v > 127)) if mode == "mask" else image.convert(mode)
    image.save(stream, kind)
    return stream.getvalue()


def change_png(valid: bytes, rng: random.Random) -> bytes:
    """Return a PNG whose size, depth or other header fields are changed, with a right checksum; or other bytes."""
    if not valid.startswith(b"\x89PNG") or rng.random() < 0.5:
        return change_bytes(valid, rng)
    width, height, *rest = struct.unpack(">IIBBBBB", valid[16:29])
    sizes = (0, 1, 10, 11, 1000, 13_300, 60_000, 2**31 - 1, 2**32 - 1)
    match rng.randrange(4):
        case 0:
            width = rng.choice(sizes)
        case 1:
            height = rng.choice(sizes)
        case 2:
            width, height = rng.choice(sizes), rng.choice(sizes)
        case _:
            rest[rng.randrange(5)] = rng.randrange(256)
    chunk = b"IHDR" + struct.pack(">IIBBBBB", width, height, *rest)
    return valid[:12] + chunk + struct.pack(">I", zlib.crc32(chunk)) + valid[33:]


def _read_image(path: Path, rng: random.Random) -> None:
    read_image(path)


def _read_mask(path: Path, rng: random.Random) -> None:
    colours = {"red": 1, "black": 0} if rng.random() < 0.1 else None
    read_mask(path, multiclass=True, ignore=rng.choice((None, 255)), colours=colours)


FILES = (("PNG", "RGB"), ("PNG", "P"), ("PNG", "RGBA"), ("PNG", "I;16"), ("JPEG", "RGB"), ("GIF", "P"), ("TIFF", "L"))


def _targets() -> list[Target]:
    made = []
    for kind, mode in (*FILES, ("PNG", "mask")):
        use = _read_mask if mode in ("mask", "P") and kind == "PNG" else _read_image
        name = f"image-{kind.lower()}-{mode.lower().replace(';', '')}"
        made.append(Target(name, lambda kind=kind, mode=mode: _file(kind, mode), change_png, use, f".{kind.lower()}"))  # type: ignore[misc]
    return made


TARGETS = _targets()
