"""Command lines as CRF++ reads them: -f3, -f 3, --freq=3, --freq 3, options and files in any order."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from crfkit.compat.arguments import CommandParser

FAILURE = 255  # the exit code of CRF++ for errors; also of crf_test for --help and --version


class Parser(CommandParser):
    """A parser with the options that both commands have."""

    def __init__(self, program: str, usage: str, description: str) -> None:
        super().__init__(program, usage, description, add_help=False, allow_abbrev=False)
        self.add_argument(
            "--encoding",
            metavar="NAME",
            help="encoding of all files (default: UTF-8, or bytes if a file is not UTF-8)",
        )
        self.add_argument("-h", "--help", action="store_true", help="show this help and exit")
        self.add_argument("files", nargs="*", help=argparse.SUPPRESS)

    def parse(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        return self.parse_intermixed_args(arguments)


def version() -> str:
    from crfkit import __version__

    return f"crfkit {__version__}, in place of CRF++ 0.58"


def banner() -> str:
    """Return the first lines of output: as many as CRF++ prints."""
    from crfkit import __version__

    return f"crfkit {__version__}, in place of CRF++ 0.58\nCRF++ itself is by Taku Kudo\n"
