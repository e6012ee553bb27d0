"""Progress of long tagging on a terminal: share of the input, tokens per second, remaining time."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

PATIENCE = 1.0  # seconds before anything is shown


class TagProgress:
    """Show a bar on stderr once the work has taken a while."""

    def __init__(self, total: int | None) -> None:
        self._total = total
        self._begin = time.monotonic()
        self._bytes = self._tokens = 0
        self._bar: Any = None
        self._task: Any = None

    def read(self, block: bytes) -> None:
        """Count what was read."""
        self._bytes += len(block)

    def tagged(self, tokens: int) -> None:
        """Count what was tagged, and show it."""
        self._tokens += tokens
        seconds = time.monotonic() - self._begin
        if seconds < PATIENCE:
            return
        if self._bar is None:
            self._start()
        done = None if self._total is None else min(self._bytes, self._total)
        self._bar.update(self._task, completed=done, text=describe(self._tokens, seconds, done, self._total))

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (TextColumn("tagging"), BarColumn(), TextColumn("{task.fields[text]}"))
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task("tagging", total=self._total, text="")

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()


def describe(tokens: int, seconds: float, done: int | None = None, total: int | None = None) -> str:
    """Return the rate and, if the size of the input is known, the remaining time.

    >>> describe(50_000, 2.0), describe(50_000, 2.0, 100, 400)
    ('50,000 tokens, 25,000 tokens/s', '50,000 tokens, 25,000 tokens/s, 0:06 left')
    """
    text = f"{tokens:,} tokens, {tokens / seconds:,.0f} tokens/s"
    if not done or not total:
        return text
    minutes, rest = divmod(round(seconds * (total - done) / done), 60)
    return f"{text}, {minutes}:{rest:02} left"


@contextmanager
def watching(sizes: Sequence[int | None], to_terminal: bool) -> Iterator[TagProgress | None]:
    """Yield what tagging reports to: nothing unless stderr is a terminal that the output does not go to.

    `sizes` are the bytes of the files, None where they are unknown.
    """
    shown = sys.stderr is not None and sys.stderr.isatty()
    if not shown or (to_terminal and sys.stdout is not None and sys.stdout.isatty()):
        yield None
        return
    known = [size for size in sizes if size is not None]
    progress = TagProgress(sum(known) if known and len(known) == len(sizes) else None)
    try:
        yield progress
    finally:
        progress.close()
