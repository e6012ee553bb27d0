"""Strings that were chosen to collide: in crfkit's hash without a key, and in CRFsuite's."""

import numpy as np

_K1, _K2, _ALL = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, (1 << 64) - 1


def _fold(a, b):
    return (a * b & _ALL) ^ (a * b >> 64)


def colliding(n, target=0x1234567890ABCDEF):
    """n different strings of 16 bytes with the same 64 bits of cpp/core/support/hash.hpp's hash_bytes.

    After the first word the state is known; the second word makes it what it is for all of them.
    """
    start = _K2 ^ (16 * _K1 & _ALL)
    words = (b"%08d" % k for k in range(n))
    return [
        word + (_fold(start ^ int.from_bytes(word, "little"), _K1) ^ target).to_bytes(8, "little") for word in words
    ]


def _rotated(x, k):
    return (x << np.uint32(k)) | (x >> np.uint32(32 - k))


def with_lookup3(hashes, seed=0):
    """One string of 11 bytes for each hash (of the string with a zero at its end): the last mix run backwards."""
    rng = np.random.default_rng(seed)
    found = []
    for target in hashes:
        while True:
            a, b = (rng.integers(0, 1 << 32, 4096, dtype=np.uint32) for _ in range(2))
            c = np.full(4096, target, dtype=np.uint32)
            c = (c + _rotated(b, 24)) ^ b
            b = (b + _rotated(a, 14)) ^ a
            a = (a + _rotated(c, 4)) ^ c
            c = (c + _rotated(b, 16)) ^ b
            b = (b + _rotated(a, 25)) ^ a
            a = (a + _rotated(c, 11)) ^ c
            c = (c + _rotated(b, 14)) ^ b
            start = np.uint32(0xDEADBEEF + 12)
            texts = np.stack([a - start, b - start, c - start], axis=1).astype("<u4").view(np.uint8)
            good = texts[(texts[:, 11] == 0) & (texts[:, :11] != 0).all(axis=1)]
            if len(good):
                found.append(good[0, :11].tobytes())
                break
    return found
