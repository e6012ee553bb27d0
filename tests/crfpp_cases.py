"""A small CRF++ model in both of its formats, written here the slow and obvious way."""

from __future__ import annotations

import struct

import numpy as np

LABELS = ("B", "I", "O")
TEMPLATES = ("U00:%x[-1,0]", "U01:%x[0,0]/%x[0,1]", "B", "B01:%x[0,1]")
NAMES = ("B", "B01:n", "B01:v", "U00:_B-1", "U00:a", "U00:bé", "U01:a/n", "U01:bé/v")


def starts_of(names, n_labels=3):
    starts, size = [], 0
    for name in names:
        starts.append(size)
        size += n_labels if name.startswith("U") else n_labels**2
    return starts, size


def weights_of(size, seed=0):
    return np.random.default_rng(seed).normal(size=size).astype(np.float32).astype(np.float64)


def text_model(labels=LABELS, templates=TEMPLATES, names=NAMES, weights=None, encoding="utf-8", version=100):
    starts, size = starts_of(names, len(labels))
    weights = weights_of(size) if weights is None else weights
    parts = [
        [f"version: {version}", "cost-factor: 1", f"maxid: {size}", "xsize: 2"],
        list(labels),
        list(templates),
        [f"{start} {name}" for start, name in zip(starts, names, strict=True)],
        [f"{w:.16f}" for w in weights],
    ]
    return ("\n\n".join("\n".join(part) for part in parts) + "\n").encode(encoding)


def binary_model(labels=LABELS, templates=TEMPLATES, names=NAMES, weights=None, encoding="utf-8", version=100):
    starts, size = starts_of(names, len(labels))
    weights = weights_of(size) if weights is None else weights
    label_bytes = b"".join(label.encode(encoding) + b"\0" for label in labels)
    template_bytes = b"".join(line.encode(encoding) + b"\0" for line in templates)
    template_bytes += b"\0" * (-(len(label_bytes) + len(template_bytes)) % 4)
    trie = double_array({name.encode(encoding): start for name, start in zip(names, starts, strict=True)})
    header = struct.pack("<IidIII", version, 0, 1.0, size, 2, len(trie))
    header += struct.pack("<I", len(label_bytes)) + label_bytes
    header += struct.pack("<I", len(template_bytes)) + template_bytes
    return header + trie + np.asarray(weights, dtype="<f4").tobytes()


def double_array(keys):
    """The units (base, check) of Darts: code 0 ends a key, code c + 1 is the character c."""
    base, check, used = {0: 1}, {}, set()

    def insert(prefixed, depth):
        codes = sorted({0 if len(key) == depth else key[depth] + 1 for key in prefixed})
        begin = 1
        while begin in used or any(begin + code in check for code in codes):
            begin += 1
        used.add(begin)
        for code in codes:
            check[begin + code] = begin
        for code in codes:
            members = [key for key in prefixed if (0 if len(key) == depth else key[depth] + 1) == code]
            base[begin + code] = -keys[members[0]] - 1 if code == 0 else insert(members, depth + 1)
        return begin

    base[0] = insert(sorted(keys), 0)
    size = max(check) + 257
    units = np.zeros((size, 2), dtype="<i4")
    for place, value in base.items():
        units[place, 0] = value
    for place, value in check.items():
        units[place, 1] = value
    return units.tobytes()
