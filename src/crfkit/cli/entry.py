"""Where the command line begins: `crfkit tag` runs at once, all other commands run through typer."""

from __future__ import annotations

import sys

from crfkit.cli.quick import quick_command
from crfkit.cli.running import run


def main() -> None:
    """Run `crfkit …`."""
    command = quick_command(sys.argv[1:])
    if command is not None:
        run(command)
    from crfkit.cli.main import main as run_all

    run_all()
