"""Lines of text files that arrive block by block: their ends, and how long they may be.

Lines end with a line feed, before which a carriage return may stand; or, in files whose beginning has no line feed,
with a carriage return. Every byte is looked at once, however long a line is, and a line that is too long raises
LimitError before more of it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from crfkit.files import limits

BEGINNING = 1 << 16  # bytes in which a line feed is looked for


def with_newlines(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    r"""Yield the same text with line feeds at the ends of lines; raise LimitError if a line is too long.

    >>> b"".join(with_newlines([b"a\rb\r", b"c\r"], "f")), b"".join(with_newlines([b"a\r\nb\rc"], "f"))
    (b'a\nb\nc\n', b'a\r\nb\rc')
    """
    returns, blocks = _has_returns(checked_lines(blocks, name, returns=True))
    return _translated(blocks) if returns else checked_lines(blocks, name)


def _translated(blocks: Iterator[bytes]) -> Iterator[bytes]:
    held = False  # whether the last block ended with a carriage return, whose line feed may follow
    for block in blocks:
        text = b"\r" + block if held else block
        held = text.endswith(b"\r")
        if held:
            text = text[:-1]
        if text:
            yield text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if held:
        yield b"\n"


def _has_returns(blocks: Iterator[bytes]) -> tuple[bool, Iterator[bytes]]:
    """Return whether lines end with carriage returns alone, and all blocks."""
    seen: list[bytes] = []
    size, returns = 0, False
    for block in blocks:
        seen.append(block)
        if b"\n" in block:
            return False, chain(seen, blocks)
        size += len(block)
        returns = returns or b"\r" in block
        if returns and size >= BEGINNING:
            break
    return returns, chain(seen, blocks)


def checked_lines(blocks: Iterable[bytes], name: str, returns: bool = False) -> Iterator[bytes]:
    """Yield the blocks unchanged; raise LimitError, before a block is handed out, if a line is too long.

    Lines end with line feeds or, with `returns`, with carriage returns as well.
    """
    most = limits.current().line
    length = 0  # of the line under way
    for block in blocks:
        text = block.replace(b"\r", b"\n") if returns and b"\r" in block else block
        if length + len(text) > most:
            first = text.find(b"\n")
            longest = length + (len(text) if first < 0 else first)
            if len(text) > most:
                longest = max(longest, max(map(len, text.split(b"\n"))))
            if longest > most:
                limits.check("line", longest, f"{name}: a line has {longest:,} bytes or more")
        after = text.rfind(b"\n") + 1
        length = len(text) - after if after else length + len(text)
        yield block


def whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    r"""Yield the same text in blocks that end where a line does; the last one may lack its line feed.

    >>> list(whole_lines([b"a", b"b\nc", b"d\ne\nf"]))
    [b'ab\n', b'cd\ne\n', b'f']
    """
    waiting: list[bytes] = []  # pieces of the line under way
    for block in blocks:
        end = block.rfind(b"\n") + 1
        if end:
            yield b"".join([*waiting, block[:end]])
            waiting = []
        if end < len(block):
            waiting.append(block[end:])
    if waiting:
        yield b"".join(waiting)


def each_line(blocks: Iterable[bytes]) -> Iterator[bytes]:
    r"""Yield the lines without their ends.

    >>> list(each_line([b"a\nb", b"c\n\nd"]))
    [b'a', b'bc', b'', b'd']
    """
    for block in whole_lines(blocks):
        lines = block.split(b"\n")
        if not lines[-1]:
            lines.pop()
        yield from lines


def lines_with_ends(blocks: Iterable[bytes]) -> Iterator[bytes]:
    r"""Yield the lines with their ends, whichever these are.

    >>> list(lines_with_ends([b"a\r", b"\nb\rc\n", b"d"])), list(lines_with_ends([b"a\r", b"b"]))
    ([b'a\r\n', b'b\rc\n', b'd'], [b'a\r', b'b'])
    """
    returns, blocks = _has_returns(iter(blocks))
    if not returns:
        for block in whole_lines(blocks):
            yield from _split(block)
        return
    waiting: list[bytes] = []  # pieces of the line under way
    for block in blocks:
        if waiting and waiting[-1].endswith(b"\r"):  # its line feed may follow
            block = waiting.pop() + block
        lines = block.splitlines(keepends=True)
        if len(lines) > 1 or (lines and lines[0].endswith(b"\n")):
            last = [] if lines[-1].endswith(b"\n") else [lines.pop()]
            yield b"".join([*waiting, lines[0]])
            yield from lines[1:]
            waiting = last
        else:
            waiting += lines
    if waiting:
        yield b"".join(waiting)


def _split(block: bytes) -> Iterator[bytes]:
    *lines, last = block.split(b"\n")
    for line in lines:
        yield line + b"\n"
    if last:
        yield last
