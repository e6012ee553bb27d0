"""The reference of all commands: every argument and option, as the command line itself describes them."""

from __future__ import annotations

import contextlib
import inspect
import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from crfkit.cli.runtime.help import PANELS, fill_in

HEAD = """# Commands

Every command prints the same with `--help`. Errors are one line on standard error with exit code 2; Ctrl-C is exit
code 130.

| command | what it does |
|---|---|
"""


def commands() -> Iterator[tuple[str, Any]]:
    """Yield the name and the click command of every command and subcommand."""
    import typer.main

    from crfkit.cli.main import app

    def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        subcommands = getattr(command, "commands", None)
        if subcommands is None:
            yield name, command
            return
        for child, sub in subcommands.items():
            yield from walk(f"{name} {child}", sub)

    yield from walk("crfkit", typer.main.get_command(app))


def cell(text: str) -> str:
    """Return text for a cell of a table, with the names of registries filled in."""
    return " ".join(fill_in(text).split()).replace("|", "\\|").replace("<", "&lt;")


def summary(command: Any) -> str:
    """Return the first sentence of the help."""
    return cell((command.help or "").split("\n\n")[0])


def default_of(parameter: Any) -> str:
    """Return the default as it would be typed; empty for switches and where there is none."""
    value = parameter.default
    if parameter.required:
        return "required"
    if callable(value) or value is None or value is False or value == () or getattr(parameter, "is_flag", False):
        return ""
    if getattr(value, "name", None) and hasattr(value, "value"):
        value = value.value
    return f"`{value}`" if str(value) else ""


def option_rows(command: Any) -> dict[str, list[str]]:
    """Return rows of the options by the panel they are shown in."""
    panels: dict[str, list[str]] = {}
    for parameter in command.params:
        if parameter.param_type_name == "argument" or getattr(parameter, "hidden", False):
            continue
        names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
        metavar = parameter.metavar or ""
        shown = f"{names} {cell(metavar)}".strip()
        panel = getattr(parameter, "rich_help_panel", None) or "Options"
        panels.setdefault(panel, []).append(
            f"| {shown} | {cell(getattr(parameter, 'help', '') or '')} | {default_of(parameter)} |"
        )
    return dict(sorted(panels.items(), key=lambda panel: PANELS.index(panel[0]) if panel[0] in PANELS else -1))


def usage(name: str, command: Any) -> str:
    """Return the line of usage."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    return " ".join([name, *(a.metavar or a.name.upper() for a in arguments), "[OPTIONS]"])


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; those that are commands become blocks of code."""
    for paragraph in fill_in(inspect.cleandoc(text.replace("\b", ""))).split("\n\n"):
        lines = paragraph.strip().splitlines()
        if lines and all(line.strip().startswith(("crfkit", "$ ")) for line in lines):
            yield "\n".join(("```text", *(line.strip() for line in lines), "```", ""))
        else:
            yield paragraph.strip().replace("<", "&lt;") + "\n"


def page_of(name: str, command: Any) -> str:
    """Return the page of one command."""
    text = [f"# {name}", "", "```text", usage(name, command), "```", ""]
    text += paragraphs(command.help or "")
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    if arguments:
        text += ["| argument | |", "|---|---|"]
        text += [f"| `{a.metavar or a.name.upper()}` | {cell(getattr(a, 'help', '') or '')} |" for a in arguments]
        text.append("")
    for panel, rows in option_rows(command).items():
        text += [f"## {panel}", "", "| option | | default |", "|---|---|---|", *rows, ""]
    if command.epilog:
        text += paragraphs(command.epilog)
    return "\n".join(text)


def printed(main: Callable[[], Any], *arguments: str) -> str:
    """Return what a program prints for these arguments."""
    import sys

    out, before = io.StringIO(), sys.argv
    sys.argv = list(arguments)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), contextlib.suppress(SystemExit):
            main()
    finally:
        sys.argv = before
    return out.getvalue()


def compatible() -> str:
    """Return the page of the commands that stand in for those of other tools."""
    from crfkit.compat.crfpp import learn, tag
    from crfkit.compat.wapiti import command

    parts = [
        "# crfkit-learn, crfkit-test, crfkit-wapiti",
        "",
        "They take the arguments of `crf_learn`, `crf_test` and `wapiti`: [CRF++](../../migration/crfpp.md), "
        "[Wapiti](../../migration/wapiti.md).",
        "",
    ]
    for name, main in (("crfkit-learn", learn.main), ("crfkit-test", tag.main), ("crfkit-wapiti", command.entry)):
        parts += [f"## {name}", "", "```text", printed(main, name, "--help").rstrip(), "```", ""]
    return "\n".join(parts)


def pages() -> Iterable[tuple[str, str]]:
    """Yield the page of each command and their index."""
    rows, files = [], []
    for name, command in commands():
        file = name.replace("crfkit ", "").replace(" ", "_").replace("-", "_")
        files.append(file)
        rows.append(f"| [{name}]({file}.md) | {summary(command)} |")
        yield f"reference/commands/{file}.md", page_of(name, command)
    rows.append("| [crfkit-learn, crfkit-test, crfkit-wapiti](compatible.md) | The commands of CRF++ and Wapiti. |")
    yield "reference/commands/compatible.md", compatible()
    toctree = "\n".join(("", "", "```{toctree}", ":hidden:", *files, "compatible", "```", ""))
    yield "reference/commands/index.md", HEAD + "\n".join(rows) + toctree
