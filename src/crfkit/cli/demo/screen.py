"""The screen of `crfkit demo`: short paragraphs, colours on a terminal, and a sign of life while it works."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import typer

from crfkit._values import Entries

MARGIN = "   "
Piece = tuple[str, Entries]  # text, and how typer.style shows it


@dataclass(frozen=True)
class Screen:
    """The screen that shows the tour, or nothing if it is silent (--json)."""

    silent: bool = False

    @property
    def width(self) -> int:
        return max(40, min(79, shutil.get_terminal_size((80, 24)).columns - 1))

    @property
    def is_live(self) -> bool:
        """Return whether somebody watches: then progress is shown."""
        return not self.silent and sys.stderr is not None and sys.stderr.isatty()

    def step(self, number: int, title: str) -> None:
        """Begin a step."""
        self.title(f"{number}  {title}")

    def title(self, text: str) -> None:
        """Show a title that does not number a step."""
        self._echo("\n" + typer.style(text, bold=True))

    def command(self, text: str) -> None:
        """Show a command on a line of its own, however long it is, so that it can be copied."""
        self._echo(MARGIN + typer.style(text, fg="cyan"))

    def say(self, text: str) -> None:
        """Show a paragraph, as wide as the terminal but at most 79 columns."""
        self._echo(textwrap.fill(text, self.width, initial_indent=MARGIN, subsequent_indent=MARGIN))

    def lines(self, text: str) -> None:
        """Show lines unchanged, with an empty line before and after."""
        self._echo(f"\n{textwrap.indent(text, MARGIN)}\n")

    def gap(self) -> None:
        """Show an empty line."""
        self._echo("")

    def flow(self, pieces: Sequence[Piece]) -> None:
        """Show pieces of coloured text one after the other; a line ends before a piece that does not fit."""
        rows: list[list[str]] = [[]]
        used = len(MARGIN)
        for text, style in pieces:
            if rows[-1] and used + len(text.rstrip()) > self.width:
                rows.append([])
                used = len(MARGIN) + 2
            rows[-1].append(typer.style(text, **style) if style else text)
            used += len(text)
        self._echo(MARGIN + f"\n{MARGIN}  ".join("".join(row).rstrip() for row in rows))

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        """Show on a terminal that work is under way; the line disappears afterwards."""
        if not self.is_live:
            yield
            return
        from rich.console import Console

        with Console(stderr=True).status(text):
            yield

    def _echo(self, text: str) -> None:
        if not self.silent:
            plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
            typer.echo(text, color=False if plain else None)
            if sys.stdout is not None:
                sys.stdout.flush()


def can_show(text: str) -> bool:
    """Return whether the terminal's encoding has these characters."""
    with suppress(UnicodeEncodeError, LookupError):
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
        return True
    return False
