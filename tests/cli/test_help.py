"""Help of all commands: options in four groups, sentences, and lists of names that come from the registries."""

from __future__ import annotations

import re

import pytest
from typer.main import get_command

from crfkit.cli.main import app
from crfkit.cli.runtime.help import PANELS, fill_in
from crfkit.graph.inference.engines import ENGINES
from crfkit.graph.model import DECODERS
from crfkit.losses import LOSSES
from crfkit.solvers import SOLVERS


def commands(group=None, path=()):
    group = get_command(app) if group is None else group
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


EVERY = list(commands())
every_command = pytest.mark.parametrize(("path", "command"), EVERY, ids=[" ".join(path) for path, _ in EVERY])


def options(command):
    return [param for param in command.params if param.param_type_name == "option" and param.name != "help"]


@every_command
def test_every_option_is_in_a_group(path, command):
    assert [param.name for param in options(command) if param.rich_help_panel not in PANELS] == []


@every_command
def test_every_help_text_is_a_sentence(path, command):
    """It begins with a capital, not with "Of", "As" or "What", and ends with a full stop."""
    for param in [*options(command), *(p for p in command.params if p.param_type_name == "argument")]:
        text = fill_in(param.help)
        assert re.match(r"[A-Z-]", text), text
        assert text.endswith("."), text
        assert text.split()[0] not in ("Of", "As", "See"), text


@every_command
def test_help_is_shown_in_groups(call, monkeypatch, path, command):
    monkeypatch.setenv("COLUMNS", "80")
    text = call(*path, "--help").out
    groups = [panel for panel in PANELS if re.search(rf"─ {panel} ─", text)]
    assert groups == sorted(groups, key=lambda panel: text.index(f"─ {panel} ─"))  # in this order
    assert {param.rich_help_panel for param in options(command)} <= set(groups)
    assert "─ Options ─" not in text
    assert re.sub(r"\{(name|[][A-Z. ]+)\}", "", text).count("{") == 0  # no name of a registry is left
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("graph train", [*ENGINES, "auto", *LOSSES.options("graph"), "(pl)"]),
        ("graph predict", [*DECODERS, *ENGINES]),
        ("segment train", [*ENGINES, "auto", *LOSSES.options("graph")]),
        ("train", [name for name in SOLVERS if name != "adam"]),
    ],
)
def test_names_come_from_the_registries(call, monkeypatch, path, names):
    monkeypatch.setenv("COLUMNS", "400")
    text = call(*path.split(), "--help").out
    assert [name for name in names if name not in text] == []


def test_a_new_member_is_listed(monkeypatch):
    monkeypatch.setitem(ENGINES, "exotic", "crfkit.graph.inference.tree:Tree")
    assert fill_in("Engine: {engines}.").endswith(" or exotic.")
    assert fill_in("{name} stays, {no such list} too") == "{name} stays, {no such list} too"


@pytest.mark.parametrize(
    ("shell", "given", "expected"),
    [
        ("bash", {"COMP_WORDS": "crfkit tra", "COMP_CWORD": "1"}, "train"),
        ("bash", {"COMP_WORDS": "crfkit train --sol", "COMP_CWORD": "2"}, "--solver"),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "crfkit structure l"}, '"learn"'),
    ],
)
def test_shells_complete_commands_and_options(call, monkeypatch, shell, given, expected):
    for name, value in {**given, "_CRFKIT_COMPLETE": f"complete_{shell}"}.items():
        monkeypatch.setenv(name, value)
    assert expected in call().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_written(call, monkeypatch, shell):
    monkeypatch.setenv("_CRFKIT_COMPLETE", f"source_{shell}")
    script = call().out
    assert f"_CRFKIT_COMPLETE=complete_{shell}" in script
