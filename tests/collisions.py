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


_ROTATIONS = (14, 11, 25, 16, 4, 14, 24)  # of the last mix, on c, a, b, c, a, b, c


def lookup3(text):
    """The hash of a string of at most 11 bytes with a zero at its end, as cpp/core/text/lookup3.hpp has it."""
    start = (0xDEADBEEF + len(text) + 1) & 0xFFFFFFFF
    mixed = [(start + int.from_bytes(text[k : k + 4], "little")) & 0xFFFFFFFF for k in (0, 4, 8)]
    for step, k in enumerate(_ROTATIONS):
        here = (2, 0, 1)[step % 3]
        other = mixed[here - 1]
        mixed[here] = ((mixed[here] ^ other) - (other << k | other >> 32 - k)) & 0xFFFFFFFF
    return mixed[2]


def with_lookup3(hashes, seed=0):
    """One string of 11 bytes for each hash (of the string with a zero at its end): the last mix run backwards."""
    rng = np.random.default_rng(seed)
    found = []
    for target in hashes:
        while True:
            a, b = (rng.integers(0, 1 << 32, 4096, dtype=np.uint32) for _ in range(2))
            c = np.full(4096, target, dtype=np.uint32)
            mixed = [a, b, c]
            for step in reversed(range(len(_ROTATIONS))):
                here = (2, 0, 1)[step % 3]
                mixed[here] = (mixed[here] + _rotated(mixed[here - 1], _ROTATIONS[step])) ^ mixed[here - 1]
            start = np.uint32(0xDEADBEEF + 12)
            texts = np.stack([word - start for word in mixed], axis=1).astype("<u4").view(np.uint8)
            good = texts[(texts[:, 11] == 0) & (texts[:, :11] != 0).all(axis=1)]
            if len(good):
                found.append(good[0, :11].tobytes())
                break
    return found
