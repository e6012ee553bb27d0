"""A fast start of `crfkit tag`, the command that is run most often: it saves the time that typer takes to load.

It understands the usual ways to write its options. Everything else (help, mistakes) is left to typer, so that messages
have one place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from crfkit._values import Entries, Record

VALUES: dict[str, tuple[str, Callable[[str], object]]] = {  # option → (argument, how to read it)
    "--output": ("output", Path),
    "-o": ("output", Path),
    "--encoding": ("encoding", str),
    "--format": ("format", str),
    "--threads": ("threads", int),
    "-p": ("threads", int),
    "--nbest": ("nbest", int),
    "--min-confidence": ("min_confidence", str),
    "--abstain": ("abstain", str),
}
FLAGS = {
    "--marginals": "marginals",
    "--all-marginals": "all_marginals",
    "--labels-only": "labels_only",
    "--json": "as_json",
    "--spans": "spans",
    "--posterior": "posterior",
    "--text": "text",
}


def parse_tag(arguments: Sequence[str]) -> Entries | None:
    """Return the arguments of `tag_files`, or None if typer has to parse them.

    >>> {name: str(value) for name, value in parse_tag(["m.crf", "--threads", "2"]).items()}
    {'threads': '2', 'model': 'm.crf', 'files': '[]'}
    >>> parse_tag(["m.crf", "--nosuch"])
    """
    found: Entries = {}
    paths: list[str] = []
    rest = iter(arguments)
    for word in rest:
        name, equals, value = word.partition("=")
        if not word.startswith("-") or word == "-":
            paths.append(word)
        elif word in FLAGS:
            found[FLAGS[word]] = True
        elif name in VALUES and (equals or name == word):
            if equals and not name.startswith("--"):
                return None
            argument, read = VALUES[name]
            if argument in found:
                return None
            text = value if equals else next(rest, None)
            if text is None or not text or (text.startswith("-") and text != "-"):
                return None
            try:
                found[argument] = read(text)
            except ValueError:
                return None
        else:
            return None
    if not paths or "" in paths:
        return None
    return {**found, "model": Path(paths[0]), "files": [Path(path) for path in paths[1:]]}


def quick_command(arguments: Sequence[str]) -> Callable[[], None] | None:
    """Return the function to run for a command line, or None if typer has to parse it."""
    if not arguments or arguments[0] != "tag":
        return None
    options = parse_tag(arguments[1:])
    if options is None:
        return None
    return partial(_tag, options)


def _tag(options: Record) -> None:
    from crfkit.cli.runtime.signals import load_native

    load_native()
    from crfkit.cli.commands.tagging import tag_files

    tag_files(**options)
