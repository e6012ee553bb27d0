"""Name options in messages as the command line writes them."""

from __future__ import annotations

# arguments of Python that have another name as an option
OTHER_NAMES = {
    "graph": "--edges",
    "n_threads": "--threads",
    "random_state": "--seed",
    "n_folds": "--folds",
    "block_size": "--block",
}


def on_command_line(name: str, value: str | None = None) -> str:
    """Return an option of the library as the command line writes it; see :func:`crfkit.wording.in_python`.

    >>> on_command_line("max_iterations"), on_command_line("loss", "likelihood"), on_command_line("graph")
    ('--max-iterations', '--loss likelihood', '--edges')
    """
    option = OTHER_NAMES.get(name) or "--" + name.replace("_", "-")
    return option if value is None else f"{option} {value}"
