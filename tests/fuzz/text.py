"""Changes of bytes and of lines of text."""

from __future__ import annotations

import gzip
import random

SNIPPETS = (
    b"", b"\x00", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\n\n", b"\t", b" ", b"\t\t\t",
    b"%x[0,0]", b"%x[-99999999999,0]", b"%x[0,99999999999]", b"%m[0,0,\"(\"]", b"%x[0,0", b":", b"=", b"@", b"#", b"{",
    b"}", b"\"",
    b"'", b",", b"1e999", b"-1", b"nan", b"inf", b"99999999999999999999", b"4294967296", b"2147483648", b"-2147483649",
    b"0x1p+9999", b"x" * 3000, b"a=1:nan", b"a:1e400", b"__BOS__", b"\xe2\x80\xa8", b"\\", b"?", b"*", b"_",
)  # fmt: skip


def change_bytes(valid: bytes, rng: random.Random) -> bytes:
    """Return bytes with one to four of them flipped, cut, inserted, repeated or moved."""
    data = bytearray(valid)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(data) + 1)
        length = rng.choice((1, 2, 4, 8, rng.randrange(1, 64)))
        match rng.randrange(8):
            case 0:
                del data[at:]
            case 1:
                del data[at : at + length]
            case 2:
                data[at:at] = rng.choice(SNIPPETS)
            case 3:
                data[at:at] = data[at : at + length] * rng.choice((1, 2, 100))
            case 4:
                number = rng.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1, len(data), len(data) + 1))
                data[at : at + 4] = (number & 0xFFFFFFFF).to_bytes(4, "little")
            case 5:
                data[at : at + length] = rng.randbytes(length)
            case _:
                if data:
                    data[min(at, len(data) - 1)] ^= 1 << rng.randrange(8)
    return bytes(data)


def change_words(valid: bytes, rng: random.Random) -> bytes:
    """Return bytes in which one to three 32-bit numbers are other ones, mostly close to what they were."""
    if rng.random() < 0.2:
        return change_bytes(valid, rng)
    data = bytearray(valid)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(data) // 4) * 4 if rng.random() < 0.7 else rng.randrange(min(len(data) - 4, 64))
        old = int.from_bytes(data[at : at + 4], "little")
        other = rng.randrange(len(data) // 4) * 4
        near = (old + 1, old - 1, old + 4, old - 4, 2 * old, int.from_bytes(data[other : other + 4], "little"))
        new = rng.choice((*near, 0, 1, 2**31 - 1, 2**31, 2**32 - 1, len(data), len(data) - 4, rng.getrandbits(32)))
        data[at : at + 4] = (new % 2**32).to_bytes(4, "little")
    return bytes(data)


def change_lines(valid: bytes, rng: random.Random) -> bytes:
    """Return a text in which lines or words are changed, or its bytes; now and then compressed."""
    if rng.random() < 0.3:
        changed = change_bytes(valid, rng)
    else:
        lines = valid.split(b"\n")
        for _ in range(rng.choice((1, 1, 2, 4))):
            at = rng.randrange(len(lines))
            match rng.randrange(8):
                case 0:
                    del lines[at : at + rng.choice((1, 1, 3, len(lines)))]
                    lines = lines or [b""]
                case 1:
                    lines[at:at] = [lines[at]] * rng.choice((1, 2, 50))
                case 2:
                    other = rng.randrange(len(lines))
                    lines[at], lines[other] = lines[other], lines[at]
                case 3:
                    lines.insert(at, rng.choice(SNIPPETS))
                case 4:
                    lines[at] += rng.choice((b"\r", b"\t", b" ", b"\x00", b"\tx", b" x y"))
                case _:
                    lines[at] = _change_line(lines[at], rng)
        changed = b"\n".join(lines)
    if rng.random() < 0.02:
        return gzip.compress(changed) if rng.random() < 0.5 else change_bytes(gzip.compress(changed), rng)
    return changed


def _change_line(line: bytes, rng: random.Random) -> bytes:
    for mark in (b"\t", b" ", b",", b":", b"="):
        if mark in line and rng.random() < 0.5:
            words = line.split(mark)
            at = rng.randrange(len(words))
            match rng.randrange(4):
                case 0:
                    del words[at]
                case 1:
                    words.insert(at, rng.choice(SNIPPETS))
                case 2:
                    words[at:at] = [words[at]] * rng.choice((1, 3, 300))
                case _:
                    words[at] = rng.choice(SNIPPETS)
            return mark.join(words)
    at = rng.randrange(len(line) + 1)
    return line[:at] + rng.choice(SNIPPETS) + line[at + rng.randrange(3) :]
